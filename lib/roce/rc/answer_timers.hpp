// The waits of a requester for its peer. Has timers of silence, of a peer that is not ready, and the round trips from
// which silence is computed (IBTA vol. 1, 9.7.6.1.3; RFC 6298).
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/timer_table.hpp"
#include "lib/roce/pace/congestion_control.hpp"
#include "lib/roce/pace/round_trip.hpp"
#include "lib/wire/aeth.hpp"

namespace cairn::roce::rc {

// Only the configured timeout costs retries. A peer that is slow for once is asked again sooner than configured, but
// not given up sooner. After a pause of our own worker the answers may lie unread. So a timer is put off once for each
// time that it is armed. No clock: every input has `now`.
class AnswerTimers {
public:
    enum class Silence : std::uint8_t {
        None,        // the peer has time left
        Early,       // longer than round trips take
        Configured,  // as long as the queue pair's attributes demand: costs a retry
    };

    // Makes timers that are not armed. `stalls` watches the worker's turns; nullptr: there are no pauses.
    explicit AnswerTimers(const StallWatch* stalls) noexcept : stalls_(stalls) {}
    // Forgets everything.
    void start() noexcept { *this = AnswerTimers(stalls_); }

    // Begins the peer's time. `ack_timeout` is the attribute; 0: silence as configured is never noticed. The peer may
    // put its answer off by `delay`.
    void arm(std::uint8_t ack_timeout, Duration delay, Instant now) noexcept;
    void disarm() noexcept {
        timers_.stop(Timer::Silence);
        timers_.stop(Timer::EarlySilence);
    }
    [[nodiscard]] bool is_armed() const noexcept {
        return timers_.is_armed(Timer::Silence) || timers_.is_armed(Timer::EarlySilence);
    }
    // Takes a pause of our own off the peer's time: a packet left only now, and the peer could not answer before.
    void forgive_pause(Instant now) noexcept;
    // Notes that the peer answered something new.
    void on_progress(Psn unacknowledged, Instant now) noexcept;

    // Arms the hold: the peer asked to be left alone for a time. It does not count as silent until then.
    void hold_back(wire::RnrTimer timer, Instant now) noexcept;
    void end_hold() noexcept { timers_.stop(Timer::NotReady); }
    [[nodiscard]] bool holds_back(Instant now) const noexcept {
        return timers_.is_armed(Timer::NotReady) && !timers_.is_due(Timer::NotReady, now);
    }
    // Returns true once when the time is over: the peer's silence counts from now on.
    [[nodiscard]] bool take_end_of_hold(Instant now) noexcept;

    // Returns the silence that is noticed now. With `nothing_sent` nothing could be sent since the peer was asked, so
    // that its time begins anew instead. The timers go on.
    [[nodiscard]] Silence judge_silence(std::uint8_t ack_timeout, bool nothing_sent, Instant now) noexcept;
    [[nodiscard]] Instant next() const noexcept { return timers_.next(); }

    // Times the answer to the packet that leaves now, unless another one is being timed.
    void time(Psn psn, Instant now) noexcept {
        if (!timed_) {
            timed_ = {psn, now};
        }
    }
    // Stops timing. Packets are sent again, and an answer may be to either copy (Karn).
    void stop_timing() noexcept { timed_.reset(); }
    [[nodiscard]] const RoundTrip& round_trip() const noexcept { return round_trip_; }

private:
    enum class Timer : std::uint8_t {
        Silence,       // as long as configured
        EarlySilence,  // from measured round trips
        NotReady,      // the peer asked to be left alone
        Count,
    };
    struct Timed {
        Psn psn{};
        Instant sent_at{};
    };

    void arm_early(Instant now) noexcept;
    void measure(Psn unacknowledged, Instant now) noexcept;
    [[nodiscard]] bool defers() noexcept;
    [[nodiscard]] bool paused_since(Instant then) const noexcept { return stalls_ != nullptr && stalls_->spoils(then); }

    const StallWatch* stalls_;
    TimerTable<Timer> timers_;
    Instant armed_at_{};  // Silence and EarlySilence
    Duration delay_{};    // additional time that the peer may take
    RoundTrip round_trip_;
    std::optional<Timed> timed_;   // the packet for the next measurement
    std::uint32_t silences_ = 0;   // early ones since the last progress
    bool deferred_ = false;        // a pause of our own put off the timeout that is armed
    bool sample_ignored_ = false;  // the last measurement was ignored, for a pause of our own
};

}  // namespace cairn::roce::rc
