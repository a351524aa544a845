// The parts of a simulated world of calls over reliable connections that depend on the RPC system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/cm/types.hpp"
#include "rpc/sim/linked_node.hpp"

namespace cairn::sim {

// The seed's choices that all systems share.
struct LinkedPlan {
    std::uint16_t port = 0;  // port of honest endpoints; each system has its own
    std::uint32_t path_mtu_bytes = 1024;
    cm::Config cm{};
    Duration peer_timeout{};
    Duration longest_end{};         // longest time until all parts of a broken connection have ended
    bool has_strangers = false;     // each worker has a hostile peer
    bool alone = true;              // the workers run nothing else
    std::size_t sessions_each = 3;  // sessions that a node's users begin

    [[nodiscard]] static LinkedPlan from_seed(std::uint64_t seed);
    // Returns the shape of a world without other scenarios.
    [[nodiscard]] WorldShape shape_of_world(std::uint64_t seed) const;
    [[nodiscard]] static FaultMix mix_of_world(std::uint64_t seed);
};

class LinkedSystem {
public:
    // Returns how many bytes of memory a node needs at most.
    [[nodiscard]] virtual std::size_t memory_most() const = 0;
    // Returns a text of the counters.
    [[nodiscard]] virtual std::string text() const = 0;
    // Makes the pool and the endpoint of a new process, and sets their limits in the node.
    virtual void start(LinkedNode& node, connections::Home& home) = 0;
    // Adds the endpoint's counters to the sums. The endpoint ends next.
    virtual void count(LinkedNode& node) = 0;
    virtual void stop(LinkedNode& node) = 0;
    [[nodiscard]] virtual std::unique_ptr<LinkedStranger> make_stranger(LinkedNode& node, connections::Home& home) = 0;

    // Sets the lengths of a call's request and response buffer, and the room for its answer. Most are short. Some have
    // the largest allowed length, or more.
    virtual void plan_sizes(LinkedNode& node, LinkedCall& call) = 0;
    // As plan_sizes(), for a short call of a handler.
    virtual void plan_brief(LinkedNode& node, LinkedCall& call) = 0;
    // Draws the way in which a request is handled.
    [[nodiscard]] virtual Handling draw_handling() = 0;
    // Return true if the call may, or must, be refused as too long.
    [[nodiscard]] virtual bool may_be_too_long(const LinkedNode& client, const LinkedCall& call) const = 0;
    [[nodiscard]] virtual bool must_be_too_long(const LinkedNode& client, const LinkedCall& call) const = 0;
    // True if a server may have given an answer up, for want of memory.
    [[nodiscard]] virtual bool may_give_up() const = 0;
    // True if requests wait at their callers for the server, which counts the time of their deadlines meanwhile.
    [[nodiscard]] virtual bool stages_requests() const { return false; }
    // Returns how many ways a request travels at most before a server begins to count its time: there is no common
    // clock.
    [[nodiscard]] virtual std::int64_t ways_of_request() const = 0;
    // True if the call is executed after all earlier calls of its session for which this function is true.
    [[nodiscard]] virtual bool keeps_order(const LinkedCall& call) const = 0;
    // True if a server may call over the sessions of its clients.
    [[nodiscard]] virtual bool calls_back() const = 0;

    // Lets the users of a session use a feature of this system only. Returns false if there is none.
    virtual bool act(LinkedNode& node, const LinkedSession& session) = 0;
    // As act(), between turns and without faults: makes a call that takes turns itself until it has ended.
    virtual void call_and_wait(LinkedNode&, const LinkedSession&) {}
    // Called when a handler runs for a call.
    virtual void on_request(LinkedNode&, const LinkedRequest&, const LinkedCall&) {}
    // Called in each turn of a node, before its worker's turn. Also called when that is due although nothing arrives.
    virtual void on_turn(LinkedNode& node) = 0;
    virtual void after_turn(LinkedNode&) {}
    [[nodiscard]] virtual Instant next_turn(const LinkedNode& node) const = 0;
    // Returns how many calls have ended, but were not collected.
    [[nodiscard]] virtual std::size_t uncollected(const LinkedNode&) const { return 0; }
    // Checks the state when no call is pending.
    virtual void check_quiet(LinkedNode& node) = 0;
    virtual void on_heal() {}

protected:
    ~LinkedSystem() = default;
};

}  // namespace cairn::sim
