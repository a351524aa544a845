// Passes: proof that a host receives what is sent to its address. A host that shows the pass of its address received it
// there lately, so the address is not made up.
#pragma once

#include <cstdint>

#include "lib/base/sip_hash.hpp"
#include "lib/base/time.hpp"
#include "lib/net/address.hpp"

namespace cairn::perf {

// The giver keeps nothing of the passes that it gave.
class Passes {
public:
    // A pass is valid for at least this long, and for twice as long at most, by the clock that it was given by.
    static constexpr Duration kLife = seconds(30);

    // `key` is hard to guess.
    explicit constexpr Passes(const SipKey& key) noexcept : key_(key) {}

    [[nodiscard]] std::uint64_t pass_of(const net::IpAddress& host, Instant now) const noexcept {
        return made_in(period_of(now), host);
    }
    // The worker that gave the pass may be ahead by a period: each has a clock of its own, which leaves out leaps.
    // mutants: perf-passes-is-good
    [[nodiscard]] bool is_good(std::uint64_t pass, const net::IpAddress& host, Instant now) const noexcept {
        const std::uint64_t period = period_of(now);
        return pass == made_in(period, host) || pass == made_in(period + 1, host) ||
               (period != 0 && pass == made_in(period - 1, host));
    }

private:
    [[nodiscard]] static std::uint64_t period_of(Instant now) noexcept {
        return static_cast<std::uint64_t>(now.ns / kLife.ns);
    }
    // mutants: perf-passes-made-in
    [[nodiscard]] std::uint64_t made_in(std::uint64_t period, const net::IpAddress& host) const noexcept {
        return sip_hash(key_, host.words()[0], host.words()[1], period);
    }

    SipKey key_;
};

}  // namespace cairn::perf
