// Users who connect the queue pairs of their hosts to one another, over a network that loses, doubles, damages, delays
// and reorders, and between processes that stall, die and begin anew. They send, write, read and count through their
// connections, disconnect, give up and connect again. What holds of a connection holds as long as it lives, and both
// ends learn of its end.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lib/sim/verbs/verbs_traffic.hpp"

namespace cairn::sim {

struct VerbsPlan {
    std::uint32_t path_mtu_bytes = 4096;  // that the ports carry
    cm::Config cm{};
    bool lazy = false;    // users post receive requests late
    bool slow = false;    // and take long to answer requests
    bool hasty = false;   // and give up connections instead of ending them
    bool shares = false;  // some queue pairs of a host have one receive queue
    bool moody = false;   // hosts end all they have, and begin anew in the same process
    bool alone = true;    // nothing else is on the workers

    [[nodiscard]] static VerbsPlan from_seed(std::uint64_t seed);
    // With managers that wait for milliseconds only.
    [[nodiscard]] static VerbsPlan quick_from_seed(std::uint64_t seed);
    // In which all of a broken connection has come to its end.
    [[nodiscard]] Duration longest_end() const;
};

class VerbsScenario final : public Scenario {
public:
    VerbsScenario(World& world, const VerbsPlan& plan);

    [[nodiscard]] const VerbsCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] std::string text() const override;

    // verbs_scenario.cpp
    void start(Node& node) override;
    void stop(Node& node) override;
    void act(Node& node) override;
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
    void act(VerbsHost& host, VerbsEnd& end);

    // verbs_connections.cpp: how connections begin and end
    VerbsEnd& add_end(VerbsHost& host, std::size_t peer_host);
    [[nodiscard]] verbs::ConnectionChoice choose(std::span<const std::uint8_t> hello);
    void connect(VerbsHost& host, std::size_t to);
    void answer(VerbsHost& host, const VerbsAsked& asked);
    void leave(VerbsHost& host, VerbsEnd& end);
    void give_up(VerbsHost& host, VerbsEnd& end);
    void destroy(VerbsHost& host, VerbsEnd& end);
    void hear(VerbsHost& host);
    void on_event(VerbsHost& host, const cm::Requested& event);
    void on_established(VerbsHost& host, VerbsEnd& end, const cm::Established& event);
    void on_event_of(VerbsHost& host, const cm::Event& event, cm::ConnectionId id);

    // verbs_progress.cpp
    [[nodiscard]] bool settled(const VerbsHost& host);
    void run_until_settled(const char* promise);
    void connect_all();
    void use_all();

    World& world_;
    Random& random_;
    VerbsPlan plan_;
    std::vector<std::unique_ptr<VerbsHost>> hosts_;
    VerbsEnds ends_;
    VerbsCounters counters_;
    VerbsTraffic traffic_;
};

// These users alone.
class VerbsWorld final : public World {
public:
    explicit VerbsWorld(std::uint64_t seed);
    [[nodiscard]] const VerbsScenario& users() const noexcept { return users_; }

private:
    VerbsScenario users_;
};

}  // namespace cairn::sim
