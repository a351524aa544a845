// Incast: many clients of production eRPC send to one server at one port of a switch. Each has one session and one
// large request under way. The experiment of the eRPC paper (Kalia et al., NSDI 2019, 6.5), in virtual time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/sim/aligned_memory.hpp"
#include "lib/sim/incast_result.hpp"
#include "lib/sim/sim_port.hpp"
#include "lib/telemetry/histogram.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::sim {

struct IncastPlan {
    std::size_t clients = 20;
    erpc::CongestionAlgorithm algorithm = erpc::CongestionAlgorithm::None;
    std::uint16_t path_mtu_bytes = 1024;
    std::uint16_t credits = erpc::kDefaultCredits;
    std::uint32_t request_bytes = 8'000'000;
    Duration warm_up = milliseconds(20);  // not measured
    Duration measured = milliseconds(60);
    Duration server_turn{};  // length of a slow server's turn, which takes 16 packets; 0: a turn takes all at once
    std::uint64_t seed = 1;
    SwitchShape shape = kIncastSwitch;
};

// The eRPC paper's measurements without and with Timely, with packets of 1 KB.
struct IncastPaper {
    std::size_t clients;
    double goodput_gbit_s;  // with congestion control
    double rtt_us;          // median, with congestion control
    double rtt_without_us;  // median, without
};
constexpr std::array<IncastPaper, 3> kIncastPaper{{{20, 21.8, 39, 202}, {50, 18.4, 34, 524}, {100, 22.8, 349, 1056}}};

[[nodiscard]] std::string_view text_of(erpc::CongestionAlgorithm algorithm) noexcept;

class IncastWorld {
public:
    static constexpr std::size_t kMaxClients = Network::kMaxNodes - 1;

    explicit IncastWorld(const IncastPlan& plan);
    IncastWorld(const IncastWorld&) = delete;
    IncastWorld& operator=(const IncastWorld&) = delete;
    [[nodiscard]] IncastResult run();

private:
    struct Node {
        IncastWorld* world = nullptr;
        std::size_t index = 0;
        std::unique_ptr<SimPort> port;
        AlignedMemory memory;  // memory of the pool
        std::optional<rpc::MsgPool> pool;
        std::unique_ptr<worker::Worker> worker;
        std::unique_ptr<erpc::Endpoint> endpoint;
        SessionId session{};
    };
    // The packets of a client's request that have come, so that goodput counts each packet once.
    struct Arrivals {
        std::uint64_t request_number = 0;
        std::vector<bool> seen;
        std::uint64_t bytes = 0;  // payload
    };
    void start(Node& node, std::size_t pool_bytes);
    void connect(Node& client);
    void post(Node& client);
    void answer(const erpc::Request& request);
    void turn(Node& node);
    [[nodiscard]] bool is_due(std::size_t node) const noexcept;
    void run_until(Instant end);
    void count_arrival(const Frame& frame);
    [[nodiscard]] IncastResult counted() const;
    void begin_measuring();
    [[nodiscard]] IncastResult result() const;
    [[nodiscard]] std::uint64_t retransmits() const noexcept;

    IncastPlan plan_;
    Network network_;
    std::vector<std::uint8_t> request_;  // the request that all clients send
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<Instant> wakes_;  // when each node's worker has something to do
    std::vector<Arrivals> arrivals_;
    telemetry::Histogram round_trips_;
    Instant now_{1'000'000};
    Instant server_free_{};  // end of the server's turn under way
    IncastResult before_;    // counters when measuring began
    std::uint64_t calls_ = 0;
    std::uint64_t calls_failed_ = 0;
};

}  // namespace cairn::sim
