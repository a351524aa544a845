// Scenario: what the users of a simulated world do on each of its nodes, and what must hold of it.
#pragma once

#include <cstddef>
#include <string>

#include "lib/base/time.hpp"
#include "lib/sim/frame.hpp"

namespace cairn::sim {

class Node;

// Several may live in one world: each has its part of every process, beside the others' on the same worker. A scenario
// keeps what it knows of a node by Node::index(), or by Node::host() if it lives on one worker of each host. Inputs
// come in the order of their declaration; times are the world's unless said otherwise.
class Scenario {
public:
    Scenario() = default;
    Scenario(const Scenario&) = delete;
    Scenario& operator=(const Scenario&) = delete;
    virtual ~Scenario() = default;

    // Whether it has a part on this worker: asked when its process begins. Of the others it hears nothing.
    [[nodiscard]] virtual bool lives_on(const Node&) const { return true; }

    // A process begins, and ends: its worker is there both times, the process itself is forgotten between them. All
    // workers of a host have one process.
    virtual void start(Node& node) = 0;
    virtual void stop(Node& node) = 0;

    // Once in each step of the world, before the nodes take their turns; and when it has something to do of its own.
    virtual void on_step() {}
    [[nodiscard]] virtual Instant next_step() const { return Instant::never(); }

    // A turn of the node's worker: before it; when what came is delivered and what is due was done; when its packets
    // are on their way; after it. next_act(): when users of the node do something though nothing comes.
    virtual void before_turn(Node&) {}
    virtual void act(Node& node) = 0;
    virtual void on_sent(Node&) {}
    virtual void after_turn(Node&) {}
    [[nodiscard]] virtual Instant next_act(const Node& node) const = 0;

    // A frame is delivered to a place in the network, a host's or a guest's; a port gives it to its engine; it came to
    // a place that is no node's, and is gone.
    virtual void on_delivery(std::size_t, const Frame&) {}
    virtual void on_frame(Node&, const Frame&, bool /*icrc_ok*/) {}
    virtual void on_guests_frame(std::size_t, const Frame&) {}
    // The node's host and its neighbour lose each other.
    virtual void on_partition(Node&, std::size_t /*host*/) {}

    // Nothing goes wrong any more. Then each scenario in turn requires progress and drives the world as long as it
    // takes; each ends what its users have; all processes end; and it looks at what is left.
    virtual void on_heal() {}
    virtual void check_progress() = 0;
    virtual void wind_up() {}
    virtual void check_end() {}

    // What happened, for the reader of a report.
    [[nodiscard]] virtual std::string text() const = 0;
};

}  // namespace cairn::sim
