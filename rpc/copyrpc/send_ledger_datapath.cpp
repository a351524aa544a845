// Accounts for space and credits of the peer's ring.
#include "rpc/copyrpc/send_ledger.hpp"

namespace cairn::copyrpc {

namespace {

// Returns how much of a promise a request takes.
constexpr std::uint32_t cost_of(Flow flow, std::uint32_t charge) noexcept {
    return flow == Flow::Credit ? charge : 1;
}

}  // namespace

SendLedger::SendLedger(RingShape ring, RingShape own_ring, std::uint32_t receives, Flow flow) noexcept
    : ring_(ring),
      own_ring_(own_ring),
      flow_(flow),
      receives_max_(receives),
      receives_(receives),
      promised_(ring.promise_max()),
      balance_(own_ring.promise_max()) {
    CAIRN_ASSERT(receives >= 4);
}

bool SendLedger::joins_open(std::uint32_t blocks) const noexcept {
    return open_.messages != 0 && blocks <= ring_.blocks() - ring_.index_of(open_.begin) - open_.blocks;
}

// Returns how far the head moves for a message: by its blocks. A batch of its own adds the header and the waste.
std::uint32_t SendLedger::advance_of(std::uint32_t blocks) const noexcept {
    if (joins_open(blocks)) {
        return blocks;
    }
    const std::uint32_t whole = blocks + 1;
    const std::uint32_t to_end = ring_.to_end(head_);
    return whole <= to_end ? whole : to_end + whole;
}

Room SendLedger::judge_request(std::uint32_t blocks, std::uint32_t charge) const noexcept {
    if (blocks > ring_.message_max() || charge > own_ring_.charge_max()) {
        return Room::TooLong;
    }
    if (cost_of(flow_, charge) > balance_) {
        return Room::InsufficientCredit;
    }
    if (flow_ == Flow::Read) {
        return in_flight() + advance_of(blocks) <= ring_.blocks() ? Room::Fits : Room::RingFull;
    }
    const std::uint32_t taken = in_flight() + advance_of(blocks) + 2 * promised_ + ring_.kept_for_empty();
    return taken <= ring_.blocks() ? Room::Fits : Room::RingFull;
}

RingPosition SendLedger::take_request(std::uint32_t blocks, std::uint32_t charge) noexcept {
    CAIRN_ASSERT(judge_request(blocks, charge) == Room::Fits);
    balance_ -= cost_of(flow_, charge);
    charged_ += cost_of(flow_, charge);
    return place(blocks);
}

// With Flow::Read a promise counts answers, of any length. An answer that no ring can hold would wait for ever.
bool SendLedger::on_request(std::uint32_t charge) noexcept {
    if (charge < 2 || cost_of(flow_, charge) > promised_ - asked_) {
        return false;
    }
    if (flow_ == Flow::Read && charge > ring_.charge_max()) {
        return false;
    }
    asked_ += cost_of(flow_, charge);
    return true;
}

void SendLedger::on_answer(std::uint32_t charge) noexcept {
    charged_ -= cost_of(flow_, charge);
    balance_ += flow_ == Flow::Read ? 1 : 0;
}

RingPosition SendLedger::take_answer(std::uint32_t blocks, std::uint32_t charge) noexcept {
    CAIRN_ASSERT(blocks < charge && cost_of(flow_, charge) <= asked_ && fits_answer(blocks));
    promised_ -= flow_ == Flow::Credit ? charge : 0;
    asked_ -= cost_of(flow_, charge);
    return place(blocks);
}

RingPosition SendLedger::place(std::uint32_t blocks) noexcept {
    if (!joins_open(blocks)) {
        if (open_.messages != 0) {
            CAIRN_ASSERT(!closed_);  // a second one would begin a whole ring later
            closed_batch_ = open_;
            closed_ = true;
        }
        const bool wraps = blocks + 1 > ring_.to_end(head_);
        head_ = wraps ? head_ + ring_.to_end(head_) : head_;
        open_ = {head_, 1, 0, wraps};
        head_ = head_ + 1;
    }
    const RingPosition at = head_;
    head_ = head_ + blocks;
    open_.blocks += blocks;
    ++open_.messages;
    return at;
}

Batch SendLedger::take_batch() noexcept {
    CAIRN_ASSERT(has_batch(true));
    const Batch batch = closed_ ? closed_batch_ : open_;
    if (closed_) {
        closed_ = false;
    } else {
        open_ = {};
    }
    --receives_;
    sent_ = batch.begin + batch.blocks;
    return batch;
}

bool SendLedger::has_room_for_empty() const noexcept {
    return flow_ == Flow::Credit && !closed_ && open_.messages == 0 && receives_ != 0 &&
           in_flight() + 1 + 2 * promised_ <= ring_.blocks();
}

Batch SendLedger::take_empty() noexcept {
    CAIRN_ASSERT(has_room_for_empty());
    const Batch batch{head_, 1, 0, false};
    head_ = head_ + 1;
    sent_ = head_;
    --receives_;
    return batch;
}

std::uint32_t SendLedger::grantable() const noexcept {
    const std::uint32_t kept = in_flight() + ring_.kept_for_empty();
    const std::uint32_t most = kept < ring_.blocks() ? (ring_.blocks() - kept) / 2 : 0;
    const std::uint32_t wanted = std::min(most, ring_.promise_max());
    return flow_ == Flow::Credit && wanted > promised_ ? wanted - promised_ : 0;
}

std::uint32_t SendLedger::grant() noexcept {
    const std::uint32_t granted = grantable();
    promised_ += granted;
    return granted;
}

bool SendLedger::on_header(std::uint32_t returned, std::uint32_t granted, std::uint32_t receives) noexcept {
    if (returned > sent_ - returned_ || granted > most_promised() - balance_ - charged_ ||
        receives > receives_max_ - receives_) {
        return false;
    }
    returned_ = returned_ + returned;
    balance_ += granted;
    receives_ += receives;
    return true;
}

bool SendLedger::on_word(const ConsumerWord& word) noexcept {
    const std::uint32_t blocks = word.blocks - static_cast<std::uint32_t>(returned_.block);
    const std::uint32_t batches = word.batches - batches_known_;
    constexpr std::uint32_t kOlder = 1U << 31U;
    const bool new_blocks = blocks < kOlder;
    const bool new_batches = batches < kOlder;
    if ((new_blocks && blocks > sent_ - returned_) || (new_batches && batches > receives_max_ - receives_)) {
        return false;
    }
    returned_ = returned_ + (new_blocks ? blocks : 0);
    receives_ += new_batches ? batches : 0;
    batches_known_ += new_batches ? batches : 0;
    return true;
}

void SendLedger::check() const noexcept {
    CAIRN_ASSERT(in_flight() + (flow_ == Flow::Credit ? 2 * promised_ : 0) <= ring_.blocks());
    CAIRN_ASSERT(asked_ <= promised_ && receives_ <= receives_max_);
    CAIRN_ASSERT(balance_ + charged_ <= most_promised());
}

}  // namespace cairn::copyrpc
