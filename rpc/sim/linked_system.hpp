// What a simulated world of calls over reliable connections must know of its RPC system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/cm/types.hpp"
#include "rpc/sim/linked_node.hpp"

namespace cairn::sim {

// The choices of a seed that are no system's own.
struct LinkedPlan {
    std::uint16_t port = 0;  // where honest endpoints listen; each system has its own
    std::uint32_t path_mtu_bytes = 1024;
    cm::Config cm{};
    Duration peer_timeout{};
    Duration longest_end{};         // in which everything of a broken connection comes to its end
    bool has_strangers = false;     // each worker has a stranger that breaks the rules
    bool alone = true;              // nothing else is on the workers
    std::size_t sessions_each = 3;  // that a node's users begin

    [[nodiscard]] static LinkedPlan from_seed(std::uint64_t seed);
    // Of a world of its own.
    [[nodiscard]] WorldShape shape_of_world(std::uint64_t seed) const;
    [[nodiscard]] static FaultMix mix_of_world(std::uint64_t seed);
};

class LinkedSystem {
public:
    // Bytes of memory that a node needs at most.
    [[nodiscard]] virtual std::size_t memory_most() const = 0;
    // A text on what happened.
    [[nodiscard]] virtual std::string text() const = 0;
    // Makes the pool and the endpoint of a new process, and sets their limits in the node.
    virtual void start(LinkedNode& node, connections::Home& home) = 0;
    // Counts what the endpoint has counted. It ends next.
    virtual void count(LinkedNode& node) = 0;
    virtual void stop(LinkedNode& node) = 0;
    [[nodiscard]] virtual std::unique_ptr<LinkedStranger> make_stranger(LinkedNode& node, connections::Home& home) = 0;

    // Sets how long the request of a call is, its response buffer, and what room its answer has. Most are short; some
    // are as long as may be, or longer.
    virtual void plan_sizes(LinkedNode& node, LinkedCall& call) = 0;
    // The same for a short call of a handler.
    virtual void plan_brief(LinkedNode& node, LinkedCall& call) = 0;
    // Draws how a request is handled.
    [[nodiscard]] virtual Handling draw_handling() = 0;
    // True if the call may, or must, be refused as too long.
    [[nodiscard]] virtual bool may_be_too_long(const LinkedNode& client, const LinkedCall& call) const = 0;
    [[nodiscard]] virtual bool must_be_too_long(const LinkedNode& client, const LinkedCall& call) const = 0;
    // True if a server may have given an answer up, for want of memory.
    [[nodiscard]] virtual bool may_give_up() const = 0;
    // True if requests wait at their callers for the server, which counts the time of their deadlines meanwhile.
    [[nodiscard]] virtual bool stages_requests() const { return false; }
    // How often a request is on its way, at most, before a server begins to count what time it has left: there is no
    // common clock.
    [[nodiscard]] virtual std::int64_t ways_of_request() const = 0;
    // True if the call is executed behind all such calls of its session that were posted before it.
    [[nodiscard]] virtual bool keeps_order(const LinkedCall& call) const = 0;
    // True if a server may call over the sessions of its clients.
    [[nodiscard]] virtual bool calls_back() const = 0;

    // The users of a session do something of the system's own. False: there is nothing of the kind.
    virtual bool act(LinkedNode& node, const LinkedSession& session) = 0;
    // The same between turns, with faults over: a call that takes turns itself until it has ended.
    virtual void call_and_wait(LinkedNode&, const LinkedSession&) {}
    // A handler runs for a call.
    virtual void on_request(LinkedNode&, const LinkedRequest&, const LinkedCall&) {}
    // In each turn of a node, before its worker's; and when that is due though nothing arrives.
    virtual void on_turn(LinkedNode& node) = 0;
    virtual void after_turn(LinkedNode&) {}
    [[nodiscard]] virtual Instant next_turn(const LinkedNode& node) const = 0;
    // Calls that have ended, and whose ends are still to be collected.
    [[nodiscard]] virtual std::size_t uncollected(const LinkedNode&) const { return 0; }
    // What must be so once no call is pending.
    virtual void check_quiet(LinkedNode& node) = 0;
    virtual void on_heal() {}

protected:
    ~LinkedSystem() = default;
};

}  // namespace cairn::sim
