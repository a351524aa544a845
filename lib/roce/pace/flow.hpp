// Flow: the rate that congestion leaves to one connection, and when the connection may send again.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/roce/pace/dcqcn.hpp"
#include "lib/roce/pace/paid_time.hpp"

namespace cairn::roce {

// DCQCN's reaction point with a pacer. Begins at link rate.
class Flow {
public:
    Flow(double link_bytes_per_s, Instant now) noexcept
        : control_(link_bytes_per_s, now, dcqcn_for_link(link_bytes_per_s)), paid_(now) {}

    void on_cnp(Instant now) noexcept { control_.on_cnp(now); }
    // Returns true if the rate is below the link's.
    [[nodiscard]] bool is_congested(Instant now) noexcept {
        control_.on_timeout(now);
        return !control_.is_uncongested();
    }
    [[nodiscard]] bool may_send(Instant now) const noexcept { return paid_.may_send(now); }
    [[nodiscard]] Instant paid_at() const noexcept { return paid_.at(); }
    void on_sent(std::size_t bytes, Instant now) noexcept {
        control_.on_sent(bytes, now);
        paid_.charge(control_.gap(bytes), now);
    }
    // Returns how many packets of `bytes` may leave in `span` at the rate, rounded up.
    [[nodiscard]] std::uint32_t packets_in(Duration span, std::size_t bytes) const noexcept {
        return static_cast<std::uint32_t>(span.ns / std::max<std::int64_t>(control_.gap(bytes).ns, 1)) + 1;
    }
    [[nodiscard]] double rate_bytes_per_s() const noexcept { return control_.rate_bytes_per_s(); }

private:
    Dcqcn control_;
    PaidTime paid_;
};

}  // namespace cairn::roce
