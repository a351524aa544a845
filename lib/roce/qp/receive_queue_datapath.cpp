#include "lib/roce/qp/receive_queue.hpp"

#include "lib/base/assert.hpp"

namespace cairn::roce {

PostVerdict ReceiveQueue::post(const ReceiveRequest& request) noexcept {
    if (request.sges.size() > max_sges_) {
        return PostVerdict::TooManySges;
    }
    if (size() == slots_) {
        return PostVerdict::QueueFull;
    }
    std::uint64_t bytes = 0;
    Sge* place = sges_.data() + sges_of(tail_);
    for (const Sge& sge : request.sges) {
        *place++ = sge;
        bytes += sge.bytes;
    }
    ReceiveHead& head = ring_[tail_++ & mask_];
    head.wr_id = request.wr_id;
    head.bytes = bytes & ((std::uint64_t{1} << 56U) - 1);
    head.sge_count = request.sges.size() & 0xffU;
    return PostVerdict::Posted;
}

const ReceiveHead& ReceiveQueue::front() const noexcept {
    CAIRN_ASSERT(!empty());
    return ring_[head_ & mask_];
}

void ReceiveQueue::take(ReceiveWqe& into) noexcept {
    const std::size_t count = front().sge_count;
    const std::size_t at = sges_of(head_);
    Sge* const place = into.place_for(count);
    CAIRN_ASSERT(place != nullptr);
    for (std::size_t i = 0; i < count; ++i) {
        place[i] = sges_[at + i];
    }
    into.head = take();
}

ReceiveHead ReceiveQueue::take() noexcept {
    const ReceiveHead taken = front();
    ++head_;
    judge_limit();
    return taken;
}

void ReceiveQueue::judge_limit() noexcept {
    if (size() < limit_) {
        limit_event_ = true;
        limit_ = 0;
        if (sink_ != nullptr) {
            sink_->on_event();
        }
    }
}

void ReceiveQueue::set_limit(std::uint32_t limit) noexcept {
    limit_ = limit;
    judge_limit();
}

bool ReceiveQueue::take_limit_event() noexcept {
    const bool made = limit_event_;
    limit_event_ = false;
    return made;
}

}  // namespace cairn::roce
