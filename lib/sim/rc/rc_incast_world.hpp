// Incast of connections in virtual time: many clients write to one server behind one port of a switch. Each client has
// an engine and a reliable connection.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "lib/sim/actor.hpp"
#include "lib/sim/incast_result.hpp"
#include "lib/sim/sim_port.hpp"
#include "lib/telemetry/histogram.hpp"

namespace cairn::sim {

struct RcIncastPlan {
    std::size_t clients = 20;
    roce::ConnectionControl control = roce::ConnectionControl::None;
    std::uint16_t path_mtu_bytes = 1024;
    // The window of each connection. All windows leave before the first notification comes. So the part beyond the
    // switch's buffer is lost, with congestion control or without.
    std::uint32_t window_bytes = 256 * 1024;
    Duration warm_up = milliseconds(20);  // not measured
    Duration measured = milliseconds(60);
    std::uint64_t seed = 1;
    SwitchShape shape = kIncastSwitch;
};

// Each client has two WRITEs under way, each of 1 to 8 MB by the seed. After the measurement no more are posted, and
// the WRITEs under way complete.
class RcIncastWorld {
public:
    static constexpr std::size_t kMaxClients = Network::kMaxNodes - 1;

    explicit RcIncastWorld(const RcIncastPlan& plan);
    RcIncastWorld(const RcIncastWorld&) = delete;
    RcIncastWorld& operator=(const RcIncastWorld&) = delete;
    [[nodiscard]] IncastResult run();
    // These are for use after run(). finished(): all posted requests have completed. contents_right(): the server has
    // the bytes that were written.
    [[nodiscard]] bool finished() const noexcept { return under_way_ == 0; }
    [[nodiscard]] bool contents_right() const noexcept { return target_ == source_; }
    [[nodiscard]] std::uint64_t count(roce::rc::RcCounter which) const noexcept;  // all nodes together

private:
    static constexpr std::size_t kTimedPackets = 1U << 16U;  // more than any window here
    struct Node {
        explicit Node(Network& network, std::size_t index, const RcIncastPlan& plan);

        SimPort port;
        roce::CompletionQueue sends{1024};
        roce::CompletionQueue receives{1024};
        std::unique_ptr<worker::Worker> worker;
        roce::Engine& engine;
        std::unique_ptr<Actor> actor;  // a client's user
        roce::Pd pd;
        Rkey key{};
        Instant wakes{};
    };
    // A client's connection, and the state of its packets on their way.
    struct Flow {
        roce::Engine::RcQp* here = nullptr;
        roce::Engine::RcQp* there = nullptr;
        std::vector<Instant> sent_at = std::vector<Instant>(kTimedPackets);  // by PSN
        Psn sent{};                                                          // the one after the newest packet
        Psn acknowledged{};  // the one after the last acknowledged packet
        Psn clear_from{};    // packets before it may have been sent twice (Karn)
        std::uint64_t resent = 0;
        Psn measured_from{};  // the server's value when measuring began
    };

    void connect(std::size_t client);
    void bring_up(Node& node, roce::Engine::RcQp& qp, const roce::Engine::RcQp& peer, std::size_t to);
    void post(std::size_t client);
    void turn(std::size_t index);
    void take_completions(std::size_t client);
    void note_sent(std::size_t client);
    void note_arrival(std::size_t client, const Frame& frame);
    void run_until(Instant end);
    [[nodiscard]] IncastResult counted() const;
    void begin_measuring();
    [[nodiscard]] IncastResult result() const;
    [[nodiscard]] std::uint64_t resent() const noexcept;

    RcIncastPlan plan_;
    Network network_;
    Random random_;
    std::vector<std::uint8_t> source_;          // source of all clients' WRITEs
    std::vector<std::uint8_t> target_;          // all clients write the same bytes to the same place
    std::vector<std::unique_ptr<Node>> nodes_;  // the server is the last
    std::vector<Flow> flows_;
    telemetry::Histogram round_trips_;
    Instant now_{1'000'000};
    bool posting_ = true;
    std::uint64_t under_way_ = 0;
    IncastResult total_;   // calls and failed calls
    IncastResult before_;  // counters when measuring began
};

}  // namespace cairn::sim
