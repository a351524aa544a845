// Node: a worker of a host of a simulated world, with its port, its clock, and what the scenarios put on it. Most hosts
// have one.
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
    // `index`: among all workers of the world; `number`: among those of its host.
    Node(World& world, std::size_t index, std::size_t host, std::uint16_t number, std::uint64_t seed);
    Node(const Node&) = delete;  // its port's witness points to it
    Node& operator=(const Node&) = delete;

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] std::size_t host() const noexcept { return host_; }
    [[nodiscard]] std::uint16_t number() const noexcept { return number_; }
    [[nodiscard]] SimPort& port() noexcept { return port_; }
    [[nodiscard]] const SimPort& port() const noexcept { return port_; }
    [[nodiscard]] worker::Worker& worker() noexcept { return *worker_; }
    // The number of its host's process in the world, from 1.
    [[nodiscard]] std::uint64_t process() const noexcept { return process_; }
    // By its own clock, which is what its process makes of a counter: at its last look, and at a look now.
    [[nodiscard]] Instant now() const noexcept { return now_; }
    Instant read_clock();
    // What all its processes that ended counted; `unsent`: packets that ended with them.
    [[nodiscard]] const telemetry::CounterSnapshot<roce::Drop>& drops() const noexcept { return drops_; }
    [[nodiscard]] std::uint64_t unsent() const noexcept { return unsent_; }
    [[nodiscard]] std::uint64_t clock_went_back() const noexcept { return clock_went_back_; }
    [[nodiscard]] std::uint64_t clock_leapt() const noexcept { return clock_leapt_; }
    // What the process now there counts, with damaged packets of connections among those of unknown queue pairs.
    [[nodiscard]] telemetry::CounterSnapshot<roce::Drop> live_drops() const;

    // A thread of the process ended something: its worker has a turn at once.
    void wake() noexcept { woken_ = true; }
    // Its counter leaps or goes back.
    void jump();

    // For the world.
    void start(std::uint64_t process);
    // `is_killed`: nothing that it says as it ends leaves.
    void stop(bool is_killed);
    // True: it is awake and has something to do, and takes turns until one finds nothing.
    [[nodiscard]] bool begin_turns();
    [[nodiscard]] bool turn();
    void end_turns();
    void harm();
    void heal();
    [[nodiscard]] Instant next_event() const;

private:
    // When the next of each befalls it. Restarts and partitions are those of the host, and its first worker has them.
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
    Duration clock_ahead_{};    // of the world, since the last look
    Duration counter_ahead_{};  // of the world
    Harm harm_;
    Instant stalled_until_{};
    bool woken_ = false;
    std::uint64_t process_ = 0;
    std::unique_ptr<worker::Worker> worker_;
    std::vector<Scenario*> scenarios_;  // that live on it
    std::optional<Actor> actor_;        // behind what the scenarios have on the worker
    telemetry::CounterSnapshot<roce::Drop> drops_{};
    std::uint64_t unsent_ = 0;
    std::uint64_t clock_went_back_ = 0;
    std::uint64_t clock_leapt_ = 0;
};

}  // namespace cairn::sim
