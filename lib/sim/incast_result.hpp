// The common parts of the incast worlds: their switch, and their result.
#pragma once

#include <cstdint>
#include <span>

#include "lib/base/time.hpp"
#include "lib/sim/link.hpp"
#include "lib/sim/switch.hpp"
#include "lib/telemetry/histogram.hpp"

namespace cairn::sim {

// The thresholds of the switch. DCQCN's paper marks all frames above 200 KB and 1 % just below that (at 40 Gbit/s).
// That cliff cuts many flows all at once. A slope without a cliff does not. 400 KB here are 128 us.
constexpr SwitchShape kIncastSwitch{.ecn_low_bytes = 5'000, .ecn_high_bytes = 400'000, .ecn_most_per_million = 300'000};

struct IncastResult {
    double goodput_bits_per_s = 0;  // payload that reached the server, each byte once
    double goodput_of_link = 0;
    double fairness = 0;  // Jain's index of the clients' shares: 1 when equal
    Duration rtt_p50{};   // of each packet, from its departure to its acknowledgement
    Duration rtt_p99{};
    std::uint64_t retransmits = 0;
    std::uint64_t dropped = 0;  // by the switch
    std::uint64_t marked = 0;   // by the switch
    std::uint64_t queue_most_bytes = 0;
    std::uint64_t calls = 0;  // calls or messages
    std::uint64_t calls_failed = 0;
    std::uint64_t frames = 0;

    // Computes goodput and fairness. `bytes` is what each client brought the server during `measured`.
    void take_shares(std::span<const double> bytes, Duration measured, std::uint64_t link_bits_per_second) noexcept {
        double sum = 0;
        double squares = 0;
        for (const double share : bytes) {
            sum += share;
            squares += share * share;
        }
        goodput_bits_per_s = sum * 8e9 / static_cast<double>(measured.ns);
        goodput_of_link = goodput_bits_per_s / static_cast<double>(link_bits_per_second);
        fairness = squares > 0 ? sum * sum / (squares * static_cast<double>(bytes.size())) : 0;
    }
    void take_round_trips(const telemetry::Histogram& ns) noexcept {
        rtt_p50 = nanoseconds(static_cast<std::int64_t>(ns.percentile(0.5)));
        rtt_p99 = nanoseconds(static_cast<std::int64_t>(ns.percentile(0.99)));
    }
    void take_totals(const LinkCounters& totals) noexcept {
        dropped = totals.tail_dropped;
        marked = totals.marked;
        frames = totals.offered;
    }
    // Subtracts earlier values of the counters that count up.
    void subtract(const IncastResult& before) noexcept {
        retransmits -= before.retransmits;
        dropped -= before.dropped;
        marked -= before.marked;
        calls -= before.calls;
        frames -= before.frames;
    }
};

}  // namespace cairn::sim
