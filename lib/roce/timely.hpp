// Timely: congestion control by the round-trip time and its gradient (Mittal et al., SIGCOMM 2015, algorithm 1), with
// the parameters of eRPC (Kalia et al., NSDI 2019).
#pragma once

#include <cstdint>

#include "lib/roce/congestion_control.hpp"

namespace cairn::roce {

struct TimelyParameters {
    double rate_min_bytes_per_s = 15e6;   // the floor
    double rate_step_bytes_per_s = 5e6;   // additive increase per least RTT
    Duration rtt_min = microseconds(2);   // of an empty network; shorter samples count as this
    Duration rtt_low = microseconds(50);  // below: increase, whatever the gradient
    Duration rtt_high = milliseconds(1);  // above: decrease, whatever the gradient
    std::uint32_t hai_threshold = 5;      // falling RTTs in a row that begin the hyperactive increase
    double hai_factor = 5;                // steps at a time in it
    double ewma_alpha = 0.46;             // weight of the newest RTT difference
    double beta = 0.26;                   // weight of a decrease
    double decrease_most = 0.5;           // no update leaves less than this of the rate
    // Decides between rtt_low and rtt_high by gradient and RTT together (Zhu et al., CoNEXT 2016), which
    // makes the shares of flows converge; the original's depend on the order of events. eRPC leaves it off.
    bool patched = false;
};

constexpr TimelyParameters kTimely{};
static_assert(kTimely.rtt_min < kTimely.rtt_low && kTimely.rtt_low < kTimely.rtt_high);

// A flow begins at link rate. As long as it stays there and RTTs are below rtt_low, nothing is computed and no state
// changes: the first sample that is not so is compared with the last one that counted, at first with rtt_min. As in
// eRPC, a change is scaled by the time since the last one, up to rtt_min: samples may come per packet. Samples across
// the worker's own pauses are ignored (AckSample::across_stall). Congestion notifications are not Timely's signal and
// change nothing.
class Timely final : public CongestionControl {
public:
    // The link rate is at least parameters.rate_min_bytes_per_s. `now` is the time of creation.
    Timely(double link_rate_bytes_per_s, Instant now, const TimelyParameters& parameters = kTimely) noexcept;

private:
    void handle_sent(std::size_t, Instant) noexcept override {}
    void handle_ack(const AckSample& sample, Instant now) noexcept override;
    void handle_cnp(Instant) noexcept override {}
    void handle_timeout(Instant) noexcept override {}

    // The rate that the sample alone asks for; `weight` in [0, 1] scales the change.
    [[nodiscard]] double judge_rate(Duration rtt, double weight) const noexcept;
    [[nodiscard]] double judge_by_gradient(Duration rtt, double weight) const noexcept;

    TimelyParameters parameters_;
    Duration previous_rtt_;
    Instant last_update_;
    double mean_difference_ns_ = 0;       // of consecutive RTTs, exponentially weighted
    std::uint32_t falling_in_a_row_ = 0;  // RTTs each shorter than the one before
};

}  // namespace cairn::roce
