// Receive queue: receive requests in the order of posting. One queue pair has it, or several share it (IBTA vol. 1,
// 10.2.9).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/roce/qp/event_sink.hpp"
#include "lib/roce/qp/work.hpp"

namespace cairn::roce {

// A receive request as it was posted.
struct ReceiveWqe {
    std::uint64_t wr_id = 0;
    std::uint64_t bytes = 0;  // of all SGEs
    std::array<Sge, kMaxSges> sges{};
    std::uint32_t sge_count = 0;

    [[nodiscard]] std::span<const Sge> pieces() const noexcept { return {sges.data(), sge_count}; }
};

// A request that is taken is the taker's: the queue forgets it. Used by one thread; allocates only when made or
// resized.
class ReceiveQueue {
public:
    // `slots` is in [1, kMaxQueueSlots], `max_sges` in [1, kMaxSges] (asserted).
    ReceiveQueue(std::uint32_t slots, std::uint32_t max_sges);

    // Requests in the queue stay, in order. Errors: `slots` is not in [1, kMaxQueueSlots], the queue holds more than
    // `slots` (10.2.9).
    [[nodiscard]] Status resize(std::uint32_t slots);

    // Returns Posted, QueueFull or TooManySges.
    [[nodiscard]] PostVerdict post(const ReceiveRequest& request) noexcept;
    [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
    [[nodiscard]] std::uint32_t size() const noexcept { return tail_ - head_; }
    // The request that is taken next. The queue is not empty (asserted).
    [[nodiscard]] const ReceiveWqe& front() const noexcept;
    [[nodiscard]] ReceiveWqe take() noexcept;
    void clear() noexcept { head_ = tail_; }

    // Asks for one event as soon as fewer than `limit` requests are left; 0: for none (10.2.9).
    void set_limit(std::uint32_t limit) noexcept { limit_ = limit; }
    [[nodiscard]] bool take_limit_event() noexcept;
    // `sink` is told of that event; nullptr: nobody is. It outlives the queue.
    void set_sink(EventSink* sink) noexcept { sink_ = sink; }
    [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }
    [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }

private:
    std::uint32_t slots_;
    std::uint32_t max_sges_;
    std::uint32_t mask_;
    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    std::uint32_t limit_ = 0;
    bool limit_event_ = false;
    EventSink* sink_ = nullptr;
    std::vector<ReceiveWqe> ring_;
};

}  // namespace cairn::roce
