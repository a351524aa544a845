// PaidTime: when a paced flow may send again.
#pragma once

#include <algorithm>

#include "lib/base/time.hpp"
#include "lib/roce/pace/congestion_control.hpp"

namespace cairn::roce {

// Each packet of a paced flow moves the time on by the packet's cost at the flow's rate. A batch may leave ahead of
// that time. A flow that was silent for long has saved no more than kPacingSlack.
class PaidTime {
public:
    PaidTime() noexcept = default;
    explicit PaidTime(Instant begin) noexcept : at_(begin) {}

    [[nodiscard]] bool may_send(Instant now) const noexcept { return at_ <= now + kPacingBatch; }
    // Charges a packet that takes `gap` at the flow's rate.
    void charge(Duration gap, Instant now) noexcept { at_ = std::max(at_, now - kPacingSlack) + gap; }
    [[nodiscard]] Instant at() const noexcept { return at_; }

private:
    Instant at_{};
};

}  // namespace cairn::roce
