#include "lib/roce/qp/completion_queue.hpp"

#include <algorithm>

namespace cairn::roce {

bool CompletionQueue::push(const Completion& completion) noexcept {
    if (overrun_ || size() == slots_) [[unlikely]] {
        if (!overrun_) {
            overrun_ = true;
            tell();
        }
        return false;
    }
    // Written field by field: the whole struct was written piece by piece just now and would not be forwarded.
    Completion& slot = at(tail_++);
    slot.wr_id = completion.wr_id;
    slot.status = completion.status;
    slot.opcode = completion.opcode;
    slot.solicited = completion.solicited;
    slot.has_immediate = completion.has_immediate;
    slot.has_invalidate = completion.has_invalidate;
    slot.has_grh = completion.has_grh;
    slot.qpn = completion.qpn;
    slot.bytes = completion.bytes;
    slot.immediate = completion.immediate;
    slot.invalidated = completion.invalidated;
    slot.source_qpn = completion.source_qpn;
    slot.srqn = completion.srqn;
    slot.behind = completion.behind;
    slot.sends = completion.sends;
    if (arm_ != Arm::Off && is_awaited(slot)) {
        fire();
    }
    return true;
}

std::size_t CompletionQueue::poll(std::span<Completion> out) noexcept {
    const std::size_t count = std::min<std::size_t>(out.size(), size());
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = at(head_++);
    }
    return count;
}

void CompletionQueue::forget(Qpn qpn) noexcept {
    std::uint32_t kept = head_;
    std::uint32_t forgotten = 0;  // completions among these that came before the last event
    for (std::uint32_t position = head_; position != tail_; ++position) {
        if (at(position).qpn != qpn) {
            at(kept++) = at(position);
        } else if (position - head_ < told()) {
            ++forgotten;
        }
    }
    tail_ = kept;
    told_ -= forgotten;
}

// A completion may have come since the user polled last. Without an event the user would sleep although it is there.
void CompletionQueue::arm(Arm wish) noexcept {
    arm_ = std::max(arm_, wish);
    for (std::uint32_t position = head_ + told(); position != tail_; ++position) {
        if (is_awaited(at(position))) {
            fire();
            return;
        }
    }
}

void CompletionQueue::fire() noexcept {
    event_ = true;
    arm_ = Arm::Off;
    told_ = tail_;
    tell();
}

bool CompletionQueue::take_event() noexcept {
    const bool made = event_;
    event_ = false;
    return made;
}

}  // namespace cairn::roce
