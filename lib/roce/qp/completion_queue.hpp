// Completion queue: a ring that its queue pairs fill and its owner empties (IBTA vol. 1, 10.2.6, 10.10).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/roce/qp/event_sink.hpp"
#include "lib/roce/qp/work.hpp"

namespace cairn::roce {

// Gives completions in the order in which they were pushed. A completion that finds the ring full is lost. The queue is
// then overrun for good, and every queue pair that pushes into it learns so and stops (10.10). Used by one thread;
// allocates only when made or resized.
class CompletionQueue {
public:
    enum class Arm : std::uint8_t { Off, Solicited, Next };

    // Makes an empty queue. `slots` is in [1, kMaxCompletionSlots] (asserted).
    explicit CompletionQueue(std::uint32_t slots);

    // Changes the number of slots. Completions in the queue stay, in order. Errors: `slots` is not in [1,
    // kMaxCompletionSlots], the queue holds more than `slots` (10.2.6).
    [[nodiscard]] Status resize(std::uint32_t slots);

    // Adds a completion. Returns false if the queue is overrun, now or before, and the completion is lost.
    [[nodiscard]] bool push(const Completion& completion) noexcept;
    // Takes the oldest completions. Returns their number.
    [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept;
    // Removes the completions of a queue pair that goes to RESET.
    void forget(Qpn qpn) noexcept;

    // Asks for an event with the next completion, or the next solicited or failed one. The stronger wish stays (10.10).
    // A completion that came after the last event and was not polled makes the event at once, as with adapters.
    void arm(Arm wish) noexcept;
    // Returns true once for each event.
    [[nodiscard]] bool take_event() noexcept;
    [[nodiscard]] bool has_event() const noexcept { return event_; }
    // Notifies `sink` of each event, and of an overrun; nullptr: no sink. It outlives the queue.
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
    [[nodiscard]] bool is_awaited(const Completion& completion) const noexcept {
        return arm_ == Arm::Next || completion.solicited || completion.status != CompletionStatus::Success;
    }
    void fire() noexcept;
    // Returns how many of the completions in the queue came before the last event.
    [[nodiscard]] std::uint32_t told() const noexcept { return told_ - head_ <= size() ? told_ - head_ : 0; }
    [[nodiscard]] Completion& at(std::uint32_t position) noexcept { return ring_[position & mask_]; }

    std::uint32_t slots_;
    std::uint32_t mask_;
    std::uint32_t head_ = 0;  // positions run over 2^32; their low bits are the index
    std::uint32_t tail_ = 0;
    std::uint32_t told_ = 0;  // the value of tail_ at the last event
    Arm arm_ = Arm::Off;
    bool event_ = false;
    bool overrun_ = false;
    EventSink* sink_ = nullptr;
    std::vector<Completion> ring_;
};

}  // namespace cairn::roce
