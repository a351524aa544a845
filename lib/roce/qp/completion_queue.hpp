// Completion queue: a ring that its queue pairs fill and its owner empties (IBTA vol. 1, 10.2.6, 10.10).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/roce/qp/event_sink.hpp"
#include "lib/roce/qp/work.hpp"

namespace cairn::roce {

// In order of completion, each once. A completion that finds the ring full is lost, the queue is overrun for good, and
// every queue pair that pushes into it learns so and stops (10.10). One thread; allocates only when made or
// resized.
class CompletionQueue {
public:
    enum class Arm : std::uint8_t { Off, Solicited, Next };

    // `slots` is in [1, kMaxCompletionSlots] (asserted).
    explicit CompletionQueue(std::uint32_t slots);

    // What is in it stays, in order. Error: more is in it than `slots`, which is in [1, kMaxCompletionSlots] (10.2.6).
    [[nodiscard]] Status resize(std::uint32_t slots);

    // False: overrun, now or before; the completion is lost.
    [[nodiscard]] bool push(const Completion& completion) noexcept;
    // The oldest completions; returns how many.
    [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept;
    // Takes out all that the queue pair pushed: it goes to RESET and leaves nothing behind.
    void forget(Qpn qpn) noexcept;

    // The next completion (or the next solicited or failed one) makes an event; stronger wishes stay (10.10).
    void arm(Arm wish) noexcept;
    // True once for each event made.
    [[nodiscard]] bool take_event() noexcept;
    [[nodiscard]] bool has_event() const noexcept { return event_; }
    // Told of each event, and of an overrun; nullptr: nobody is. Outlives this.
    void set_sink(EventSink* sink) noexcept { sink_ = sink; }

    [[nodiscard]] bool overrun() const noexcept { return overrun_; }
    [[nodiscard]] std::uint32_t size() const noexcept { return tail_ - head_; }
    [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }

private:
    void tell() noexcept {
        if (sink_ != nullptr) {
            sink_->on_event();
        }
    }
    [[nodiscard]] Completion& at(std::uint32_t position) noexcept { return ring_[position & mask_]; }

    std::uint32_t slots_;
    std::uint32_t mask_;
    std::uint32_t head_ = 0;  // positions run over 2^32; their low bits are the index
    std::uint32_t tail_ = 0;
    Arm arm_ = Arm::Off;
    bool event_ = false;
    bool overrun_ = false;
    EventSink* sink_ = nullptr;
    std::vector<Completion> ring_;
};

}  // namespace cairn::roce
