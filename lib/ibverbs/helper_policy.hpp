// Decides what the helper thread does next: a pure state machine, given the time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "lib/base/time.hpp"

namespace cairn::ibverbs {

// The helper makes progress where the program does not: while it computes, sleeps, or spins on memory.
//
// Guard: the helper sleeps on the socket and takes a turn for each arrival.
// Park: callers take turns themselves. The helper stays off the socket, where each packet would wake it and take the
// CPU from the very caller that polls. It naps, and looks whether callers still poll.
//
// A caller that polls now and then, and spins on memory in between, would wait for the end of a nap each time. Packets
// that waited while no caller polled show such a caller, if that happens repeatedly: once may be a caller that was
// preempted. Then the helper guards, even if callers poll, and parks for a nap from time to time to see whether it
// still has to. It parks at once if it wakes in vain repeatedly, since a caller was quicker.
//
// Gone: this process is a child of fork(), and has no helper. Callers take no turns, since packets are for their
// parent.
//
// While the helper is parked, it bounds how long anything waits: what callers leave for their next poll leaves at the
// end of a nap. Naps grow while callers poll on. The end of one takes the CPU from a caller. Its timer costs a virtual
// machine two exits. Together that is 30 us where machines are nested.
class HelperPolicy {
public:
    enum class Mode : std::uint8_t { Guard, Park, Gone };
    enum class CallerTurn : std::uint8_t { Taken, WakesHelper, NotTaken };

    // Begins with the helper on guard. `spins`: it never gives the CPU away while it guards.
    explicit HelperPolicy(bool spins = false) noexcept : spins_(spins) {}

    static constexpr Duration kNap = microseconds(150);  // the first
    static constexpr Duration kLongestNap = kNap * 8;
    static constexpr Duration kPolls = microseconds(60);  // a polling caller polls at least this often: a turn may take
                                                          // 40
    static constexpr Duration kStay = milliseconds(20);   // between two naps of a helper that guards while callers poll
    static constexpr int kSure = 3;                       // this many naps show a caller that spins on memory
    static constexpr int kVain = 8;                       // this many wakes in vain show a caller that polls
    static constexpr int kMany = 16;                      // this many polls in quick succession show one, too

    // Decides at `now`. `last_caller_turn`: when a caller took its last turn. `any_armed`: a completion queue is armed,
    // so its owner is about to sleep until it fires. That outweighs earlier polls, unless callers poll on and on since.
    // UCX has one queue armed for a thread of its own, and polls the others.
    Mode decide(Instant now, Instant last_caller_turn, bool any_armed) noexcept {
        const bool guards = (any_armed && !polls_on_) || now < stay_until_ || now - last_caller_turn >= kNap;
        mode_.store(guards ? Mode::Guard : Mode::Park, std::memory_order_relaxed);
        polls_ = guards ? polls_ : 0;
        if (guards) {
            set_nap(kNap);
        }
        return mode();
    }
    // Notes that a caller is to take a turn at `now`; the one before was at `last_caller_turn`. The result says whether
    // to wake the helper, which guards and may sleep for long, because this call parks it.
    [[nodiscard]] CallerTurn on_caller_turn(Instant now, Instant last_caller_turn, bool any_armed) noexcept {
        if (const Mode mode = this->mode(); mode != Mode::Guard) {
            return mode == Mode::Park ? CallerTurn::Taken : CallerTurn::NotTaken;
        }
        polls_ = now - last_caller_turn < kPolls ? polls_ + 1 : 0;
        if (polls_ < kMany || now < stay_until_) {
            return CallerTurn::Taken;
        }
        polls_on_ = true;
        return decide(now, now, any_armed) == Mode::Park ? CallerTurn::WakesHelper : CallerTurn::Taken;
    }
    // Notes that a completion queue is armed.
    void on_arm() noexcept {
        polls_on_ = false;
        polls_ = 0;
    }
    // Unparks the helper before it is woken. It could otherwise find the lock still held by the polling caller that
    // woke it, and nap again.
    void leave_park() noexcept {
        if (is_parked()) {
            mode_.store(Mode::Guard, std::memory_order_relaxed);
            set_nap(kNap);
        }
    }
    // Notes that there is no helper any more.
    void on_fork() noexcept { mode_.store(Mode::Gone, std::memory_order_relaxed); }
    // Notes that the socket woke the helper, which guards. `found`: there were packets.
    void on_wake(bool found) noexcept {
        vain_ = found ? 0 : vain_ + 1;
        if (vain_ == kVain) {
            vain_ = 0;
            waited_ = 0;
            stay_until_ = {};
        }
    }
    // Notes that a nap ended at `now`. `found`: packets had come meanwhile, and waited.
    void on_nap_end(Instant now, Instant last_caller_turn, bool found) noexcept {
        if (now - last_caller_turn < kPolls) {
            waited_ = 0;
            on_caller_at_work();
        } else {
            waited_ = found ? std::min(waited_ + 1, kSure) : waited_;
            set_nap(kNap);
        }
        stay_until_ = waited_ == kSure ? now + kStay : now;
    }
    // These may be called by any thread; all else needs a lock.
    // Notes that a nap ended while a caller had the lock: the caller takes a turn, or the helper has taken its CPU.
    void on_caller_at_work() noexcept { set_nap(std::min(nap() * 2, kLongestNap)); }
    // Returns how long a parked helper naps.
    [[nodiscard]] Duration nap() const noexcept { return nap_.load(std::memory_order_relaxed); }
    [[nodiscard]] Mode mode() const noexcept { return mode_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool spins() const noexcept { return spins_; }
    [[nodiscard]] bool is_gone() const noexcept { return mode() == Mode::Gone; }
    [[nodiscard]] bool is_parked() const noexcept { return mode() == Mode::Park; }

private:
    void set_nap(Duration nap) noexcept { nap_.store(nap, std::memory_order_relaxed); }

    const bool spins_;
    std::atomic<Duration> nap_{kNap};
    std::atomic<Mode> mode_{Mode::Guard};
    Instant stay_until_{};
    int waited_ = 0;         // naps in which packets waited, since callers were last seen to poll
    int vain_ = 0;           // wakes in a row
    int polls_ = 0;          // in a row, since the helper guards, and since a queue was armed
    bool polls_on_ = false;  // callers poll on although a queue may be armed, for kMany polls since
};

}  // namespace cairn::ibverbs
