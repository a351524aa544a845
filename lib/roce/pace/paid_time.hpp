// When the rate of a flow has paid for what it sent.
#pragma once

#include <algorithm>

#include "lib/base/time.hpp"
#include "lib/roce/pace/congestion_control.hpp"

namespace cairn::roce {

// A flow that is paced: each packet moves the time by what it costs at the flow's rate. A batch may leave ahead of it,
// and a flow that was silent for long owes nothing for that, but has not saved more than kPacingSlack.
class PaidTime {
public:
    PaidTime() noexcept = default;
    explicit PaidTime(Instant begin) noexcept : at_(begin) {}

    [[nodiscard]] bool may_send(Instant now) const noexcept { return at_ <= now + kPacingBatch; }
    // A packet left whose bytes take `gap` at the flow's rate.
    void charge(Duration gap, Instant now) noexcept { at_ = std::max(at_, now - kPacingSlack) + gap; }
    [[nodiscard]] Instant at() const noexcept { return at_; }

private:
    Instant at_{};
};

}  // namespace cairn::roce
