// The callers of a simulated world of copyrpc: they connect, call, try, cancel and disconnect.
#pragma once

#include "rpc/sim/copyrpc_oracle.hpp"

namespace cairn::sim {

class CopyrpcCalling {
public:
    static constexpr std::uint16_t kPort = 7472;  // where honest endpoints listen

    CopyrpcCalling(World& world, const CopyrpcPlan& plan, CopyrpcOracle& oracle)
        : world_(world), random_(world.random()), plan_(plan), oracle_(oracle) {}

    // Sets what the endpoint of a new process tells its users.
    void start(CopyrpcNode& node);
    // A step of a node's users.
    void act(CopyrpcNode& node);
    // Returns the session, or nullptr if the endpoint has no place or no memory for it.
    CopyrpcSession* connect(CopyrpcNode& node, std::size_t host, bool to_stranger);
    // Ends a session, whoever began it.
    void disconnect(CopyrpcNode& node, SessionId id);
    // Posts a call over a session that the node has. Nothing goes wrong with it once the world is healed.
    void post_some(CopyrpcNode& node, const CopyrpcSession& session, std::uint64_t count);
    // Posts a short call of a handler, over a session of the node or over the one by which its request came. Returns
    // the call, or nullptr if it was not posted.
    CopyrpcCall* post_inner(CopyrpcNode& node, SessionId by);
    // Nobody disconnects, cancels or calls out of a completion any more.
    void set_calm() noexcept { calm_ = true; }
    // From now on no session ends by itself.
    void set_settled() noexcept { settled_ = true; }

private:
    [[nodiscard]] CopyrpcCall& plan_call(CopyrpcNode& node);
    [[nodiscard]] CopyrpcCall& plan_call(CopyrpcNode& node, const CopyrpcSession& session);
    void plan_sizes(CopyrpcNode& node, CopyrpcCall& call);
    [[nodiscard]] static rpc::Call call_of(CopyrpcNode& node, CopyrpcCall& call);
    void begin(CopyrpcNode& node, CopyrpcCall& call);
    void abandon(CopyrpcNode& node, CopyrpcCall& call);
    bool post(CopyrpcNode& node, SessionId session, CopyrpcCall& call);
    void try_some(CopyrpcNode& node, SessionId session);
    copyrpc::Attempt try_one(CopyrpcNode& node, SessionId session, CopyrpcCall& call);
    void cancel_some(CopyrpcNode& node);
    void complete(CopyrpcNode& node, const rpc::CallResult& result);
    void session_changed(CopyrpcNode& node, SessionId id, copyrpc::SessionEvent event);
    void on_room(CopyrpcNode& node, SessionId id);

    World& world_;
    Random& random_;
    const CopyrpcPlan& plan_;
    CopyrpcOracle& oracle_;
    bool calm_ = false;
    bool settled_ = false;
};

}  // namespace cairn::sim
