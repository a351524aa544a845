// The client's end of a session: its calls in their blocks, and its state (ScaleRPC, figure 7).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/assert.hpp"
#include "lib/verbs/device.hpp"
#include "rpc/common/call_table.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/common/time_left.hpp"
#include "rpc/scalerpc/entry.hpp"
#include "rpc/scalerpc/statistics.hpp"

namespace cairn::scalerpc {

enum class CallerState : std::uint8_t {
    Idle,     // no requests wait at the server
    Warmup,   // staged requests wait for the server's READ
    Process,  // requests are WRITTEN to the server's pool
};

enum class CallerCause : std::uint8_t { Entry, Grant, Notice };
// True if a client may change its state for this reason. To Process it comes only by the first answer of a slice, or by
// the word that stands for it (I4). From Process to Idle it comes only by the notice of the slice's end (I5).
[[nodiscard]] constexpr bool may_become(CallerState from, CallerState to, CallerCause why) noexcept {
    switch (why) {
        case CallerCause::Entry:
            return to == CallerState::Warmup && from != CallerState::Process;
        case CallerCause::Grant:
            return to == CallerState::Process && from != CallerState::Process;
        case CallerCause::Notice:
            return to == CallerState::Idle;
    }
    return false;
}

// Returns `to`, which may follow `from` (asserted).
[[nodiscard]] inline CallerState changed(CallerState from, CallerState to, CallerCause why) noexcept {
    CAIRN_ASSERT(may_become(from, to, why));
    return to;
}

// Returns the time until a deadline, for the server: there is no common clock. 0 means no deadline. A call with a
// passed deadline has one microsecond left.
[[nodiscard]] std::uint32_t left_us(Instant deadline, Instant now) noexcept;

// Knows which requests are staged, and which were written. No I/O; the Client acts on it.
class Caller {
public:
    // A call under way. Its block is its sequence number modulo the number of blocks.
    struct Slot {
        std::uint32_t call = rpc::kNone;  // kNone: the call has ended, but its answer has not come
        std::uint32_t sequence = 0;
        std::uint32_t tail = 0;               // bytes of the request in its block
        Instant deadline = Instant::never();  // if the server counts the call's time
    };

    // `memory` has the staged blocks, the control words and the blocks for answers: memory_for() bytes, all zero.
    Caller(const BlockShape& shape, std::span<std::uint8_t> memory)
        : shape_(shape), memory_(memory), slots_(shape.blocks) {}
    [[nodiscard]] static constexpr std::uint32_t memory_for(const BlockShape& shape) noexcept {
        return 2 * shape.session_bytes() + kControlBytes;
    }
    [[nodiscard]] std::span<std::uint8_t> staged() const noexcept { return memory_.first(shape_.session_bytes()); }
    [[nodiscard]] std::span<std::uint8_t> answers() const noexcept { return memory_.subspan(shape_.session_bytes()); }

    [[nodiscard]] CallerState state() const noexcept { return state_; }
    [[nodiscard]] bool has_room() const noexcept { return (busy_ >> shape_.index_of(next_) & 1U) == 0; }
    // Returns the slots of calls under way, a bit each.
    [[nodiscard]] std::uint64_t busy() const noexcept { return busy_; }
    [[nodiscard]] bool is_welcome() const noexcept { return entry_at_.has_value(); }
    [[nodiscard]] std::uint32_t tail_of(std::uint32_t sequence) const noexcept {
        return slots_[shape_.index_of(sequence)].tail;
    }
    [[nodiscard]] const BlockShape& shape() const noexcept { return shape_; }
    [[nodiscard]] std::vector<Slot>& slots() noexcept { return slots_; }

