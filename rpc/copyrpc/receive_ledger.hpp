// An end's knowledge of its own ring: what came, what was read, and what may be written again.
#pragma once

#include <cstdint>
#include <vector>

#include "rpc/copyrpc/flow.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::copyrpc {

// The immediate of a batch's WRITE: the number of its blocks, and whether it begins at the ring's start.
struct BatchImmediate {
    static constexpr std::uint32_t kWraps = 1U << 31U;

    std::uint32_t blocks = 0;
    bool wraps = false;

    [[nodiscard]] static constexpr BatchImmediate parse(std::uint32_t raw) noexcept {
        return {raw & ~kWraps, (raw & kWraps) != 0};
    }
    [[nodiscard]] constexpr std::uint32_t raw() const noexcept { return blocks | (wraps ? kWraps : 0); }
};

// Accounts for the ring's blocks. They are returned to the peer in order. The blocks of a held request, and all later
// blocks, are returned only after the request is released. Used by one thread; allocates only when made.
class ReceiveLedger {
public:
    // Makes the ledger. `receives`: number of receive requests that the peer may use.
    ReceiveLedger(RingShape ring, std::uint32_t receives, Flow flow = Flow::Credit);

    // Takes a batch. Returns false if it does not lie where the peer may write: the peer breaks the rules.
    [[nodiscard]] bool on_batch(BatchImmediate said) noexcept;
    // Returns the position of the next message, up to the end of the batch.
    [[nodiscard]] RingPosition next() const noexcept { return read_; }
    [[nodiscard]] std::uint32_t unread() const noexcept { return arrived_ - read_; }
    // Reads the next blocks, at most unread() (asserted). With `held` they stay ours until release().
    RingPosition read(std::uint32_t blocks, bool held) noexcept;
    // Releases blocks that were held (asserted): their holder does not need them any more.
    void release(RingPosition begin, std::uint32_t blocks) noexcept;

    // These go into the header of the next batch to the peer, which knows them afterwards.
    [[nodiscard]] std::uint32_t unreturned() const noexcept { return retired_ - returned_; }
    std::uint32_t take_returned() noexcept;
    [[nodiscard]] std::uint32_t receives_used() const noexcept { return receives_used_; }
    std::uint32_t take_receives() noexcept;
    // True if the peer must learn of free space or receive requests before it has none left.
    [[nodiscard]] bool has_news() const noexcept {
        return flow_ == Flow::Credit && (unreturned() >= ring_.return_step() || receives_used_ >= receives_max_ / 2);
    }
    // With Flow::Read: returns the word that the peer may read at any time.
    [[nodiscard]] ConsumerWord word() const noexcept { return {static_cast<std::uint32_t>(retired_.block), batches_}; }

    // True if the next batch to the peer gives it space to write to, or the peer has all of the ring. A peer with space
    // can return receive requests, also while it waits. The peer's last receive request is for such a batch.
    [[nodiscard]] bool gives_space() const noexcept { return unreturned() != 0 || returned_ == arrived_; }

    [[nodiscard]] RingShape ring() const noexcept { return ring_; }

private:
    void mark(RingPosition begin, bool held) noexcept;
    void retire() noexcept;

    RingShape ring_;
    Flow flow_;
    std::uint32_t batches_ = 0;  // received batches, modulo 2^32
    std::uint32_t receives_max_;
    std::uint32_t receives_used_ = 0;  // since the last report to the peer
    RingPosition returned_{};          // blocks up to here are free, and the peer knows it
    RingPosition retired_{};           // blocks up to here are free
    RingPosition read_{};              // batches up to here were read
    RingPosition arrived_{};
    std::vector<std::uint64_t> held_;  // a bit for each block: a held request begins there
};

}  // namespace cairn::copyrpc
