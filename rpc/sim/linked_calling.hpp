// The callers of a simulated world of calls over connections. They connect, call, cancel and disconnect.
#pragma once

#include "rpc/sim/linked_oracle.hpp"

namespace cairn::sim {

class LinkedCalling {
public:
    LinkedCalling(World& world, const LinkedPlan& plan, LinkedSystem& system, LinkedOracle& oracle)
        : world_(world), random_(world.random()), plan_(plan), system_(system), oracle_(oracle) {}

    // Makes a step of a node's users.
    void act(LinkedNode& node);
    // Begins a session. Returns nullptr if the endpoint has no place or no memory for it.
    LinkedSession* connect(LinkedNode& node, std::size_t host, bool to_stranger);
    // Ends a session, whichever end began it.
    void disconnect(LinkedNode& node, SessionId id);
    // Posts calls over a session of the node. Once the world is healed, they must succeed.
    void post_some(LinkedNode& node, const LinkedSession& session, std::uint64_t count);
    // Posts a short call of a handler, over a session of the node or over the session of the handler's request. Returns
    // the call, or nullptr if it was not posted.
    LinkedCall* post_inner(LinkedNode& node, SessionId by);
    // Handles an endpoint's event of a session.
    void session_changed(LinkedNode& node, SessionId id, rpc::LinkEvent event);

    // For calls that a system posts in ways of its own. plan_call() returns a new call. begin() is called before the
    // post, which may end the call at once. abandon() forgets a call that was not posted.
    [[nodiscard]] LinkedCall& plan_call(LinkedNode& node, const LinkedSession& session);
    [[nodiscard]] static rpc::Call call_of(LinkedNode& node, LinkedCall& call);
    static void begin(LinkedNode& node, LinkedCall& call);
    static void abandon(LinkedNode& node, LinkedCall& call);
    // Handles the end of a call. May post others.
    void complete(LinkedNode& node, const rpc::CallResult& result);
    [[nodiscard]] bool is_calm() const noexcept { return calm_; }

    // From now on users do not disconnect or cancel, and completions post no calls.
    void set_calm() noexcept { calm_ = true; }
    // From now on no session may end by itself.
    void set_settled() noexcept { settled_ = true; }

private:
    bool post(LinkedNode& node, SessionId session, LinkedCall& call);
    void cancel_some(LinkedNode& node);

    World& world_;
    Random& random_;
    const LinkedPlan& plan_;
    LinkedSystem& system_;
    LinkedOracle& oracle_;
    bool calm_ = false;
    bool settled_ = false;
};

}  // namespace cairn::sim