    // Stages a request, for which there is room (asserted). Returns its slot.
    Slot& stage(Request request, std::uint32_t call, Instant now) noexcept;
    // Frees the slot of an answered call. Clears its block, which may lie between others in one WRITE.
    void free(Slot& slot) noexcept {
        clear_message(block_of(slot.sequence), slot.tail - sizeof(RawTrailer));
        busy_ &= ~(std::uint64_t{1} << (&slot - slots_.data()));
        slot.call = rpc::kNone;
    }
    // Notes that the call of a slot has ended without an answer. If its request has not been written yet, it is marked
    // so that the server does not execute it.
    void give_up(Slot& slot) noexcept;
    [[nodiscard]] std::span<const std::uint8_t> answer_block(std::uint32_t sequence) const noexcept {
        return answers().subspan(kControlBytes + shape_.end_of(sequence) - shape_.bytes, shape_.bytes);
    }
    // Returns unseen news in the control words: first the welcome, then slices. Sets `nonsense` if a word is invalid.
    [[nodiscard]] std::optional<News> look_at_control(bool& nonsense) noexcept;
    // Acts on news. Returns false if they contradict earlier news. News of a past slice are ignored.
    [[nodiscard]] bool on_news(const News& news) noexcept;
    // Acts on the news in the answer to a request. Returns the breach, if the news or the answer are invalid. The
    // server can only answer a request that was written in this slice, was taken before, or was named by an entry.
    // Otherwise the request's block would be staged anew before the old request is written.
    [[nodiscard]] std::optional<Breach> on_answered(std::uint32_t sequence, const News& news) noexcept;
    // Returns the entry for the server, if it differs from the last one.
    [[nodiscard]] std::optional<Entry> entry_due(std::uint64_t staged_address) noexcept;
    [[nodiscard]] const Grant& entry_at() const noexcept { return *entry_at_; }
    void entry_written(const Entry& entry) noexcept { told_ = entry; }

    // The staged requests [from, to) that may be written now. Only in Process (I1).
    struct Span {
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        [[nodiscard]] bool empty() const noexcept { return from == to; }
    };
    [[nodiscard]] Span to_write() const noexcept {
        return state_ == CallerState::Process ? Span{written_, next_} : Span{};
    }
    // Sets the time that requests have left, before they or an entry about them are written: they may have waited since
    // they were staged. If an entry has named a request before, the server counts its time itself.
    void tell_time_left(Span leaving, Instant now) noexcept;
    // Makes a staged request valid in the present slice.
    void ready(std::uint32_t sequence) noexcept;
    void written(std::uint32_t to) noexcept { written_ = to; }
    [[nodiscard]] const Grant& grant() const noexcept { return grant_; }

private:
    [[nodiscard]] std::span<std::uint8_t> block_of(std::uint32_t sequence) const noexcept {
        return staged().subspan(shape_.end_of(sequence) - shape_.bytes, shape_.bytes);
    }
    [[nodiscard]] bool on_grant(const News& news) noexcept;
    [[nodiscard]] bool on_notice(const News& news) noexcept;
    // True for the epoch of the last slice that was left, or of one before it. The epochs of a session's slices are
    // consecutive, however rarely it has one.
    [[nodiscard]] bool is_old(std::uint32_t epoch) const noexcept { return acknowledged_ - epoch < 1U << 31U; }

    const BlockShape shape_;
    std::span<std::uint8_t> memory_;
    std::vector<Slot> slots_;
    std::uint64_t busy_ = 0;
    CallerState state_ = CallerState::Idle;
    std::uint32_t next_ = 0;          // sequence number of the next call
    std::uint32_t accepted_ = 0;      // the server has taken the calls before it, by its notices
    std::uint32_t written_ = 0;       // in Process: the calls before it were READ or written
    std::uint32_t epoch_ = 0;         // the grant's
    std::uint32_t acknowledged_ = 0;  // epoch of the last slice that was left
    std::uint32_t control_seen_ = 0;
    std::optional<Grant> entry_at_{};
    Entry told_{};
    Grant grant_{};
};

}  // namespace cairn::scalerpc
