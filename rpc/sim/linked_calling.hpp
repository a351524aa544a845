// The callers of a simulated world of calls over connections: they connect, call, cancel and disconnect.
#pragma once

#include "rpc/sim/linked_oracle.hpp"

namespace cairn::sim {

class LinkedCalling {
public:
    LinkedCalling(World& world, const LinkedPlan& plan, LinkedSystem& system, LinkedOracle& oracle)
        : world_(world), random_(world.random()), plan_(plan), system_(system), oracle_(oracle) {}

    // A step of a node's users.
    void act(LinkedNode& node);
    // Returns the session, or nullptr if the endpoint has no place or no memory for it.
    LinkedSession* connect(LinkedNode& node, std::size_t host, bool to_stranger);
    // Ends a session that either end began.
    void disconnect(LinkedNode& node, SessionId id);
    // Posts a call over a session that the node has. Nothing goes wrong with it once the world is healed.
    void post_some(LinkedNode& node, const LinkedSession& session, std::uint64_t count);
    // Posts a short call of a handler, over a session of the node or over the one by which its request came. Returns
    // the call, or nullptr if it was not posted.
    LinkedCall* post_inner(LinkedNode& node, SessionId by);
    // The endpoint tells of a session.
    void session_changed(LinkedNode& node, SessionId id, rpc::LinkEvent event);

    // For calls that a system posts in ways of its own. plan_call() returns a new call; begin() comes before it is
    // posted: that may end it at once. abandon() forgets one that was not posted.
    [[nodiscard]] LinkedCall& plan_call(LinkedNode& node, const LinkedSession& session);
    [[nodiscard]] static rpc::Call call_of(LinkedNode& node, LinkedCall& call);
    static void begin(LinkedNode& node, LinkedCall& call);
    static void abandon(LinkedNode& node, LinkedCall& call);
    // A call has ended. Others may be posted.
    void complete(LinkedNode& node, const rpc::CallResult& result);
    [[nodiscard]] bool is_calm() const noexcept { return calm_; }

    // Nobody disconnects, cancels or calls out of a completion any more.
    void set_calm() noexcept { calm_ = true; }
    // From now on no session ends by itself.
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
