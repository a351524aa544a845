// One end of a connection: its own ring, and a mirror of the ring at its peer. It composes the batches that leave, and
// reads the batches that came. It neither sends nor receives: its user WRITEs the batches, with their immediates, from
// the mirror to the same place in the peer's ring.
#pragma once

#include <optional>
#include <span>

#include "rpc/copyrpc/breaches.hpp"
#include "rpc/copyrpc/format.hpp"
#include "rpc/copyrpc/message.hpp"
#include "rpc/copyrpc/receive_ledger.hpp"
#include "rpc/copyrpc/send_ledger.hpp"

namespace cairn::copyrpc {

// The blocks of a request that was read and is not released.
struct Held {
    RingPosition begin{};
    std::uint32_t blocks = 0;
};

// A batch that leaves: mirror[offset, offset + bytes) goes to the same offset of the peer's ring.
struct RingWrite {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint32_t immediate = 0;
    std::uint32_t messages = 0;
};

// Used by one thread; allocates only when made.
class RingEnd {
public:
    // A message of a batch. A request stays in the ring until release(). An answer's payload is valid until the next
    // batch leaves.
    struct Taken {
        Message message{};
        Held held{};  // of a request
    };

    // The memory of both rings, each a valid shape (asserted), outlives the end. `own_receives` and `peer_receives` are
    // the receive requests that either end has for the batches of the other; see SendLedger.
    RingEnd(std::span<std::uint8_t> own, std::span<std::uint8_t> mirror, std::uint32_t own_receives,
            std::uint32_t peer_receives, Flow flow = Flow::Credit);

    [[nodiscard]] Room judge_request(std::uint32_t bytes, std::uint32_t extras,
                                     std::uint32_t answer_bytes) const noexcept {
        return send_.judge_request(Message::blocks_of(bytes, extras), Message::charge_for(answer_bytes));
    }
    // Puts a request into the next batch, its payload copied. It fits (asserted). Sets its charge.
    void put_request(Message& request, std::uint32_t answer_bytes) noexcept;
    // Puts an answer to a request of this charge into the next batch. It has room there (asserted: answer_max()).
    void put_answer(const Message& answer, std::uint32_t charge) noexcept;
    [[nodiscard]] bool fits_answer(const Message& answer) const noexcept { return send_.fits_answer(answer.blocks()); }
    // With Flow::Read: the peer's word is to be read, since there is little room, or none for what waits.
    [[nodiscard]] bool wants_word(bool waits) const noexcept;
    // It is read. What leaves from now on makes another look worth while.
    void ask_word() noexcept { sent_since_asked_ = false; }
    // The peer's word came. Returns false if it breaks the rules.
    [[nodiscard]] bool on_word(const ConsumerWord& word) noexcept { return send_.on_word(word); }
    // The answer to a request with this charge came.
    void on_answered(std::uint32_t charge) noexcept { send_.on_answer(charge); }
    // The request's memory is the peer's again.
    void release(const Held& held) noexcept { receive_.release(held.begin, held.blocks); }

    // Returns what leaves next: messages, or a batch without any if the peer may be waiting for what its header says.
    // Nothing: all has left, or the peer has no receive request.
    [[nodiscard]] std::optional<RingWrite> next_write() noexcept;

    // A batch came. The messages of the former one were all taken (asserted).
    [[nodiscard]] std::optional<Breach> open(BatchImmediate said) noexcept;
    // Takes the batch's next message. Returns false behind the last one and after a breach.
    [[nodiscard]] bool next(Taken& taken) noexcept;
    // What was wrong with the batch. Asked after next() has returned false.
    [[nodiscard]] std::optional<Breach> breach() const noexcept { return breach_; }

    [[nodiscard]] const SendLedger& send() const noexcept { return send_; }
    [[nodiscard]] const ReceiveLedger& receive() const noexcept { return receive_; }

private:
    [[nodiscard]] bool has_news() const noexcept {
        return receive_.has_news() || send_.grantable() >= send_.ring().grant_step();
    }
    [[nodiscard]] bool learn(const BatchHeader& header) noexcept;
    [[nodiscard]] BatchHeader header_of(const Batch& batch) noexcept;
    [[nodiscard]] std::span<std::uint8_t> mirror_at(RingPosition at, std::uint32_t blocks) const noexcept;
    void write(const Message& message, std::uint32_t blocks, RingPosition at) noexcept;
    [[nodiscard]] bool fail(Breach breach) noexcept;

    std::span<std::uint8_t> own_;
    std::span<std::uint8_t> mirror_;
    SendLedger send_;
    ReceiveLedger receive_;
    std::uint32_t messages_left_ = 0;  // of the batch that is read
    std::uint16_t next_sent_ = 0;      // sequence numbers
    std::uint16_t next_received_ = 0;
    bool sent_since_asked_ = false;
    std::optional<Breach> breach_{};
};

}  // namespace cairn::copyrpc
