// Hosts whose endpoints call each other over rings, next to hostile peers, in a simulated world.
#pragma once

#include "rpc/sim/copyrpc_system.hpp"
#include "rpc/sim/linked_scenario.hpp"

namespace cairn::sim {

class CopyrpcUsers {
public:
    // `others`: see LinkedScenario.
    CopyrpcUsers(World& world, const CopyrpcPlan& plan, VerbsScenario* others = nullptr)
        : system_(world, plan), scenario_(world, plan.users, system_, others) {}

    [[nodiscard]] LinkedScenario& scenario() noexcept { return scenario_; }
    [[nodiscard]] const LinkedCounters& counters() const noexcept { return scenario_.counters(); }
    [[nodiscard]] const CopyrpcCounters& own_counters() const noexcept { return system_.counters(); }
    [[nodiscard]] const OneSidedCounters& one_sided_counters() const noexcept { return system_.one_sided_counters(); }

private:
    CopyrpcSystem system_;
    LinkedScenario scenario_;
};

// A world with users of copyrpc only.
class CopyrpcWorld final : public World {
public:
    explicit CopyrpcWorld(std::uint64_t seed) : CopyrpcWorld(seed, CopyrpcPlan::from_seed(seed)) {}
    [[nodiscard]] const CopyrpcUsers& users() const noexcept { return users_; }

private:
    CopyrpcWorld(std::uint64_t seed, const CopyrpcPlan& plan)
        : World(seed, plan.users.shape_of_world(seed), LinkedPlan::mix_of_world(seed)), users_(*this, plan) {
        add(users_.scenario());
    }

    CopyrpcUsers users_;
};

}  // namespace cairn::sim
