// What an end of a connection knows about the ring at its peer, and may put there.
#pragma once

#include <array>
#include <cstdint>

#include "rpc/copyrpc/flow.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::copyrpc {

// A run of blocks that one WRITE carries: a header block, and the messages behind it.
struct Batch {
    RingPosition begin{};
    std::uint32_t blocks = 0;
    std::uint16_t messages = 0;
    bool wraps = false;  // it begins at the ring's start, and the blocks before it at the end are wasted
};

enum class Room : std::uint8_t {
    Fits,
    RingFull,            // there is room once the peer has released requests
    InsufficientCredit,  // there is room once the peer has answered, and promised anew
    TooLong,             // never
};

// The rules hold for a ring of C blocks of which F are in flight: put there and not returned by the peer. R blocks are
// promised to the peer for answers. At any time F + 2R <= C, so that an answer always fits: it is at most as long as
// its part of the promise, and wastes at most as much at the ring's end. A request leaves kept_for_empty() as well. The
// peer has a receive request for each batch: the last one is kept for a batch with news. Used by one thread.
//
// With Flow::Read nothing is promised but a number of answers, C/4: F <= C, and an answer may have to wait.
class SendLedger {
public:
    // `receives` is the number of receive requests that the peer has for this connection, at least 4 (asserted).
    SendLedger(RingShape ring, RingShape own_ring, std::uint32_t receives, Flow flow = Flow::Credit) noexcept;

    // `blocks` is the length of the message, `charge` what its answer may take of the peer's promise.
    [[nodiscard]] Room judge_request(std::uint32_t blocks, std::uint32_t charge) const noexcept;
    // Returns the message's place. The message fits (asserted).
    RingPosition take_request(std::uint32_t blocks, std::uint32_t charge) noexcept;
    // The answer to a request with this charge came.
    void on_answer(std::uint32_t charge) noexcept;
    // A request of the peer came. Returns false if its charge is beyond the promise, or beyond what the peer's ring has
    // room for: the peer breaks the rules.
    [[nodiscard]] bool on_request(std::uint32_t charge) noexcept;
    // Returns the place of the answer to a request with this charge, which has room for it (asserted).
    RingPosition take_answer(std::uint32_t blocks, std::uint32_t charge) noexcept;
    // True if there is room for an answer of so many blocks, as there always is with Flow::Credit.
    [[nodiscard]] bool fits_answer(std::uint32_t blocks) const noexcept {
        return flow_ == Flow::Credit || in_flight() + advance_of(blocks) <= ring_.blocks();
    }

    // Messages wait, and the peer can receive them. With `news` the batch also carries what the peer may be waiting
    // for.
    // mutants: copyrpc-send-ledger-has-batch
    [[nodiscard]] bool has_batch(bool news) const noexcept {
        return (closed_ || open_.messages != 0) && receives_ > (news || flow_ == Flow::Read ? 0U : 1U);
    }
    // The oldest messages. There is a batch (asserted).
    Batch take_batch() noexcept;
    // No messages wait, and there is room for a batch without any, which carries news.
    [[nodiscard]] bool has_room_for_empty() const noexcept;
    Batch take_empty() noexcept;

    // What can be promised beyond what is promised.
    [[nodiscard]] std::uint32_t grantable() const noexcept;
    // Promises that. Returns the blocks, for the header of a batch that leaves now.
    std::uint32_t grant() noexcept;
    // What the header of a peer's batch says: blocks of the ring that are free again, blocks for answers to our
    // requests, receive requests. Returns false if it cannot be: the peer breaks the rules.
    [[nodiscard]] bool on_header(std::uint32_t returned, std::uint32_t granted, std::uint32_t receives) noexcept;
    // With Flow::Read: what the peer has read. What is older than what is known says nothing new. Returns false if it
    // cannot be: the peer breaks the rules.
    [[nodiscard]] bool on_word(const ConsumerWord& word) noexcept;
    // The number of batches that a batch's header names modulo 2^16.
    [[nodiscard]] std::uint32_t batches_of(std::uint16_t said) const noexcept {
        const auto ahead = static_cast<std::int16_t>(said - static_cast<std::uint16_t>(batches_known_));
        return batches_known_ + static_cast<std::uint32_t>(static_cast<std::int32_t>(ahead));
    }
    // The messages of the next batch; kFull: it takes no more of them.
    static constexpr std::uint32_t kFull = 0xffffffffU;
    [[nodiscard]] std::uint32_t messages() const noexcept { return closed_ ? kFull : open_.messages; }
    [[nodiscard]] Flow flow() const noexcept { return flow_; }

    [[nodiscard]] RingShape ring() const noexcept { return ring_; }
    [[nodiscard]] std::uint32_t in_flight() const noexcept { return head_ - returned_; }
    [[nodiscard]] std::uint32_t promised() const noexcept { return promised_; }
    [[nodiscard]] std::uint32_t balance() const noexcept { return balance_; }
    [[nodiscard]] std::uint32_t receives() const noexcept { return receives_; }
    // Where the next batch may begin, modulo 2^32 as in a word.
    [[nodiscard]] std::uint32_t sent_blocks() const noexcept { return static_cast<std::uint32_t>(sent_.block); }
    // For tests: a connection as old as that. Nothing was put into the ring yet.
    void begin_at(RingPosition at) noexcept { returned_ = sent_ = head_ = at; }
    // Asserts the rules.
    void check() const noexcept;

private:
    [[nodiscard]] bool joins_open(std::uint32_t blocks) const noexcept;
    [[nodiscard]] std::uint32_t advance_of(std::uint32_t blocks) const noexcept;
    RingPosition place(std::uint32_t blocks) noexcept;
    // A promise may come before the answers that it renews. These answers wait for receive requests in the next batch,
    // and answers to requests that the promise has let come wait with them.
    // mutants: copyrpc-send-ledger-most-promised
    [[nodiscard]] std::uint32_t most_promised() const noexcept { return 3 * own_ring_.promise_max(); }

    RingShape ring_;
    RingShape own_ring_;
    Flow flow_;
    std::uint32_t receives_max_;
    std::uint32_t receives_;
    std::uint32_t batches_known_ = 0;  // to be read by the peer, modulo 2^32
    RingPosition returned_{};
    RingPosition sent_{};  // up to here batches were taken
    RingPosition head_{};
    std::uint32_t promised_;     // to the peer, for answers, whether it has asked or not
    std::uint32_t asked_ = 0;    // the part of it that requests have taken
    std::uint32_t balance_;      // the peer's promise, as far as our requests have not taken it
    std::uint32_t charged_ = 0;  // the part of it that they have taken, as long as they are not answered
    Batch open_{};               // takes messages; none: there is no such batch
    Batch closed_batch_{};       // before it, at the ring's end
    bool closed_ = false;
};

}  // namespace cairn::copyrpc
