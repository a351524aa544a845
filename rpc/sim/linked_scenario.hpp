// Hosts whose endpoints call each other over reliable connections, next to hostile peers, in a simulated world. The
// network loses, duplicates, damages, delays and reorders packets. Processes stall, die and begin anew.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/sim/verbs/verbs_scenario.hpp"
#include "rpc/sim/linked_serving.hpp"

namespace cairn::sim {

class LinkedScenario final : public Scenario {
public:
    // Makes the scenario. The system outlives it. If `others` is not nullptr, it has the connections of each worker. It
    // comes before this scenario in the world.
    LinkedScenario(World& world, const LinkedPlan& plan, LinkedSystem& system, VerbsScenario* others);

    [[nodiscard]] const LinkedCounters& counters() const noexcept { return oracle_.counters(); }
    [[nodiscard]] std::string text() const override;

    void start(Node& host) override;
    void stop(Node& host) override;
    void act(Node& host) override;
    void after_turn(Node& host) override;
    void on_delivery(std::size_t to, const Frame& frame) override;
    [[nodiscard]] Instant next_act(const Node& host) const override;
    void on_heal() override;
    // linked_progress.cpp
    void check_progress() override;
    void wind_up() override;
    void check_end() override;

private:
    [[nodiscard]] LinkedNode& at(const Node& host) const { return *nodes_[host.index()]; }
    void forget_calls(LinkedNode& node);
    void count(LinkedNode& node);

    // linked_progress.cpp
    template <class Done>
    void run_until(Done&& done, const char* promise);
    void run_until_answered();
    [[nodiscard]] std::size_t own_sessions() const;
    [[nodiscard]] std::size_t sessions_open() const;
    [[nodiscard]] bool is_whole() const;
    void call_and_wait();
    void use_all();
    void end_all();
    void connect_each();
    void check_nothing_left();

    World& world_;
    Random& random_;
    LinkedPlan plan_;
    LinkedSystem& system_;
    VerbsScenario* others_;
    VerbsProcesses processes_;
    LinkedOracle oracle_;
    LinkedCalling calling_;
    LinkedServing serving_;
    std::vector<std::unique_ptr<LinkedNode>> nodes_;  // by worker
    bool active_ = true;
};

}  // namespace cairn::sim
