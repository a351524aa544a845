#include "lib/roce/pace/timely.hpp"

#include <algorithm>

namespace cairn::roce {

namespace {

double ratio(Duration part, Duration whole) noexcept {
    return static_cast<double>(part.ns) / static_cast<double>(whole.ns);
}

}  // namespace

Timely::Timely(double link_rate_bytes_per_s, Instant now, const TimelyParameters& parameters) noexcept
    : CongestionControl(link_rate_bytes_per_s, parameters.rtt_low),
      parameters_(parameters),
      previous_rtt_(parameters.rtt_min),
      last_update_(now) {
    CAIRN_ASSERT(parameters.rate_min_bytes_per_s > 0 && parameters.rate_min_bytes_per_s <= link_rate_bytes_per_s);
    CAIRN_ASSERT(parameters.rtt_min > Duration{} && parameters.rtt_min < parameters.rtt_low);
    CAIRN_ASSERT(parameters.rtt_low < parameters.rtt_high);
}

double Timely::judge_by_gradient(Duration rtt, double weight) const noexcept {
    const double rate = rate_bytes_per_s();
    const double step = parameters_.rate_step_bytes_per_s * weight;
    const double gradient = mean_difference_ns_ / static_cast<double>(parameters_.gradient_unit.ns);
    if (parameters_.patched) {
        const double share = std::clamp(2 * gradient + 0.5, 0.0, 1.0);  // of the decrease
        const double error = ratio(rtt - parameters_.rtt_low, parameters_.rtt_low);
        return rate + (1 - share) * step - share * rate * parameters_.beta * weight * error;
    }
    if (gradient <= 0) {
        return rate + step * (falling_in_a_row_ >= parameters_.hai_threshold ? parameters_.hai_factor : 1);
    }
    return rate * (1 - parameters_.beta * weight * gradient);
}

double Timely::judge_rate(Duration rtt, double weight) const noexcept {
    if (rtt < parameters_.rtt_low) {
        const bool grows = parameters_.per_round_trip && low_in_a_row_ > parameters_.hai_threshold;
        const double steps = grows ? parameters_.hai_factor : 1;
        return rate_bytes_per_s() + parameters_.rate_step_bytes_per_s * weight * steps;
    }
    if (rtt > parameters_.rtt_high && !parameters_.per_round_trip) {
        return rate_bytes_per_s() * (1 - parameters_.beta * weight * (1 - ratio(parameters_.rtt_high, rtt)));
    }
    return judge_by_gradient(rtt, weight);
}

void Timely::decide(Duration rtt, double weight) noexcept {
    const Duration difference = rtt - previous_rtt_;
    low_in_a_row_ = rtt < parameters_.rtt_low ? low_in_a_row_ + 1 : 0;
    falling_in_a_row_ = difference < Duration{} ? falling_in_a_row_ + 1 : 0;
    mean_difference_ns_ = (1 - parameters_.ewma_alpha) * mean_difference_ns_ +
                          parameters_.ewma_alpha * static_cast<double>(difference.ns);
    // A round trip far above rtt_low is a full window's: packets leave at one window per round trip, not at the rate.
    const double deepest = parameters_.per_round_trip ? std::min(1.0, ratio(parameters_.rtt_low, rtt)) : 1;
    const double least =
        std::max(rate_bytes_per_s() * std::min(parameters_.decrease_most, deepest), parameters_.rate_min_bytes_per_s);
    set_rate(std::clamp(judge_rate(rtt, weight), least, link_rate_bytes_per_s()));
    previous_rtt_ = rtt;
}

void Timely::handle_ack(const AckSample& sample, Instant now) noexcept {
    const Duration rtt = std::max(sample.rtt, parameters_.rtt_min);
    if (!parameters_.per_round_trip) {
        decide(rtt, std::clamp(ratio(now - last_update_, parameters_.rtt_min), 0.0, 1.0));
        last_update_ = std::max(last_update_, now);
        return;
    }
    gather(rtt, now);
}

// A round trip of an uncongested flow begins with the first long sample; all that follow it count, short ones too.
void Timely::gather(Duration rtt, Instant now) noexcept {
    const bool first = least_rtt_ == Duration{};
    if (first && is_uncongested()) {
        last_update_ = now;
        set_bypass({});
    }
    least_rtt_ = first ? rtt : std::min(least_rtt_, rtt);
    if (now - last_update_ < rtt) {
        return;
    }
    decide(least_rtt_, 1);
    last_update_ = now;
    least_rtt_ = {};
    set_bypass(is_uncongested() ? parameters_.rtt_low : Duration{});
}

}  // namespace cairn::roce
