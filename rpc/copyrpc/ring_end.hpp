// One end of a connection: its own ring, and a mirror of its peer's ring. It composes the batches that leave, and reads
// the batches that came. It neither sends nor receives. Its user WRITEs the batches, with their immediates, from the
// mirror to the same offset in the peer's ring.
#pragma once

#include <optional>
#include <span>

#include "rpc/copyrpc/breaches.hpp"
#include "rpc/copyrpc/format.hpp"
#include "rpc/copyrpc/message.hpp"
#include "rpc/copyrpc/receive_ledger.hpp"
#include "rpc/copyrpc/send_ledger.hpp"

namespace cairn::copyrpc {

// The blocks of a request that was read and not released.
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
        Held held{};  // for a request
    };

    // Makes an end. The memory of both rings has valid sizes (asserted), and outlives the end. `own_receives` and
    // `peer_receives` are the receive requests that each end has for the other's batches; see SendLedger.
    RingEnd(std::span<std::uint8_t> own, std::span<std::uint8_t> mirror, std::uint32_t own_receives,
            std::uint32_t peer_receives, Flow flow = Flow::Credit);

    [[nodiscard]] Room judge_request(std::uint32_t bytes, std::uint32_t extras,
                                     std::uint32_t answer_bytes) const noexcept {
        return send_.judge_request(Message::blocks_of(bytes, extras), Message::charge_for(answer_bytes));
    }
    // Puts a request into the next batch, and copies its payload. The request fits (asserted). Sets its charge.
    void put_request(Message& request, std::uint32_t answer_bytes) noexcept;
    // Puts an answer to a request of this charge into the next batch. It has room there (asserted: answer_max()).
    void put_answer(const Message& answer, std::uint32_t charge) noexcept;
    [[nodiscard]] bool fits_answer(const Message& answer) const noexcept { return send_.fits_answer(answer.blocks()); }
    // True if the peer's word should be read (only with Flow::Read): little room is left, or a waiting message has
    // none. `waits`: an answer waits.
    [[nodiscard]] bool wants_word(bool waits) const noexcept;
    // Notes that the word is read now. After that, another READ pays only once more has left.
    void ask_word() noexcept { sent_since_asked_ = false; }
    // Takes the peer's word. Returns false if the word breaks the rules.
    [[nodiscard]] bool on_word(const ConsumerWord& word) noexcept { return send_.on_word(word); }
    // Notes that the answer to a request of this charge came.
    void on_answered(std::uint32_t charge) noexcept { send_.on_answer(charge); }
    // Gives the request's blocks back to the peer.
    void release(const Held& held) noexcept { receive_.release(held.begin, held.blocks); }

    // Returns the next batch to send. It has messages, or none if the peer may be waiting for its header. Returns
    // nothing if all has left, or the peer has no receive request.
    [[nodiscard]] std::optional<RingWrite> next_write() noexcept;

    // Begins to read a batch that came. All messages of the batch before were taken (asserted).
    [[nodiscard]] std::optional<Breach> open(BatchImmediate said) noexcept;
    // Takes the batch's next message. Returns false after the last one and after a breach.
    [[nodiscard]] bool next(Taken& taken) noexcept;
    // Returns the fault of the batch. Called after next() has returned false.
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
    std::uint32_t messages_left_ = 0;  // in the batch that is read
    std::uint16_t next_sent_ = 0;      // sequence numbers
    std::uint16_t next_received_ = 0;
    bool sent_since_asked_ = false;
    std::optional<Breach> breach_{};
};

}  // namespace cairn::copyrpc
