// Scenario: the actions of the users of a simulated world on each of its nodes, and the promises that must hold.
#pragma once

#include <cstddef>
#include <string>

#include "lib/base/time.hpp"
#include "lib/sim/frame.hpp"

namespace cairn::sim {

class Node;

// Several scenarios may live in one world. Each has its part of every process, next to the others' parts on the same
// worker. A scenario keeps its knowledge of a node by Node::index(), or by Node::host() if it lives on one worker of
// each host. Inputs are called in the order of their declaration. Times are the world's unless a comment names another
// clock.
class Scenario {
public:
    Scenario() = default;
    Scenario(const Scenario&) = delete;
    Scenario& operator=(const Scenario&) = delete;
    virtual ~Scenario() = default;

    // Returns whether the scenario has a part on this worker. It is called when the worker's process begins. The
    // scenario gets no input from other workers.
    [[nodiscard]] virtual bool lives_on(const Node&) const { return true; }

    // These are called when a process begins or ends. Its worker exists in both calls. Everything of the process is
    // forgotten between them. All workers of a host have one process.
    virtual void start(Node& node) = 0;
    virtual void stop(Node& node) = 0;

    // on_step() is called once in each step of the world, before the nodes take their turns. next_step() returns when
    // the scenario itself is to act.
    virtual void on_step() {}
    [[nodiscard]] virtual Instant next_step() const { return Instant::never(); }

    // The inputs of a turn of the node's worker. before_turn() comes before it. act() comes when arrived packets are
    // delivered and due work is done, and on_sent() when the turn's packets are on their way. after_turn() comes after
    // the turn. next_act() returns when users of the node act though no packet arrives.
    virtual void before_turn(Node&) {}
    virtual void act(Node& node) = 0;
    virtual void on_sent(Node&) {}
    virtual void after_turn(Node&) {}
    [[nodiscard]] virtual Instant next_act(const Node& node) const = 0;

    // on_delivery(): a frame is delivered to a place in the network, a host's or a hostile peer's. on_frame(): a port
    // gives a frame to its engine. on_guests_frame(): a frame came to a hostile peer's place, and is gone.
    virtual void on_delivery(std::size_t, const Frame&) {}
    virtual void on_frame(Node&, const Frame&, bool /*icrc_ok*/) {}
    virtual void on_guests_frame(std::size_t, const Frame&) {}
    // Is called when the node's host and the neighbour `host` lose each other.
    virtual void on_partition(Node&, std::size_t /*host*/) {}

    // on_heal(): the faults have ended. Later each scenario in turn requires progress in check_progress(), and drives
    // the world as long as that takes. Then each ends everything that its users have in wind_up(). Then all processes
    // end. Then each looks at the remains in check_end().
    virtual void on_heal() {}
    virtual void check_progress() = 0;
    virtual void wind_up() {}
    virtual void check_end() {}

    // Returns a text on what happened, for the reader of a report.
    [[nodiscard]] virtual std::string text() const = 0;
};

}  // namespace cairn::sim
