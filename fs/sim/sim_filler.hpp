// A client of a simulated file system that keeps its stores full.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fs/sim/sim_caller.hpp"
#include "fs/sim/sim_refusals.hpp"

namespace cairn::fs {

// Puts data and names into all shards until none takes any more. From then on it removes some and adds others, so that
// now and then there is a little room. In the end it removes everything. No removal may be refused for want of room.
class SimFiller final : public SimCaller {
public:
    SimFiller(ShardCluster& cluster, std::uint64_t number, std::uint64_t seed);

    // True if all shards have refused data, and names.
    [[nodiscard]] bool is_full() const noexcept { return is_full_; }
    // Removes everything, and ends.
    bool stops = false;
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
    // Begins again after its end. All shards must take data again; it then removes the data and ends.
    void come_back();
    [[nodiscard]] const std::vector<std::string>& faults() const noexcept { return faults_; }
    [[nodiscard]] const SimRefusals& refusals() const noexcept { return refusals_; }

private:
    LoneTask run();
    LoneTask run_again();
    Co<int> fill();
    Co<int> change_something();
    Co<int> remove_all();
    // Each yields 0, or the errno of the first request that failed.
    Co<int> add_file(std::uint32_t chunks);
    Co<int> add_link();
    Co<int> remove_last();
    [[nodiscard]] std::string new_name();
    [[nodiscard]] ShardNumber owner_of(const std::string& name) const { return cluster_.owner_of_name(kRoot, name); }

    sim::Random random_;
    std::uint32_t made_ = 0;
    std::vector<std::string> names_;
    std::uint64_t to_remove_ = 0;          // files to remove before others are added
    std::set<ShardNumber> without_space_;  // shards that have refused data
    std::set<ShardNumber> without_room_;   // shards that have refused names
    bool is_full_ = false;
    bool has_ended_ = false;
    std::vector<std::string> faults_;
    SimRefusals refusals_;
};

}  // namespace cairn::fs
