// The modes and counters of the workers of cairn-testpmd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/telemetry/counters.hpp"
#include "lib/worker/loop.hpp"

namespace cairn::pmd {

// X(enumerator, name, what it does)
#define CAIRN_FORWARD_MODES(X)                                                        \
    X(Io, "io", "frames go out as they came, to the other port of their pair")        \
    X(MacSwap, "macswap", "source and destination MAC change places")                 \
    X(IcmpEcho, "icmpecho", "answers ARP, neighbour solicitations and pings to --ip") \
    X(RxOnly, "rxonly", "receives and drops")                                         \
    X(TxOnly, "txonly", "sends RoCEv2 UD datagrams of --frame-bytes to --peer-mac")   \
    X(RoceEcho, "roce-echo", "sends each sound RoCEv2 UD datagram back to its queue pair; over sockets too")

enum class ForwardMode : std::uint8_t {
#define CAIRN_X(enumerator, name, text) enumerator,
    CAIRN_FORWARD_MODES(CAIRN_X)
#undef CAIRN_X
};

[[nodiscard]] std::optional<ForwardMode> forward_mode_named(std::string_view name) noexcept;
[[nodiscard]] std::string_view name_of(ForwardMode mode) noexcept;
// Returns whether the mode works on a Port and not on a device's bare frames.
[[nodiscard]] constexpr bool is_echo(ForwardMode mode) noexcept {
    return mode == ForwardMode::RoceEcho || mode == ForwardMode::IcmpEcho;
}

// X(enumerator, counter name, what non-zero means)
#define CAIRN_FORWARD_COUNTERS(X)                                          \
    X(RxPackets, "rx_packets", "frames received")                          \
    X(RxBytes, "rx_bytes", "their bytes, without FCS")                     \
    X(TxPackets, "tx_packets", "frames given to a port")                   \
    X(TxBytes, "tx_bytes", "their bytes, without FCS")                     \
    X(TxDropped, "tx_dropped", "frames that a full transmit ring refused") \
    X(Ignored, "ignored", "frames that the mode has no use for")

CAIRN_DECLARE_COUNTERS(ForwardCounter, CAIRN_FORWARD_COUNTERS);

// One worker in any mode. It ends when the program is asked to stop.
class ForwardTask : public worker::Task {
public:
    [[nodiscard]] bool finished(Instant) const noexcept override { return false; }
    [[nodiscard]] virtual const telemetry::CounterSet<ForwardCounter>& counters(std::size_t port) const noexcept = 0;
    // Returns the drops at this port, one line for each reason. Called after the task has stopped.
    [[nodiscard]] virtual std::string reasons_text(std::size_t port) const;
};

}  // namespace cairn::pmd
