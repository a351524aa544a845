// Hosts whose endpoints call each other over rings, beside strangers who break the rules, in a simulated world: the
// network loses, doubles, damages, delays and reorders, and processes stall, die and begin anew.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/sim/verbs/verbs_scenario.hpp"
#include "rpc/sim/copyrpc_serving.hpp"

namespace cairn::sim {

class CopyrpcScenario final : public Scenario {
public:
    // `others` has the connections of each worker if it is not nullptr. It stands before this scenario in the world.
    CopyrpcScenario(World& world, const CopyrpcPlan& plan, VerbsScenario* others = nullptr);

    [[nodiscard]] const CopyrpcCounters& counters() const noexcept { return oracle_.counters(); }
    [[nodiscard]] std::string text() const override;

    void start(Node& host) override;
    void stop(Node& host) override;
    void act(Node& host) override;
    void after_turn(Node& host) override;
    [[nodiscard]] Instant next_act(const Node& host) const override;
    void on_heal() override;
    // copyrpc_progress.cpp
    void check_progress() override;
    void wind_up() override;
    void check_end() override;

private:
    [[nodiscard]] CopyrpcNode& at(const Node& host) const { return *nodes_[host.index()]; }
    void make_pool(CopyrpcNode& node);
    void forget_calls(CopyrpcNode& node);
    void count(CopyrpcNode& node);

    // copyrpc_progress.cpp
    template <class Done>
    void run_until(Done&& done, const char* promise);
    void run_until_answered();
    [[nodiscard]] std::size_t own_sessions() const;
    [[nodiscard]] std::size_t sessions_open() const;
    [[nodiscard]] bool is_whole() const;
    void use_all();
    void end_all();
    void connect_each();
    void check_nothing_left();

    World& world_;
    Random& random_;
    CopyrpcPlan plan_;
    VerbsScenario* others_;
    VerbsProcesses processes_;
    CopyrpcOracle oracle_;
    CopyrpcCalling calling_;
    CopyrpcServing serving_;
    std::vector<std::unique_ptr<CopyrpcNode>> nodes_;  // by worker
    bool active_ = true;
};

// A world with users of copyrpc only.
class CopyrpcWorld final : public World {
public:
    explicit CopyrpcWorld(std::uint64_t seed);
    [[nodiscard]] const CopyrpcScenario& users() const noexcept { return users_; }

private:
    CopyrpcScenario users_;
};

}  // namespace cairn::sim
