// Accounts for the space of an end's own ring.
#include "rpc/copyrpc/receive_ledger.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace cairn::copyrpc {

namespace {

constexpr std::uint32_t kBits = 64;

}  // namespace

ReceiveLedger::ReceiveLedger(RingShape ring, std::uint32_t receives, Flow flow)
    : ring_(ring), flow_(flow), receives_max_(receives), held_((ring.blocks() + kBits - 1) / kBits) {}

bool ReceiveLedger::on_batch(BatchImmediate said) noexcept {
    const std::uint32_t skipped = said.wraps ? ring_.to_end(arrived_) : 0;
    const RingPosition begin = arrived_ + skipped;
    const bool counted = flow_ == Flow::Credit;  // otherwise the peer knows what is free and posted
    const std::uint32_t taken = arrived_ - (counted ? returned_ : retired_);
    if (said.blocks == 0 || said.blocks > ring_.to_end(begin) || skipped > ring_.blocks() - taken ||
        said.blocks > ring_.blocks() - taken - skipped || (counted && receives_used_ == receives_max_)) {
        return false;
    }
    CAIRN_ASSERT(unread() == 0);
    receives_used_ += counted ? 1 : 0;
    ++batches_;
    read_ = begin;
    arrived_ = begin + said.blocks;
    retire();
    return true;
}

RingPosition ReceiveLedger::read(std::uint32_t blocks, bool held) noexcept {
    CAIRN_ASSERT(blocks <= unread());
    const RingPosition begin = read_;
    read_ = read_ + blocks;
    if (held) {
        mark(begin, true);
    } else {
        retire();
    }
    return begin;
}

void ReceiveLedger::release(RingPosition begin, std::uint32_t blocks) noexcept {
    if (blocks != 0) {
        mark(begin, false);
        retire();
    }
}

// A request's first block stands for all of it: blocks after a held block are not free either.
void ReceiveLedger::mark(RingPosition begin, bool held) noexcept {
    const std::uint32_t index = ring_.index_of(begin);
    const std::uint64_t bit = std::uint64_t{1} << (index % kBits);
    CAIRN_ASSERT((held_[index / kBits] & bit) == (held ? 0 : bit));
    held_[index / kBits] ^= bit;
}

// Frees blocks that were read and are not held, up to the first held one. It frees up to `read_` only: a request that
// is released while its batch is read must not free later blocks.
void ReceiveLedger::retire() noexcept {
    while (retired_ < read_) {
        const std::uint32_t index = ring_.index_of(retired_);
        const std::uint64_t bits = held_[index / kBits] >> (index % kBits);
        const std::uint32_t free =
            bits == 0 ? kBits - index % kBits : static_cast<std::uint32_t>(std::countr_zero(bits));
        retired_ = retired_ + std::min({free, ring_.to_end(retired_), read_ - retired_});
        if (bits != 0 && free == 0) {
            return;
        }
    }
}

std::uint32_t ReceiveLedger::take_returned() noexcept {
    return retired_ - std::exchange(returned_, retired_);
}

std::uint32_t ReceiveLedger::take_receives() noexcept {
    return std::exchange(receives_used_, 0);
}

}  // namespace cairn::copyrpc
