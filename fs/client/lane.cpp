#include "fs/client/lane.hpp"

#include <bit>
#include <cerrno>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::int32_t kLargestErrno = 4095;

// Returns the error that an ask gets for an answer's error.
int told_error(std::int32_t error) noexcept {
    const bool is_sound = (error >= 0 && error <= kLargestErrno) || error == kErrorOtherGeneration;
    return is_sound ? error : EIO;
}

}  // namespace

void Lane::submit(Ask& ask, const View& view) noexcept {
    queue_.push(ask);
    send_queued(view);
}

void Lane::send_queued(const View& view) noexcept {
    while (free_ != 0 && !queue_.is_empty()) {
        const std::optional<std::uint32_t> slot = end_->take_slot();
        CAIRN_ASSERT(slot.has_value());
        --free_;
        send(*slot, queue_.pop(), view);
    }
}

void Lane::send(std::uint32_t slot, Ask& ask, const View& view) noexcept {
    Slot& own = slots_[slot];
    own.ask = &ask;
    own.head = {.shard = ask.shard,
                .sequence = own.head.sequence + 1,
                .table = static_cast<std::uint32_t>(view.table().epoch())};
    asked_ |= std::uint64_t{1} << slot;
    put(*end_, slot);
}

// Also called after a loss: the request's data may lie in another place then.
void Lane::put(ClientEnd& to, std::uint32_t slot) noexcept {
    Ask& ask = *slots_[slot].ask;
    ask.fill(to.data(slot), slot * shape_.data_bytes);
    const std::uint32_t bytes = put_request(to.request(slot), slots_[slot].head, ask.request);
    CAIRN_ASSERT(bytes != 0);  // names and targets are judged before they are asked for
    to.ask(slot, bytes);
}

// Completions may submit further asks, which may take slots that are free already.
std::uint32_t Lane::poll(const View& view, LaneEnds& ends) noexcept {
    std::uint32_t answered = 0;
    for (std::uint64_t left = end_ ? asked_ : 0; left != 0; left &= left - 1) {
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(left));
        const auto answer = end_->answer(slot);
        if (!answer) {
            continue;
        }
        ++answered;
        asked_ &= ~(std::uint64_t{1} << slot);
        if (Ask* const ask = std::exchange(slots_[slot].ask, nullptr); ask != nullptr) {
            end(*ask, *answer, end_->data(slot), ends);
        }
        end_->give_back(slot);
        ++free_;
        send_queued(view);
    }
    return answered;
}

void Lane::end(Ask& ask, std::span<const std::uint8_t> answer, std::span<const std::uint8_t> data,
               LaneEnds& ends) noexcept {
    FieldReader in(answer);
    AnswerHead head;
    AnswerHead::fields(in, head);
    if (in.failed()) {
        ask.complete(EIO, {}, {});
    } else if (head.error == kErrorOtherShard) {
        ++ask.detours;
        ends.detoured.push(ask);
    } else {
        ask.complete(told_error(head.error), answer, data);
    }
}

void Lane::expire(Instant now, LaneEnds& ends) noexcept {
    queue_.take_due(now, ends.failed);
    for (std::uint64_t left = asked_; left != 0; left &= left - 1) {
        Slot& slot = slots_[static_cast<std::size_t>(std::countr_zero(left))];
        if (slot.ask != nullptr && slot.ask->deadline <= now) {
            ends.failed.push(*std::exchange(slot.ask, nullptr));
        }
    }
}

void Lane::replace(std::optional<ChannelParts> parts, LaneEnds& ends) noexcept {
    if (!parts || (end_ && parts->segment.shape() != shape_)) {
        fail_asked(ends);
    }
    free_ = 0;
    if (!parts) {
        meeting_ = 0;
        end_.reset();
        return;
    }
    shape_ = parts->segment.shape();
    meeting_ = parts->meeting;
    ClientEnd fresh(std::move(parts->segment), parts->doorbell.get());
    for (std::uint32_t slot = 0; slot != shape_.slots; ++slot) {
        (void)fresh.take_slot();
    }
    for (std::uint32_t slot = 0; slot != shape_.slots; ++slot) {
        if (is_asked(slot) && slots_[slot].ask != nullptr) {
            put(fresh, slot);
        } else {
            asked_ &= ~(std::uint64_t{1} << slot);
            fresh.give_back(slot);
            ++free_;
        }
    }
    end_.emplace(std::move(fresh));
    doorbell_ = std::move(parts->doorbell);
}

void Lane::fail_asked(LaneEnds& ends) noexcept {
    for (std::uint64_t left = std::exchange(asked_, 0); left != 0; left &= left - 1) {
        Slot& slot = slots_[static_cast<std::size_t>(std::countr_zero(left))];
        if (slot.ask != nullptr) {
            ends.failed.push(*std::exchange(slot.ask, nullptr));
        }
    }
}

}  // namespace cairn::fs
