// Send queue: send requests in the order of posting, from posting to completion (IBTA vol. 1, 10.8).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/roce/qp/work.hpp"
#include "lib/wire/feth.hpp"

namespace cairn::roce {

// A send request, beside its memory: the SGEs or the inline payload, which the queue keeps apart.
struct SendWqe {
    std::uint64_t wr_id = 0;
    std::uint64_t remote_address = 0;  // BindWindow: the address of the binding
    std::uint64_t compare = 0;         // BindWindow: the length of the binding
    std::uint64_t swap_or_add = 0;
    std::uint32_t bytes = 0;  // of the message; Flush: of the range
    std::uint32_t immediate = 0;
    Rkey rkey{};        // BindWindow: the window
    Rkey invalidate{};  // BindWindow: the region's lkey
    Srqn srqn{};        // XRC
    Psn first{};        // the first and the last of its PSNs, once it is started
    Psn last{};
    WorkOpcode opcode{};
    std::uint8_t sge_count = 0;
    bool signalled = true;
    bool solicited = false;
    bool fence = false;
    bool is_inline = false;   // the payload is in the queue, not in the SGEs
    bool started = false;     // at least one packet was sent; local work: it is done
    bool zero_based = false;  // BindWindow
    Rights rights{};          // BindWindow
    wire::Feth feth{};        // Flush

    [[nodiscard]] WindowBinding binding() const noexcept {
        return {rkey, Lkey{invalidate.value}, remote_address, compare, rights, zero_based};
    }
};
static_assert(sizeof(SendWqe) == 72);

// A request keeps its position until it is popped. Positions count modulo 2^32. Allocates only when made: for each slot
// a SendWqe, and room for its SGEs or its inline bytes, whichever is more.
class SendQueue {
public:
    // `slots` is in [1, kMaxQueueSlots], `max_sges` in [1, kMaxSges], `inline_bytes` at most kMaxInlineBytes
    // (asserted).
    SendQueue(std::uint32_t slots, std::uint32_t max_sges, std::uint32_t inline_bytes);

    // Returns how much memory the slots of such a queue take.
    [[nodiscard]] static constexpr std::size_t bytes_for(std::uint32_t slots, std::uint32_t max_sges,
                                                         std::uint32_t inline_bytes) noexcept {
        return std::bit_ceil(slots) * (sizeof(SendWqe) + room_sges(max_sges, inline_bytes) * sizeof(Sge));
    }

    // Judges everything but the queue pair's state and service. Unless Posted, nothing changes.
    [[nodiscard]] PostVerdict post(const SendRequest& request) noexcept;
    void pop() noexcept { ++head_; }
    void clear() noexcept { head_ = tail_; }

    [[nodiscard]] std::uint32_t head() const noexcept { return head_; }  // the oldest
    [[nodiscard]] std::uint32_t tail() const noexcept { return tail_; }  // the position of the next request posted
    [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
    [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
    [[nodiscard]] SendWqe& at(std::uint32_t position) noexcept { return ring_[position & mask_]; }
    [[nodiscard]] const SendWqe& at(std::uint32_t position) const noexcept { return ring_[position & mask_]; }
    // The memory of a request that is not inline.
    [[nodiscard]] std::span<const Sge> pieces_at(std::uint32_t position) const noexcept {
        return {rooms_.data() + room_of(position), at(position).sge_count};
    }
    // The payload of an inline request.
    [[nodiscard]] std::span<std::uint8_t> inline_at(std::uint32_t position) noexcept {
        return {reinterpret_cast<std::uint8_t*>(rooms_.data() + room_of(position)), at(position).bytes};
    }

private:
    // How many SGEs take as much room as the memory of any request.
    // mutants: rc-send-queue-room-sges
    [[nodiscard]] static constexpr std::uint32_t room_sges(std::uint32_t max_sges,
                                                           std::uint32_t inline_bytes) noexcept {
        return std::max(max_sges, static_cast<std::uint32_t>((inline_bytes + sizeof(Sge) - 1) / sizeof(Sge)));
    }
    [[nodiscard]] PostVerdict judge(const SendRequest& request) const noexcept;
    // mutants: rc-send-queue-room-of
    [[nodiscard]] std::size_t room_of(std::uint32_t position) const noexcept {
        return std::size_t{position & mask_} * room_sges_;
    }

    std::uint32_t slots_;
    std::uint32_t max_sges_;
    std::uint32_t inline_bytes_;
    std::uint32_t mask_;
    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    std::uint32_t room_sges_;  // of a slot
    std::vector<SendWqe> ring_;
    std::vector<Sge> rooms_;
};

}  // namespace cairn::roce
