// Users connect the queue pairs of their hosts to one another. The network loses, doubles, damages, delays and
// reorders. The processes stall, die and begin anew. The users send, write, read and count through their connections,
// disconnect, give up and connect again. The promises of a connection hold as long as it lives, and both ends learn of
// its end.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lib/sim/verbs/verbs_connections.hpp"
#include "lib/sim/verbs/verbs_processes.hpp"
#include "lib/sim/verbs/verbs_stranger.hpp"

namespace cairn::sim {

class VerbsScenario final : public Scenario {
public:
    VerbsScenario(World& world, const VerbsPlan& plan);

    [[nodiscard]] const VerbsCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] const VerbsSpeech& speech() const noexcept { return speech_; }
    [[nodiscard]] const VerbsForgeries& forgeries() const noexcept { return stranger_.forgeries(); }
    [[nodiscard]] const VerbsMail& mail() const noexcept { return processes_.mail(); }
    // These are for other scenarios with connections on the same workers: the connections of a worker, and whether it
    // listens.
    [[nodiscard]] connections::Home& home_of(const Node& node) const { return *hosts_[node.index()]->home; }
    [[nodiscard]] const VerbsProcesses& processes() const noexcept { return processes_; }
    [[nodiscard]] std::string text() const override;

    // In verbs_scenario.cpp.
    void start(Node& node) override;
    void stop(Node& node) override;
    void act(Node& node) override;
    void on_delivery(std::size_t to, const Frame& frame) override;
    void after_turn(Node& node) override;
    void on_step() override;
    [[nodiscard]] Instant next_act(const Node& node) const override;
    void on_heal() override;
    // verbs_progress.cpp
    void check_progress() override;
    void wind_up() override;
    void check_end() override;

private:
    void act(VerbsHost& host);
    void give_up_unsent(VerbsHost& host);
    void act(VerbsHost& host, VerbsEnd& end);

    // verbs_progress.cpp
    [[nodiscard]] bool has_room(std::size_t place) const;
    [[nodiscard]] bool settled(const VerbsHost& host);
    void run_until_settled(const char* promise);
    [[nodiscard]] std::size_t live_ends() const;
    std::size_t connect_all();
    void use_all();

    World& world_;
    Random& random_;
    VerbsPlan plan_;
    std::vector<std::unique_ptr<VerbsHost>> hosts_;  // by worker
    VerbsProcesses processes_;
    VerbsStranger stranger_;
    VerbsEnds ends_;
    VerbsCounters counters_;
    VerbsSpeech speech_;
    VerbsDatagrams datagrams_;
    VerbsTraffic traffic_;
    VerbsConnections connections_;
};

// A world with these users only.
class VerbsWorld final : public World {
public:
    explicit VerbsWorld(std::uint64_t seed);
    [[nodiscard]] const VerbsScenario& users() const noexcept { return users_; }

private:
    VerbsScenario users_;
};

}  // namespace cairn::sim
