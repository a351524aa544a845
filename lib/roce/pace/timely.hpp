// Timely: congestion control by the round-trip time and its gradient (Mittal et al., SIGCOMM 2015, algorithm 1). It has
// the parameters of eRPC (Kalia et al., NSDI 2019).
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/roce/pace/congestion_control.hpp"

namespace cairn::roce {

struct TimelyParameters {
    double rate_min_bytes_per_s = 15e6;   // the floor
    double rate_step_bytes_per_s = 5e6;   // additive increase per least RTT
    Duration rtt_min = microseconds(2);   // of an empty network; shorter samples count as this
    Duration rtt_low = microseconds(50);  // below: increase, for any gradient
    Duration rtt_high = milliseconds(1);  // above: decrease, for any gradient
    std::uint32_t hai_threshold = 5;      // falling RTTs in a row that begin the hyperactive increase
    double hai_factor = 5;                // steps at a time in it
    double ewma_alpha = 0.46;             // weight of the newest RTT difference
    double beta = 0.26;                   // weight of a decrease
    double decrease_most = 0.5;           // no update leaves less than this of the rate
    // Decides between rtt_low and rtt_high by gradient and RTT together (Zhu et al., CoNEXT 2016). So the shares of
    // flows converge; with the original rule they depend on the order of events. eRPC leaves it off.
    bool patched = false;
    // Decides once per round trip by the least of the samples: a queue delays all of them, a host's pause some. The
    // original also decides once per round trip (its samples are of 16 to 64 KB). If false, it decides with each
    // sample, scaled by time (eRPC). The effect of a decision shows in samples only a round trip later. So decisions in
    // between count the same queue again and again. See timely_per_round_trip().
    bool per_round_trip = false;
    Duration gradient_unit = microseconds(2);  // divides differences of RTTs
};

constexpr TimelyParameters kTimely{};
static_assert(kTimely.rtt_min < kTimely.rtt_low && kTimely.rtt_low < kTimely.rtt_high);

// Returns parameters for flows with small packets and windows through one crowded link. With the parameters of eRPC 20
// to 100 flows at 25 Gbit/s swing together between an empty queue and full windows (cairn-sim --incast). The gradient
// unit of 2 us is a few packets of other flows, so that noise decides. Each sample takes 0.26 of the rate. Above
// rtt_high the cut is next to nothing, just where a deep cut is needed. Here
// - the patched rule decides once per round trip, with a gradient unit above the noise, and no limit at rtt_high;
// - a cut may go as deep as rtt_low to RTT: a flow that comes from link rate has far less under way than its rate
//   implies;
// - the step is a share of the link. One step per round trip takes long to grow back. After hai_threshold round trips
//   below rtt_low in a row it is hai_factor steps. Sooner, flows that were all cut at once would grow beyond their
//   share;
// - rtt_low is the time of kWindows windows of `window_bytes` on the link: that many flows wait for each other no
//   longer. It is never less than a few turns of two hosts' loops. Step, beta and the gradient unit are in proportion.
[[nodiscard]] constexpr TimelyParameters timely_per_round_trip(double link_rate_bytes_per_s,
                                                               std::size_t window_bytes) noexcept {
    constexpr double kWindows = 2;
    constexpr double kLeastNs = 40e3;
    const double low_ns =
        std::max(kLeastNs, kWindows * static_cast<double>(window_bytes) / link_rate_bytes_per_s * 1e9);
    const double scale = low_ns / kLeastNs;
    TimelyParameters parameters;
    parameters.rate_step_bytes_per_s = link_rate_bytes_per_s / 3000 * scale;
    parameters.rtt_low = Duration{static_cast<std::int64_t>(low_ns)};
    parameters.rtt_high = std::max(parameters.rtt_high, parameters.rtt_low * 2);
    parameters.ewma_alpha = 1;  // filtered already
    parameters.beta = 0.05 * scale;
    parameters.patched = true;
    parameters.per_round_trip = true;
    parameters.hai_threshold = 200;
    parameters.gradient_unit = parameters.rtt_low / 4;
    return parameters;
}

// A flow begins at link rate. While it stays there and RTTs are below rtt_low, nothing is computed and no state
// changes. The first other sample is compared with the last one that counted, at first with rtt_min. As in eRPC, a
// change is scaled by the time since the last one, up to rtt_min: samples may come per packet. Samples across the
// worker's own pauses are ignored (AckSample::across_stall). Congestion notifications are not Timely's signal and
// change nothing.
class Timely final : public CongestionControl {
public:
    // Makes a flow. The link rate is at least parameters.rate_min_bytes_per_s. `now` is the time of creation.
    Timely(double link_rate_bytes_per_s, Instant now, const TimelyParameters& parameters = kTimely) noexcept;

private:
    void handle_sent(std::size_t, Instant) noexcept override {}
    void handle_ack(const AckSample& sample, Instant now) noexcept override;
    void handle_cnp(Instant) noexcept override {}
    void handle_timeout(Instant) noexcept override {}

    void decide(Duration rtt, double weight) noexcept;
    void gather(Duration rtt, Instant now) noexcept;
    // Returns the rate that the sample alone calls for; `weight` in [0, 1] scales the change.
    [[nodiscard]] double judge_rate(Duration rtt, double weight) const noexcept;
    [[nodiscard]] double judge_by_gradient(Duration rtt, double weight) const noexcept;

    TimelyParameters parameters_;
    Duration previous_rtt_;
    Instant last_update_;
    double mean_difference_ns_ = 0;       // of consecutive RTTs, exponentially weighted
    Duration least_rtt_{};                // of the samples in this round trip
    std::uint32_t low_in_a_row_ = 0;      // decisions below rtt_low
    std::uint32_t falling_in_a_row_ = 0;  // RTTs each shorter than the one before
};

}  // namespace cairn::roce
