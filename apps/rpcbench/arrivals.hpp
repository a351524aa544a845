// The times when the calls of one client are due, with --rate: a Poisson process.
#pragma once

#include <cmath>
#include <cstdint>

#include "lib/base/sip_hash.hpp"
#include "lib/base/time.hpp"

namespace cairn::rpcbench {

// Draws independent exponential intervals. One key is one sequence of intervals: runs that are compared have the same
// arrivals, whatever the answers are.
class Arrivals {
public:
    Arrivals() = default;
    Arrivals(const SipKey& key, double mean_ns, Instant from) noexcept : key_(key), mean_ns_(mean_ns), due_(from) {
        advance();
    }

    // Returns the next arrival. It may be past.
    [[nodiscard]] Instant due() const noexcept { return due_; }
    void advance() noexcept {
        constexpr double kUnit = 1.0 / (std::uint64_t{1} << 53U);
        const double chance = static_cast<double>(sip_hash(key_, drawn_++) >> 11U) * kUnit;  // below 1
        due_ = due_ + Duration{static_cast<std::int64_t>(-std::log1p(-chance) * mean_ns_)};
    }
    // Returns how many arrivals are expected to be due by `now`, given the time of the next one. It draws none of them,
    // so it takes no time.
    [[nodiscard]] std::uint64_t expected_by(Instant now) const noexcept {
        return now < due_ ? 0 : 1 + static_cast<std::uint64_t>(static_cast<double>((now - due_).ns) / mean_ns_);
    }

private:
    SipKey key_{};
    double mean_ns_ = 1;
    Instant due_{};
    std::uint64_t drawn_ = 0;
};

}  // namespace cairn::rpcbench
