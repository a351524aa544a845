// Passes: proof that a host receives packets to its address. A host that shows the pass of its address received it
// there lately, so the address is not made up.
#pragma once

#include <cstdint>

#include "lib/base/sip_hash.hpp"
#include "lib/base/time.hpp"
#include "lib/net/address.hpp"

namespace cairn::perf {

// Gives passes, and checks them. It keeps none of those that it gave.
class Passes {
public:
    // The least time for which a pass is valid, by the clock of its worker. The longest is twice that.
    static constexpr Duration kLife = seconds(30);

    // Makes passes with `key`, which is hard to guess.
    explicit constexpr Passes(const SipKey& key) noexcept : key_(key) {}

    [[nodiscard]] std::uint64_t pass_of(const net::IpAddress& host, Instant now) const noexcept {
        return made_in(period_of(now), host);
    }
    // Returns whether the pass is good. The worker that gave it may be ahead by a period: each has a clock of its own,
    // which leaves out leaps.
    [[nodiscard]] bool is_good(std::uint64_t pass, const net::IpAddress& host, Instant now) const noexcept {
        const std::uint64_t period = period_of(now);
        return pass == made_in(period, host) || pass == made_in(period + 1, host) ||
               (period != 0 && pass == made_in(period - 1, host));
    }

private:
    [[nodiscard]] static std::uint64_t period_of(Instant now) noexcept {
        return static_cast<std::uint64_t>(now.ns / kLife.ns);
    }
    [[nodiscard]] std::uint64_t made_in(std::uint64_t period, const net::IpAddress& host) const noexcept {
        return sip_hash(key_, host.words()[0], host.words()[1], period);
    }

    SipKey key_;
};

}  // namespace cairn::perf
