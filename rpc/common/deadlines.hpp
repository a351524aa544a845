// The deadlines of an endpoint's calls. The cost to insert, cancel and hand out one does not grow with their number.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/roce/pace/timing_wheel.hpp"

namespace cairn::rpc {

// A timing wheel. Its slots are kScale times as long as the slots that pace packets. A deadline may be a second away,
// and an endpoint looks at deadlines two thousand times a second at most. A deadline beyond the horizon is handed out
// early, and the sink inserts it again.
class Deadlines {
public:
    static constexpr std::int64_t kScale = 200;
    static constexpr Duration kSlot{roce::kSlot.ns * kScale};  // advance() hands a deadline out at most this late
    using Handle = roce::TimingWheelHandle;

    explicit Deadlines(std::uint32_t calls_max) : wheel_(kHorizon, calls_max, Instant{}) {}

    // Inserts a deadline; there is room for one per call. The handle is never empty.
    [[nodiscard]] Handle insert(std::uint32_t call, Instant deadline) noexcept {
        return wheel_.insert(call, {deadline.ns / kScale + (deadline.ns % kScale > 0 ? 1 : 0)});
    }
    void cancel(Handle handle) noexcept { wheel_.cancel(handle); }
    // Calls sink(call) for each call whose time has come. If a call's deadline has not passed, the sink inserts it
    // again. It may also insert and cancel others.
    template <class Sink>
    void advance(Instant now, Sink&& sink) noexcept {
        wheel_.advance({now.ns / kScale}, sink);
    }
    // Returns when advance() has something to do, or Instant::never() without deadlines.
    [[nodiscard]] Instant next_due() const noexcept {
        return wheel_.size() == 0 ? Instant::never() : Instant{wheel_.next_due().ns * kScale};
    }

private:
    static constexpr Duration kHorizon = milliseconds(4);  // in the wheel's scaled time: 8,192 slots, together 0.8 s

    roce::TimingWheel<std::uint32_t> wheel_;
};

}  // namespace cairn::rpc
