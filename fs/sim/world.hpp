// A history of a simulated file system: production shards on media that lose power, clients that die, full stores.
#pragma once

#include <string>
#include <vector>

#include "fs/sim/sim_client.hpp"
#include "fs/sim/sim_filler.hpp"

namespace cairn::fs {

struct FsWorldResult {
    std::vector<std::string> faults{};  // empty: the history is sound
    std::uint32_t shards = 0;
    std::uint64_t deaths = 0;    // of shards
    std::uint64_t failures = 0;  // deaths by loss of power within a turn
    std::uint64_t clients = 0;   // clients that died
    std::uint64_t resent = 0;    // requests that were made again
    std::uint64_t messages = 0;  // between shards
    bool was_full = false;       // all stores have been full
    SimClientCounts counts{};    // of all clients
};

// The same seed gives the same history.
class FsWorld {
public:
    explicit FsWorld(std::uint64_t seed);
    // Sets the witness. Called before run().
    void set_witness(ClusterWitness::See see) { cluster_.witness().set(std::move(see)); }
    // Runs the history. Called once.
    FsWorldResult run();
    // Returns the result up to now.
    [[nodiscard]] FsWorldResult result() const;
    [[nodiscard]] std::string text() const;
    [[nodiscard]] Instant now() const noexcept { return cluster_.now(); }

private:
    struct Zombie {
        SimClient::Left left{};
        std::uint64_t deaths = 0;  // deaths of its shard up to then
    };
    void storm();
    void calm_down();
    void finish();
    void look_for_leftovers(ShardNumber shard);
    void step();
    void trouble();
    void fill();
    void exhaust(ShardNumber shard);
    // Steps until all clients and the filler have ended.
    void await_end();
    // Calls run(caller) for each client, and the filler if there is one.
    template <class Run>
    void for_each_caller(Run&& run) const;
    void forget_dead();
    void end(ShardNumber shard);
    void restart(ShardNumber shard);
    [[nodiscard]] bool any_fault() const;

    sim::Random random_;
    ShardCluster cluster_;
    std::vector<std::unique_ptr<SimClient>> clients_;
    const bool is_to_be_full_;
    std::unique_ptr<SimFiller> filler_{};
    std::vector<std::uint64_t> deaths_;  // by shard
    std::vector<bool> were_up_;
    std::vector<Zombie> zombies_;
    std::uint64_t last_client_ = 0;
    FsWorldResult result_{};
};

}  // namespace cairn::fs
