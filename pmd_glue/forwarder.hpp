// Forwarder: what one worker of cairn-testpmd does with the frames of its queue: the forward modes that packet
// benches and cable checks need.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/telemetry/counters.hpp"
#include "pmd_glue/device.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/worker.hpp"

namespace cairn::pmd {

// X(enumerator, name, what it does)
#define CAIRN_FORWARD_MODES(X)                                                        \
    X(Io, "io", "frames go out as they came, to the other port of their pair")        \
    X(MacSwap, "macswap", "source and destination MAC change places")                 \
    X(IcmpEcho, "icmpecho", "answers ARP, neighbour solicitations and pings to --ip") \
    X(RxOnly, "rxonly", "receives and drops")                                         \
    X(TxOnly, "txonly", "sends RoCEv2 UD datagrams of --frame-bytes to --peer-mac")   \
    X(RoceEcho, "roce-echo", "sends each sound RoCEv2 UD datagram back to its queue pair")

enum class ForwardMode : std::uint8_t {
#define CAIRN_X(enumerator, name, text) enumerator,
    CAIRN_FORWARD_MODES(CAIRN_X)
#undef CAIRN_X
};

[[nodiscard]] std::optional<ForwardMode> forward_mode_named(std::string_view name) noexcept;
[[nodiscard]] std::string_view name_of(ForwardMode mode) noexcept;

// X(enumerator, counter name, what non-zero means)
#define CAIRN_FORWARD_COUNTERS(X)                                          \
    X(RxPackets, "rx_packets", "frames received")                          \
    X(RxBytes, "rx_bytes", "their bytes, without FCS")                     \
    X(TxPackets, "tx_packets", "frames given to a device")                 \
    X(TxBytes, "tx_bytes", "their bytes, without FCS")                     \
    X(TxDropped, "tx_dropped", "frames that a full transmit ring refused") \
    X(Ignored, "ignored", "frames that the mode has no use for")

CAIRN_DECLARE_COUNTERS(ForwardCounter, CAIRN_FORWARD_COUNTERS);

struct ForwardConfig {
    ForwardMode mode = ForwardMode::Io;
    std::uint16_t burst = 32;
    std::uint16_t frame_bytes = 114;  // txonly
    net::IpAddress local{};           // of port 0; the next ports count up
    net::IpAddress peer{};            // txonly
    net::MacAddress peer_mac = net::kBroadcastMac;
};

// Ports are paired 0-1, 2-3 ...; a last one without partner is its own. Driven by one worker, which owns queue
// `worker` of each device.
class Forwarder final : public WorkerTask {
public:
    Forwarder(const ForwardConfig& config, std::span<const std::unique_ptr<Device>> devices, std::uint16_t worker);
    ~Forwarder() override;

    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] bool finished(Instant) const noexcept override { return false; }
    [[nodiscard]] const telemetry::CounterSet<ForwardCounter>& counters(std::size_t port) const noexcept {
        return lanes_[port]->counters;
    }

private:
    static constexpr std::size_t kMaxBurst = 64;
    struct Lane {  // one port
        Device* device;
        std::unique_ptr<EthdevPort> port;  // roce-echo, icmpecho
        telemetry::CounterSet<ForwardCounter> counters;
        std::vector<std::uint8_t> frame;  // txonly: what to send
    };

    [[nodiscard]] bool forward(Lane& from, Lane& to) noexcept;
    [[nodiscard]] bool transmit_only(Lane& lane) noexcept;
    [[nodiscard]] bool echo_roce(Lane& lane, Instant now) noexcept;
    void send(Lane& lane, rte_mbuf** frames, std::uint16_t count) const noexcept;

    ForwardConfig config_;
    std::uint16_t worker_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::array<port::PacketRef, kMaxBurst> burst_{};
};

}  // namespace cairn::pmd
