// An end's knowledge of its peer's ring, and what it may put there.
#pragma once

#include <array>
#include <cstdint>

#include "rpc/copyrpc/flow.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::copyrpc {

// A run of blocks that one WRITE carries: a header block, and messages after it.
struct Batch {
    RingPosition begin{};
    std::uint32_t blocks = 0;
    std::uint16_t messages = 0;
    bool wraps = false;  // it begins at the ring's start; the blocks before it at the end are wasted
};

enum class Room : std::uint8_t {
    Fits,
    RingFull,            // there is room after the peer has released requests
    InsufficientCredit,  // there is room after the peer has answered, and promised anew
    TooLong,             // there is never room
};

// Accounts for the blocks of a ring of C blocks. F blocks are in flight: put there, and not returned by the peer. R
// blocks are promised to the peer for answers. F + 2R <= C holds at any time, so an answer always fits. An answer is at
// most as long as its part of the promise, and wastes at most as much at the ring's end. A request also leaves
// kept_for_empty() free. The peer has a receive request for each batch; the last one is kept for a batch with news.
// Used by one thread.
//
// With Flow::Read only a number of answers is promised, C/4. Then F <= C holds, and an answer may have to wait.
class SendLedger {
public:
    // Makes the ledger. `receives`: the peer's receive requests for this connection, at least 4 (asserted).
    SendLedger(RingShape ring, RingShape own_ring, std::uint32_t receives, Flow flow = Flow::Credit) noexcept;

    // Judges a request. `blocks`: length of the message; `charge`: blocks of the peer's promise that its answer may
    // take.
    [[nodiscard]] Room judge_request(std::uint32_t blocks, std::uint32_t charge) const noexcept;
    // Takes room for a request, which fits (asserted). Returns the message's position.
    RingPosition take_request(std::uint32_t blocks, std::uint32_t charge) noexcept;
    // Notes that the answer to a request of this charge came.
    void on_answer(std::uint32_t charge) noexcept;
    // Takes a request of the peer. Returns false if its charge exceeds the promise, or the room of the peer's ring: the
    // peer breaks the rules.
    [[nodiscard]] bool on_request(std::uint32_t charge) noexcept;
    // Takes room for the answer to a request of this charge, which has that room (asserted). Returns its position.
    RingPosition take_answer(std::uint32_t blocks, std::uint32_t charge) noexcept;
    // True if there is room for an answer of `blocks`. With Flow::Credit there always is.
    [[nodiscard]] bool fits_answer(std::uint32_t blocks) const noexcept {
        return flow_ == Flow::Credit || in_flight() + advance_of(blocks) <= ring_.blocks();
    }

    // True if messages wait, and the peer can receive them. With `news` the batch also carries facts for which the peer
    // may be waiting.
    [[nodiscard]] bool has_batch(bool news) const noexcept {
        return (closed_ || open_.messages != 0) && receives_ > (news || flow_ == Flow::Read ? 0U : 1U);
    }
    // Takes the oldest messages as a batch. There is one (asserted).
    Batch take_batch() noexcept;
    // True if no messages wait, and there is room for an empty batch, which carries news.
    [[nodiscard]] bool has_room_for_empty() const noexcept;
    Batch take_empty() noexcept;

    // Returns how much can be promised in addition.
    [[nodiscard]] std::uint32_t grantable() const noexcept;
    // Promises that much. Returns the blocks, for the header of a batch that leaves now.
    std::uint32_t grant() noexcept;
    // Takes the header of a peer's batch: blocks of the ring that are free again, blocks for answers to our requests,
    // receive requests. Returns false if the values are impossible: the peer breaks the rules.
    [[nodiscard]] bool on_header(std::uint32_t returned, std::uint32_t granted, std::uint32_t receives) noexcept;
    // With Flow::Read: takes the peer's position in its ring. An older position than the known one has no effect.
    // Returns false if the position is impossible: the peer breaks the rules.
    [[nodiscard]] bool on_word(const ConsumerWord& word) noexcept;
    // Returns the number of batches that a batch's header names modulo 2^16.
    [[nodiscard]] std::uint32_t batches_of(std::uint16_t said) const noexcept {
        const auto ahead = static_cast<std::int16_t>(said - static_cast<std::uint16_t>(batches_known_));
        return batches_known_ + static_cast<std::uint32_t>(static_cast<std::int32_t>(ahead));
    }
    // messages() returns the number of messages in the next batch, or kFull if that takes no more.
    static constexpr std::uint32_t kFull = 0xffffffffU;
    [[nodiscard]] std::uint32_t messages() const noexcept { return closed_ ? kFull : open_.messages; }
    [[nodiscard]] Flow flow() const noexcept { return flow_; }

    [[nodiscard]] RingShape ring() const noexcept { return ring_; }
    [[nodiscard]] std::uint32_t in_flight() const noexcept { return head_ - returned_; }
    [[nodiscard]] std::uint32_t promised() const noexcept { return promised_; }
    [[nodiscard]] std::uint32_t balance() const noexcept { return balance_; }
    [[nodiscard]] std::uint32_t receives() const noexcept { return receives_; }
    // Returns where the next batch may begin, modulo 2^32 as in a word.
    [[nodiscard]] std::uint32_t sent_blocks() const noexcept { return static_cast<std::uint32_t>(sent_.block); }
    // Makes the connection as old as this, for tests. The ring is still empty.
    void begin_at(RingPosition at) noexcept { returned_ = sent_ = head_ = at; }
    // Asserts the rules.
    void check() const noexcept;

private:
    [[nodiscard]] bool joins_open(std::uint32_t blocks) const noexcept;
    [[nodiscard]] std::uint32_t advance_of(std::uint32_t blocks) const noexcept;
    RingPosition place(std::uint32_t blocks) noexcept;
    // A promise may come before the answers that it renews. These answers wait for receive requests in the next batch.
    // With them wait answers to requests that the new promise has allowed.
    [[nodiscard]] std::uint32_t most_promised() const noexcept { return 3 * own_ring_.promise_max(); }

    RingShape ring_;
    RingShape own_ring_;
    Flow flow_;
    std::uint32_t receives_max_;
    std::uint32_t receives_;
    std::uint32_t batches_known_ = 0;  // batches that the peer is known to have read, modulo 2^32
    RingPosition returned_{};
    RingPosition sent_{};  // batches were taken up to here
    RingPosition head_{};
    std::uint32_t promised_;     // blocks promised to the peer for answers, requested or not
    std::uint32_t asked_ = 0;    // the part of `promised_` that requests have taken
    std::uint32_t balance_;      // the part of the peer's promise that our requests have not taken
    std::uint32_t charged_ = 0;  // the part that our unanswered requests have taken
    Batch open_{};               // the batch that takes messages; empty if there is none
    Batch closed_batch_{};       // the batch before it, at the ring's end
    bool closed_ = false;
};

}  // namespace cairn::copyrpc
