// Receive queue: receive requests in the order of posting. One queue pair has it, or several share it (IBTA vol. 1,
// 10.2.9).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/roce/qp/event_sink.hpp"
#include "lib/roce/qp/work.hpp"

namespace cairn::roce {

// A receive request without its SGEs, which the queue keeps apart.
struct ReceiveHead {
    std::uint64_t wr_id = 0;
    std::uint64_t bytes : 56 = 0;  // of all SGEs
    std::uint64_t sge_count : 8 = 0;
};
static_assert(sizeof(ReceiveHead) == 16);

// A receive request that was taken, as it was posted. The SGEs after `sge_count` are undefined.
struct ReceiveWqe {
    static constexpr std::uint32_t kFewSges = 8;

    ReceiveHead head{};
    std::array<Sge, kFewSges> few{};
    Sge* many =
        nullptr;  // place for the SGEs of a request that has more: kMaxSges; nullptr: the queue has no such requests

    [[nodiscard]] Sge* place_for(std::size_t count) noexcept { return count <= kFewSges ? few.data() : many; }
    [[nodiscard]] std::span<const Sge> pieces() const noexcept {
        return {head.sge_count <= kFewSges ? few.data() : many, head.sge_count};
    }
};

// A request that is taken belongs to the taker: the queue forgets it. Used by one thread. Allocates only when made or
// resized: for each slot a ReceiveHead and `max_sges` SGEs.
class ReceiveQueue {
public:
    // Makes an empty queue. `slots` is in [1, kMaxQueueSlots], `max_sges` in [0, kMaxSges] (asserted).
    ReceiveQueue(std::uint32_t slots, std::uint32_t max_sges);

    // Changes the number of slots. Requests in the queue stay, in order. Errors: `slots` is not in [1, kMaxQueueSlots],
    // the queue holds more than `slots` (10.2.9).
    [[nodiscard]] Status resize(std::uint32_t slots);

    // Posts a request. Returns Posted, QueueFull or TooManySges.
    [[nodiscard]] PostVerdict post(const ReceiveRequest& request) noexcept;
    [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
    [[nodiscard]] std::uint32_t size() const noexcept { return tail_ - head_; }
    // Returns the request that is taken next. The queue is not empty (asserted).
    [[nodiscard]] const ReceiveHead& front() const noexcept;
    // Takes the request with its SGEs, or without them: then they are forgotten.
    void take(ReceiveWqe& into) noexcept;
    ReceiveHead take() noexcept;
    void clear() noexcept { head_ = tail_; }

    // Asks for one event as soon as fewer than `limit` requests are left; 0: for none (10.2.9). If there are fewer
    // already, the event is made at once. Otherwise an owner that only posts at an event would wait for ever.
    void set_limit(std::uint32_t limit) noexcept;
    [[nodiscard]] bool take_limit_event() noexcept;
    // Notifies `sink` of that event; nullptr: no sink. It outlives the queue.
    void set_sink(EventSink* sink) noexcept { sink_ = sink; }
    [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }
    [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
    [[nodiscard]] std::uint32_t max_sges() const noexcept { return max_sges_; }
    // Returns the bytes of memory that the slots of such a queue take.
    [[nodiscard]] static constexpr std::size_t bytes_for(std::uint32_t slots, std::uint32_t max_sges) noexcept {
        return std::bit_ceil(slots) * (sizeof(ReceiveHead) + max_sges * sizeof(Sge));
    }

private:
    void judge_limit() noexcept;
    [[nodiscard]] std::size_t sges_of(std::uint32_t position) const noexcept {
        return std::size_t{position & mask_} * max_sges_;
    }

    std::uint32_t slots_;
    std::uint32_t max_sges_;
    std::uint32_t mask_;
    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    std::uint32_t limit_ = 0;
    bool limit_event_ = false;
    EventSink* sink_ = nullptr;
    std::vector<ReceiveHead> ring_;
    std::vector<Sge> sges_;
};

}  // namespace cairn::roce
