// Node: a worker of a host in a simulated world, with its port, its clock, and the scenarios' parts on it. Most hosts
// have one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/steady_time.hpp"
#include "lib/sim/actor.hpp"
#include "lib/sim/sim_port.hpp"

namespace cairn::sim {

class Scenario;
class World;

class Node {
public:
    // Makes the node. `index` counts all workers of the world, `number` the workers of the host.
    Node(World& world, std::size_t index, std::size_t host, std::uint16_t number, std::uint64_t seed);
    Node(const Node&) = delete;  // the port's witness points to the node
    Node& operator=(const Node&) = delete;

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] std::size_t host() const noexcept { return host_; }
    [[nodiscard]] std::uint16_t number() const noexcept { return number_; }
    [[nodiscard]] SimPort& port() noexcept { return port_; }
    [[nodiscard]] const SimPort& port() const noexcept { return port_; }
    [[nodiscard]] worker::Worker& worker() noexcept { return *worker_; }
    // Returns the number of its host's process in the world, from 1.
    [[nodiscard]] std::uint64_t process() const noexcept { return process_; }
    // now() is the time of the node's own clock at its last reading. read_clock() reads the clock anew. The process
    // makes this clock from a counter.
    [[nodiscard]] Instant now() const noexcept { return now_; }
    Instant read_clock();
    // Return the drops of all its processes that ended, and the packets that were lost when these processes ended.
    [[nodiscard]] const telemetry::CounterSnapshot<roce::Drop>& drops() const noexcept { return drops_; }
    [[nodiscard]] std::uint64_t unsent() const noexcept { return unsent_; }
    [[nodiscard]] std::uint64_t clock_went_back() const noexcept { return clock_went_back_; }
    [[nodiscard]] std::uint64_t clock_leapt() const noexcept { return clock_leapt_; }
    // Returns the drops of the present process. Damaged packets of connections count as packets of unknown queue pairs.
    [[nodiscard]] telemetry::CounterSnapshot<roce::Drop> live_drops() const;

    // Gives the worker a turn at once: a thread of its process has ended something.
    void wake() noexcept { woken_ = true; }
    // Makes its counter leap or go back.
    void jump();

    // The world calls the functions from here on.
    void start(std::uint64_t process);
    // Stops the process. `is_killed`: packets that it sends as it ends do not leave the host.
    void stop(bool is_killed);
    // begin_turns() returns true if the node is awake and has something to do. It then takes turns until turn() returns
    // false.
    [[nodiscard]] bool begin_turns();
    [[nodiscard]] bool turn();
    void end_turns();
    void harm();
    void heal();
    [[nodiscard]] Instant next_event() const;

private:
    // The time of each next fault. Restarts and partitions hit a host; its first worker keeps their times.
    struct Harm {
        Instant stall = Instant::never();
        Instant restart = Instant::never();
        Instant jump = Instant::never();
        Instant partition = Instant::never();
        Instant partition_ends = Instant::never();
    };
    [[nodiscard]] Instant wakes_at() const;
    void partition(bool apart);

    World& world_;
    const std::size_t index_;
    const std::size_t host_;
    const std::uint16_t number_;
    SimPort port_;
    SteadyTime time_;
    Instant now_{};
    Duration clock_ahead_{};    // ahead of the world, since the last reading
    Duration counter_ahead_{};  // of the world
    Harm harm_;
    Instant stalled_until_{};
    bool woken_ = false;
    std::uint64_t process_ = 0;
    std::unique_ptr<worker::Worker> worker_;
    std::vector<Scenario*> scenarios_;  // the scenarios that live on the node
    std::optional<Actor> actor_;        // after the scenarios' tenants on the worker
    telemetry::CounterSnapshot<roce::Drop> drops_{};
    std::uint64_t unsent_ = 0;
    std::uint64_t clock_went_back_ = 0;
    std::uint64_t clock_leapt_ = 0;
};

}  // namespace cairn::sim
