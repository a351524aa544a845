#include "lib/roce/timely.hpp"

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
    const double gradient = mean_difference_ns_ / static_cast<double>(parameters_.rtt_min.ns);
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
        return rate_bytes_per_s() + parameters_.rate_step_bytes_per_s * weight;
    }
    if (rtt > parameters_.rtt_high) {
        return rate_bytes_per_s() * (1 - parameters_.beta * weight * (1 - ratio(parameters_.rtt_high, rtt)));
    }
    return judge_by_gradient(rtt, weight);
}

void Timely::handle_ack(const AckSample& sample, Instant now) noexcept {
    const Duration rtt = std::max(sample.rtt, parameters_.rtt_min);
    const Duration difference = rtt - previous_rtt_;
    falling_in_a_row_ = difference < Duration{} ? falling_in_a_row_ + 1 : 0;
    mean_difference_ns_ = (1 - parameters_.ewma_alpha) * mean_difference_ns_ +
                          parameters_.ewma_alpha * static_cast<double>(difference.ns);
    const double weight = std::clamp(ratio(now - last_update_, parameters_.rtt_min), 0.0, 1.0);
    const double least = std::max(rate_bytes_per_s() * parameters_.decrease_most, parameters_.rate_min_bytes_per_s);
    set_rate(std::clamp(judge_rate(rtt, weight), least, link_rate_bytes_per_s()));
    previous_rtt_ = rtt;
    last_update_ = std::max(last_update_, now);
}

}  // namespace cairn::roce
