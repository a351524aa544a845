// DCQCN: congestion control by ECN marks and congestion notification packets (Zhu et al., SIGCOMM 2015, section 3). The
// switch marks packets. The receiver (notification point) answers marks with CNPs. The sender (reaction point) cuts its
// rate at a CNP and recovers by a timer and a byte counter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "lib/roce/pace/congestion_control.hpp"

namespace cairn::roce {

// The paper's values, unless another origin is named.
struct DcqcnParameters {
    double alpha_gain = 1.0 / 256;                // g: weight of the newest observation in alpha
    Duration alpha_period = microseconds(55);     // after this time without a CNP alpha decays once
    Duration increase_period = microseconds(55);  // the timer's rounds
    std::uint64_t increase_bytes = 10'000'000;    // the byte counter's rounds
    std::uint32_t fast_recovery_rounds = 5;       // F
    double rate_step_bytes_per_s = 5e6;           // additive: 40 Mbit/s
    double rate_hyper_step_bytes_per_s = 50e6;    // ours: ten additive steps; the paper gives no number
    double rate_min_bytes_per_s = 15e6;           // ours: the floor is Timely's
    Duration cnp_interval = microseconds(50);     // the notification point's
};

constexpr DcqcnParameters kDcqcn{};

// Scales the paper's step with the link. The paper's 40 Mbit/s are a thousandth of its link. At 25 Gbit/s 50 flows
// would add 8 % of the link in each round, and the queue would swing too far (cairn-sim --incast). On a link slower
// than the floor, the link's rate is the floor.
[[nodiscard]] constexpr DcqcnParameters dcqcn_for_link(double link_rate_bytes_per_s) noexcept {
    DcqcnParameters parameters;
    parameters.rate_step_bytes_per_s = link_rate_bytes_per_s / 1000;
    parameters.rate_hyper_step_bytes_per_s = parameters.rate_step_bytes_per_s * 10;
    parameters.rate_min_bytes_per_s = std::min(parameters.rate_min_bytes_per_s, link_rate_bytes_per_s);
    return parameters;
}

// The reaction point of one flow. Begins at link rate, alpha 1. Round-trip times are not its signal and change nothing.
//
// A CNP makes the present rate the target and cuts the rate by alpha/2; then both counters of rounds begin anew. Each
// round of the timer or the byte counter halves the distance to the target. The target itself rises by a step once one
// of the counters has counted F rounds, and by hyper steps once both have.
//
// Departs: within a step of link rate a flow is uncongested and its timers end, since halving never arrives. A timer
// that is late catches up in at most link rate / step + 64 rounds.
class Dcqcn final : public CongestionControl {
public:
    // Makes a flow. The link rate is at least parameters.rate_min_bytes_per_s. `now` is the time of creation.
    Dcqcn(double link_rate_bytes_per_s, Instant now, const DcqcnParameters& parameters = kDcqcn) noexcept;

    // Returns the estimate of congestion, in [0, 1], as a CNP at `now` would find it.
    [[nodiscard]] double alpha(Instant now) const noexcept;
    // Returns the rate that recovery aims at, in [rate, link rate].
    [[nodiscard]] double target_bytes_per_s() const noexcept { return target_bytes_per_s_; }

private:
    void handle_sent(std::size_t bytes, Instant now) noexcept override;
    void handle_ack(const AckSample&, Instant) noexcept override {}
    void handle_cnp(Instant now) noexcept override;
    void handle_timeout(Instant now) noexcept override;
    // Ends one round of either counter.
    void increase() noexcept;

    DcqcnParameters parameters_;
    double target_bytes_per_s_;
    double alpha_ = 1;  // at alpha_time_
    Instant alpha_time_;
    std::uint64_t bytes_ = 0;  // sent in the byte counter's present round
    std::uint32_t timer_rounds_ = 0;
    std::uint32_t byte_rounds_ = 0;
};

// The notification point of one flow: when a packet marked "congestion experienced" is to be answered by a CNP.
class DcqcnNotificationPoint {
public:
    explicit DcqcnNotificationPoint(Duration interval = kDcqcn.cnp_interval) noexcept : interval_(interval) {}

    // Takes a marked packet. Returns true if a CNP is to be sent now: for the first mark, and at most once per
    // interval.
    [[nodiscard]] bool on_marked(Instant now) noexcept {
        if (now < next_) {
            return false;
        }
        next_ = now + interval_;
        return true;
    }

private:
    Duration interval_;
    Instant next_{std::numeric_limits<std::int64_t>::min()};
};

}  // namespace cairn::roce
