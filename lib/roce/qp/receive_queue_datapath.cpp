#include "lib/roce/qp/receive_queue.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"

namespace cairn::roce {

PostVerdict ReceiveQueue::post(const ReceiveRequest& request) noexcept {
    if (request.sges.size() > max_sges_) {
        return PostVerdict::TooManySges;
    }
    if (size() == slots_) {
        return PostVerdict::QueueFull;
    }
    ReceiveWqe& wqe = ring_[tail_++ & mask_];
    wqe.wr_id = request.wr_id;
    wqe.sge_count = static_cast<std::uint32_t>(request.sges.size());
    std::copy(request.sges.begin(), request.sges.end(), wqe.sges.begin());
    wqe.bytes = 0;
    for (const Sge& sge : request.sges) {
        wqe.bytes += sge.bytes;
    }
    return PostVerdict::Posted;
}

const ReceiveWqe& ReceiveQueue::front() const noexcept {
    CAIRN_ASSERT(!empty());
    return ring_[head_ & mask_];
}

ReceiveWqe ReceiveQueue::take() noexcept {
    const ReceiveWqe taken = front();
    ++head_;
    if (size() < limit_) {
        limit_event_ = true;
        limit_ = 0;
        if (sink_ != nullptr) {
            sink_->on_event();
        }
    }
    return taken;
}

bool ReceiveQueue::take_limit_event() noexcept {
    const bool made = limit_event_;
    limit_event_ = false;
    return made;
}

}  // namespace cairn::roce
