// The deadlines of an endpoint's calls: kept, taken back and handed out at a cost that does not grow with their number.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/roce/pace/timing_wheel.hpp"

namespace cairn::rpc {

// A timing wheel whose slots are kScale times as long as those that pace packets: a deadline may be a second away, and
// is looked at two thousand times a second at most. One further away is handed out early, and put in again.
class Deadlines {
public:
    static constexpr std::int64_t kScale = 200;
    static constexpr Duration kSlot{roce::kSlot.ns * kScale};  // a deadline is noticed so much late at most
    using Handle = roce::TimingWheelHandle;

    explicit Deadlines(std::uint32_t calls_max) : wheel_(kHorizon, calls_max, Instant{}) {}

    // Room for one per call; the handle is never empty.
    [[nodiscard]] Handle insert(std::uint32_t call, Instant deadline) noexcept {
        return wheel_.insert(call, {deadline.ns / kScale + (deadline.ns % kScale > 0 ? 1 : 0)});
    }
    void cancel(Handle handle) noexcept { wheel_.cancel(handle); }
    // Hands each call whose time has come to sink(call), or one that is not yet due to be put in again. The sink may
    // insert and cancel.
    template <class Sink>
    void advance(Instant now, Sink&& sink) noexcept {
        wheel_.advance({now.ns / kScale}, sink);
    }
    // When the next is to be looked at; Instant::never() without any.
    [[nodiscard]] Instant next_due() const noexcept {
        return wheel_.size() == 0 ? Instant::never() : Instant{wheel_.next_due().ns * kScale};
    }

private:
    static constexpr Duration kHorizon = milliseconds(4);  // 8,192 slots: 0.8 s

    roce::TimingWheel<std::uint32_t> wheel_;
};

}  // namespace cairn::rpc
