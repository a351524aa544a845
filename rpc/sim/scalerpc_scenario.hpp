// Hosts whose endpoints call each other in slices of time, next to hostile peers, in a simulated world.
#pragma once

#include "rpc/sim/linked_scenario.hpp"
#include "rpc/sim/scalerpc_system.hpp"

namespace cairn::sim {

class ScalerpcUsers {
public:
    // `others`: see LinkedScenario.
    ScalerpcUsers(World& world, const ScalerpcPlan& plan, VerbsScenario* others = nullptr)
        : system_(world, plan), scenario_(world, plan.users, system_, others) {}

    [[nodiscard]] LinkedScenario& scenario() noexcept { return scenario_; }
    [[nodiscard]] const LinkedCounters& counters() const noexcept { return scenario_.counters(); }
    [[nodiscard]] const ScalerpcCounters& own_counters() const noexcept { return system_.counters(); }

private:
    ScalerpcSystem system_;
    LinkedScenario scenario_;
};

// A world with users of ScaleRPC only.
class ScalerpcWorld final : public World {
public:
    explicit ScalerpcWorld(std::uint64_t seed) : ScalerpcWorld(seed, ScalerpcPlan::from_seed(seed)) {}
    [[nodiscard]] const ScalerpcUsers& users() const noexcept { return users_; }

private:
    ScalerpcWorld(std::uint64_t seed, const ScalerpcPlan& plan)
        : World(seed, shape_of(seed, plan), LinkedPlan::mix_of_world(seed)), users_(*this, plan) {
        add(users_.scenario());
    }
    // Gives a server more clients than a group has.
    [[nodiscard]] static WorldShape shape_of(std::uint64_t seed, const ScalerpcPlan& plan) {
        WorldShape shape = plan.users.shape_of_world(seed);
        shape.engine.max_queue_pairs = 64;
        shape.engine.max_regions = 128;
        return shape;
    }

    ScalerpcUsers users_;
};

}  // namespace cairn::sim
