// What an end of a connection knows about its own ring: what came, what was read, what may be written again.
#pragma once

#include <cstdint>
#include <vector>

#include "rpc/copyrpc/flow.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::copyrpc {

// What the immediate of a batch's WRITE says: how many blocks it has, and whether it begins at the ring's start.
struct BatchImmediate {
    static constexpr std::uint32_t kWraps = 1U << 31U;

    std::uint32_t blocks = 0;
    bool wraps = false;

    [[nodiscard]] static constexpr BatchImmediate parse(std::uint32_t raw) noexcept {
        return {raw & ~kWraps, (raw & kWraps) != 0};
    }
    [[nodiscard]] constexpr std::uint32_t raw() const noexcept { return blocks | (wraps ? kWraps : 0); }
};

// The ring's blocks become the peer's again in their order. The blocks of a held request, and all behind them, do once
// the request is released. Used by one thread; allocates only when made.
class ReceiveLedger {
public:
    // `receives` is the number of receive requests that the peer may use.
    ReceiveLedger(RingShape ring, std::uint32_t receives, Flow flow = Flow::Credit);

    // A batch came. Returns false if it does not lie where the peer may write: the peer breaks the rules.
    [[nodiscard]] bool on_batch(BatchImmediate said) noexcept;
    // What comes next, up to the end of the batch.
    [[nodiscard]] RingPosition next() const noexcept { return read_; }
    [[nodiscard]] std::uint32_t unread() const noexcept { return arrived_ - read_; }
    // The next blocks were read: at most unread() (asserted). With `held` they stay ours until release().
    RingPosition read(std::uint32_t blocks, bool held) noexcept;
    // The holder of these blocks is done with them. They were held (asserted).
    void release(RingPosition begin, std::uint32_t blocks) noexcept;

    // What the header of the next batch to the peer says. The peer knows afterwards.
    [[nodiscard]] std::uint32_t unreturned() const noexcept { return retired_ - returned_; }
    std::uint32_t take_returned() noexcept;
    [[nodiscard]] std::uint32_t receives_used() const noexcept { return receives_used_; }
    std::uint32_t take_receives() noexcept;
    // The peer is to be told of free space or receive requests before it is stuck.
    // mutants: copyrpc-receive-ledger-has-news
    [[nodiscard]] bool has_news() const noexcept {
        return flow_ == Flow::Credit && (unreturned() >= ring_.return_step() || receives_used_ >= receives_max_ / 2);
    }
    // With Flow::Read: what the peer may read at any time.
    [[nodiscard]] ConsumerWord word() const noexcept { return {static_cast<std::uint32_t>(retired_.block), batches_}; }

    // The next batch to the peer gives it space to write to, unless it has all of it. A peer with space can return
    // receive requests, also while it waits for something. The peer's last receive request is for such a batch.
    [[nodiscard]] bool gives_space() const noexcept { return unreturned() != 0 || returned_ == arrived_; }

    [[nodiscard]] RingShape ring() const noexcept { return ring_; }

private:
    void mark(RingPosition begin, bool held) noexcept;
    void retire() noexcept;

    RingShape ring_;
    Flow flow_;
    std::uint32_t batches_ = 0;  // that came, modulo 2^32
    std::uint32_t receives_max_;
    std::uint32_t receives_used_ = 0;  // since the peer was told
    RingPosition returned_{};          // up to here the peer knows that blocks are free
    RingPosition retired_{};           // up to here they are
    RingPosition read_{};              // up to here batches were read
    RingPosition arrived_{};
    std::vector<std::uint64_t> held_;  // a bit for each block: a held request begins there
};

}  // namespace cairn::copyrpc
