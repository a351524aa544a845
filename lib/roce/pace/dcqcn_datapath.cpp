#include "lib/roce/pace/dcqcn.hpp"

#include <algorithm>

namespace cairn::roce {

namespace {

// base^exponent by squaring: a long pause costs few steps and the result is the same everywhere.
double power(double base, std::uint64_t exponent) noexcept {
    double result = 1;
    for (; exponent != 0; exponent >>= 1U) {
        result *= (exponent & 1U) != 0 ? base : 1;
        base *= base;
    }
    return result;
}

}  // namespace

Dcqcn::Dcqcn(double link_rate_bytes_per_s, Instant now, const DcqcnParameters& parameters) noexcept
    : CongestionControl(link_rate_bytes_per_s, Duration{std::numeric_limits<std::int64_t>::max()}),
      parameters_(parameters),
      target_bytes_per_s_(link_rate_bytes_per_s),
      alpha_time_(now) {
    CAIRN_ASSERT(parameters.rate_min_bytes_per_s > 0 && parameters.rate_min_bytes_per_s <= link_rate_bytes_per_s);
    CAIRN_ASSERT(parameters.alpha_gain > 0 && parameters.alpha_gain < 1 && parameters.rate_step_bytes_per_s > 0);
    CAIRN_ASSERT(parameters.alpha_period > Duration{} && parameters.increase_period > Duration{});
    CAIRN_ASSERT(parameters.increase_bytes > 0 && parameters.fast_recovery_rounds > 0);
}

double Dcqcn::alpha(Instant now) const noexcept {
    const std::int64_t periods = std::max<std::int64_t>((now - alpha_time_).ns / parameters_.alpha_period.ns, 0);
    return alpha_ * power(1 - parameters_.alpha_gain, static_cast<std::uint64_t>(periods));
}

void Dcqcn::handle_cnp(Instant now) noexcept {
    on_timeout(now);
    const double seen = alpha(now);
    target_bytes_per_s_ = rate_bytes_per_s();
    set_rate(std::max(rate_bytes_per_s() * (1 - seen / 2), parameters_.rate_min_bytes_per_s));
    alpha_ = (1 - parameters_.alpha_gain) * seen + parameters_.alpha_gain;
    alpha_time_ = std::max(alpha_time_, now);
    bytes_ = 0;
    timer_rounds_ = 0;
    byte_rounds_ = 0;
    set_deadline(is_uncongested() ? Instant::never() : now + parameters_.increase_period);
}

void Dcqcn::handle_sent(std::size_t bytes, Instant now) noexcept {
    on_timeout(now);
    bytes_ += bytes;
    while (bytes_ >= parameters_.increase_bytes && !is_uncongested()) {
        bytes_ -= parameters_.increase_bytes;
        ++byte_rounds_;
        increase();
    }
}

void Dcqcn::handle_timeout(Instant now) noexcept {
    while (!is_uncongested() && next_deadline() <= now) {
        ++timer_rounds_;
        set_deadline(next_deadline() + parameters_.increase_period);
        increase();
    }
}

void Dcqcn::increase() noexcept {
    const std::uint32_t most = std::max(timer_rounds_, byte_rounds_);
    const std::uint32_t least = std::min(timer_rounds_, byte_rounds_);
    if (least > parameters_.fast_recovery_rounds) {
        target_bytes_per_s_ += parameters_.rate_hyper_step_bytes_per_s * (least - parameters_.fast_recovery_rounds);
    } else if (most >= parameters_.fast_recovery_rounds) {
        target_bytes_per_s_ += parameters_.rate_step_bytes_per_s;
    }
    target_bytes_per_s_ = std::min(target_bytes_per_s_, link_rate_bytes_per_s());
    const double rate = (target_bytes_per_s_ + rate_bytes_per_s()) / 2;
    const bool arrives = link_rate_bytes_per_s() - rate < parameters_.rate_step_bytes_per_s;
    set_rate(arrives ? link_rate_bytes_per_s() : rate);
    if (arrives) {
        target_bytes_per_s_ = link_rate_bytes_per_s();
        set_deadline(Instant::never());
    }
}

}  // namespace cairn::roce
