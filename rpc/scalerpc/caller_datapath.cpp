#include "rpc/scalerpc/caller.hpp"

#include <algorithm>

namespace cairn::scalerpc {

namespace {

// Compares sequence numbers, which wrap. The server can have taken neither fewer requests than it said, nor more than
// exist.
bool is_in_order(std::uint32_t first, std::uint32_t between, std::uint32_t last) noexcept {
    return between - first <= last - first;
}

}  // namespace

std::uint32_t left_us(Instant deadline, Instant now) noexcept {
    if (deadline == Instant::never()) {
        return rpc::kNoTimeLimit;
    }
    const std::int64_t left = (deadline - now).ns;
    const std::int64_t rounded = left / 1000 + (left % 1000 > 0 ? 1 : 0);
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(rounded, 1, rpc::kMostTimeLeft));
}

Caller::Slot& Caller::stage(Request request, std::uint32_t call, Instant now) noexcept {
    Slot& slot = slots_[shape_.index_of(next_)];
    CAIRN_ASSERT(has_room());
    request.sequence = next_;
    slot = {call, next_, put_request(request, kStaged, block_of(next_)), rpc::deadline_of(request.left_us, now)};
    busy_ |= std::uint64_t{1} << shape_.index_of(next_);
    ++next_;
    return slot;
}

// Requests before `written_` were taken, or have left.
void Caller::give_up(Slot& slot) noexcept {
    slot.call = rpc::kNone;
    if (slot.sequence - written_ < next_ - written_) {
        scalerpc::give_up(block_of(slot.sequence));
    }
}

std::optional<Breach> Caller::on_answered(std::uint32_t sequence, const News& news) noexcept {
    if (!on_news(news)) {
        return Breach::BadNews;
    }
    const std::uint32_t told = told_.first + told_.count;
    const std::uint32_t had = state_ == CallerState::Process        ? written_
                              : is_in_order(accepted_, told, next_) ? told
                                                                    : accepted_;
    return next_ - sequence > next_ - had ? std::nullopt : std::optional(Breach::BadAnswer);
}

std::optional<News> Caller::look_at_control(bool& nonsense) noexcept {
    const std::optional<Control> control = Control::parse(answers().data() + (is_welcome() ? 0 : kWelcomeOffset));
    if (!control) {
        nonsense = true;
        return std::nullopt;
    }
    if (control->count == control_seen_) {
        return std::nullopt;
    }
    control_seen_ = control->count;
    return control->news;
}

bool Caller::on_news(const News& news) noexcept {
    switch (news.kind) {
        case News::Kind::None:
            return true;
        case News::Kind::Welcome:
            entry_at_ = news.grant;
            return true;
        case News::Kind::Grant:
            return on_grant(news);
        case News::Kind::Notice:
            return on_notice(news);
    }
    return false;
}

// Takes a grant. The first answer of a slice says where to write requests (I4). A control word says so if the server
// has no warmup, or if the client asks more before its first answer.
bool Caller::on_grant(const News& news) noexcept {
    if (is_old(news.epoch)) {
        return true;
    }
    if (!is_in_order(accepted_, news.accepted, next_) || state_ == CallerState::Process) {
        return false;
    }
    state_ = changed(state_, CallerState::Process, CallerCause::Grant);
    epoch_ = news.epoch;
    grant_ = news.grant;
    written_ = news.accepted;
    return true;
}

// Ends the slice (I5). Requests that the server has not taken wait in their blocks for the next slice, even if they
// were READ.
bool Caller::on_notice(const News& news) noexcept {
    if (is_old(news.epoch)) {
        return true;
    }
    if (!is_in_order(accepted_, news.accepted, next_) || next_ - news.accepted > shape_.blocks) {
        return false;
    }
    state_ = changed(state_, CallerState::Idle, CallerCause::Notice);
    accepted_ = written_ = news.accepted;
    acknowledged_ = news.epoch;
    for (std::uint32_t sequence = accepted_; sequence != next_; ++sequence) {
        change_epoch(block_of(sequence), kStaged);
        if (slots_[shape_.index_of(sequence)].call == rpc::kNone) {
            scalerpc::give_up(block_of(sequence));
        }
    }
    return true;
}

void Caller::tell_time_left(Span leaving, Instant now) noexcept {
    for (std::uint32_t sequence = leaving.from; sequence != leaving.to; ++sequence) {
        const Slot& slot = slots_[shape_.index_of(sequence)];
        if (slot.deadline == Instant::never() || sequence - told_.first < told_.count) [[likely]] {
            continue;
        }
        if (slot.deadline <= now) {
            scalerpc::give_up(block_of(sequence));
        } else {
            set_left(block_of(sequence), left_us(slot.deadline, now));
        }
    }
}

std::optional<Entry> Caller::entry_due(std::uint64_t staged_address) noexcept {
    if (!is_welcome() || state_ == CallerState::Process) {
        return std::nullopt;
    }
    Entry entry;
    entry.first = accepted_;
    entry.count = next_ - accepted_;
    entry.address = staged_address + std::uint64_t{shape_.index_of(accepted_)} * shape_.bytes;
    entry.longest = sizeof(RawTrailer);
    entry.acknowledged = acknowledged_;
    for (std::uint32_t sequence = accepted_; sequence != next_; ++sequence) {
        entry.longest = std::max(entry.longest, slots_[shape_.index_of(sequence)].tail);
    }
    if (entry.count != 0) {
        state_ = changed(state_, CallerState::Warmup, CallerCause::Entry);
    }
    const bool is_new = entry.acknowledged != told_.acknowledged ||
                        (entry.count != 0 && (entry.first != told_.first || entry.count != told_.count));
    return is_new ? std::optional<Entry>(entry) : std::nullopt;
}

void Caller::ready(std::uint32_t sequence) noexcept {
    CAIRN_ASSERT(state_ == CallerState::Process);
    change_epoch(block_of(sequence), epoch_);
}

}  // namespace cairn::scalerpc
