#include "lib/telemetry/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace cairn::telemetry {

void Histogram::merge(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) {
        buckets_[i] += other.buckets_[i];
    }
    count_ += other.count_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
    min_ = std::min(min_, other.min_);
}

std::uint64_t Histogram::percentile(double q) const noexcept {
    if (count_ == 0) {
        return 0;
    }
    if (!(q > 0.0)) {  // also not-a-number
        return min_;
    }
    // 0.07 * 100 is a little more than 7 in binary. The cut removes the part that rounding may have added.
    constexpr double kRoundingCut = 1.0 - 1e-12;
    const double wanted = std::ceil(std::min(q, 1.0) * static_cast<double>(count_) * kRoundingCut);
    const auto rank = std::clamp(static_cast<std::uint64_t>(wanted), std::uint64_t{1}, count_);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
        seen += buckets_[i];
        if (seen >= rank) {
            return std::min(highest_in(i), max_);
        }
    }
    return max_;
}

}  // namespace cairn::telemetry
