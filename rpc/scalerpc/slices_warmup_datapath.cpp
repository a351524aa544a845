// Chooses the next slice, and reads its requests into the pool before it begins (ScaleRPC 3.4).
#include <algorithm>

#include "rpc/scalerpc/fetch.hpp"
#include "rpc/scalerpc/slices.hpp"

namespace cairn::scalerpc {

// True if a client has left its last slice, and requests wait at the client.
bool Slices::has_work(const Session& session) const noexcept {
    const Guest& guest = *session.guest;
    if (!session.is_open() || guest.state != GuestState::Idle) {
        return false;
    }
    const Entry entry = entries_[session];
    return entry.count != 0 && entry.acknowledged == guest.epoch;
}

// True if a client of the group has work. A slow client has work also if its requests were read too late for another
// slice.
bool Slices::has_work(const Groups::Group& group) const noexcept {
    return std::any_of(group.members.begin(), group.members.end(), [this](SessionId id) {
        const Session* const session = sessions_.find(id);
        return session != nullptr && session->guest &&
               (has_work(*session) || session->guest->state == GuestState::Fetched);
    });
}

// With a common clock, returns the group of the next slot, or of the present slot if this slice is over. It need not
// have work itself. If no cohort has work, there is no next group.
std::size_t Slices::next_cohort(Instant now) {
    const auto works = [this](const Groups::Group& group) { return has_work(group); };
    if (groups_.next(works) == groups_.size()) {
        return groups_.size();
    }
    const SliceClock& clock = *config_.slice_clock;
    const Instant end = slice_.began + slice_.length;
    const SliceClock::Slot slot = clock.slot_at(now < end ? end + clock.config().slice / 4 : now);
    next_.slot = slot.number;
    next_.ends = slot.ends;
    return clock.cohort_of(slot);
}

// Reads the requests of the group that has waited longest among those with work. Hosts become late if a switch would
// not wait for their clients any more.
void Slices::warm(Instant now, Broken& broken) {
    const std::size_t group =
        config_.slice_clock != nullptr
            ? next_cohort(now)
            : groups_.next([this](const Groups::Group& candidate) { return has_work(candidate); });
    if (group == groups_.size()) {
        nobody_waits_ = true;
        return;
    }
    const SliceView seen = view(now);
    pools_->note_late_hosts(now, std::max(config_.groups.slice, seen.patience));
    groups_.begin_slice(group);
    next_.warming = true;
    next_.began = now;
    next_.served = groups_[group].members;
    next_.usual = groups_[group].slice;
    next_.length = patience_.length(next_.usual, std::min(config_.notice_timeout, Patience::kMost));
    for (const SessionId id : next_.served) {
        Session* const session = sessions_.find(id);
        if (session == nullptr || !session->guest) {
            continue;
        }
        Guest& guest = *session->guest;
        if (has_work(*session)) {
            (void)admit(*session, When::Next, now, broken);
        } else if (guest.state == GuestState::Fetching && guest.fetched_for == FetchedFor::Now &&
                   !patience_.is_slow(guest.way, config_.groups.slice)) {
            guest.fetched_for = FetchedFor::NowAwaited;
            ++census_.awaited;
        }
    }
}

// Gives a slot to a client that has work, and reads its requests into the slot. Returns false if there is no slot, or
// no room to READ or to bind its window. Then the client is looked at again.
bool Slices::admit(Session& session, When when, Instant now, Broken& broken) {
    Guest& guest = *session.guest;
    Entry entry = entries_[session];
    if (!entry.is_sound(config_.shape, session.peer.staged.address, guest.next)) {
        broken.emplace_back(&session, Breach::BadEntry);
        return false;
    }
    if (!pools_->take_berth(when == When::Next ? pools_->other(slice_.pool) : slice_.pool, session)) {
        sessions_.note_written(session);
        return false;
    }
    guest.fetched_for =
        when == When::Next && !patience_.is_slow(guest.way, config_.groups.slice) ? FetchedFor::Next : FetchedFor::Now;
    entry.count = config_.features.warmup ? fetch(config_, *pools_, session, entry, statistics_) : 0;
    guest.fetched = entry;
    guest.left = now;
    if (entry.count != 0) {
        become(session, GuestState::Fetching);
    } else if (!config_.features.warmup) {
        become(session, GuestState::Fetched);
    } else {
        pools_->give_back(session);
        sessions_.note_written(session);
        return false;
    }
    if (guest.state == GuestState::Fetched && when == When::Now) {
        start(session, now, broken);
    }
    return guest.state != GuestState::Idle;
}

// Requests that come too late for a slice lie in a slot of the other pool. Their client is served in that pool's next
// slice. If no slice follows, they are read again.
void Slices::on_fetched(Session& session, Instant now, Broken& broken) {
    Guest& guest = *session.guest;
    if (guest.state != GuestState::Fetching || --guest.reads.under_way != 0) {
        return;
    }
    become(session, GuestState::Fetched);
    guest.way = std::max(guest.way / 2, now - guest.left);
    patience_.on_heard(now - guest.left);
    if (guest.fetched_for == FetchedFor::Next) {
        return;
    }
    nobody_waits_ = false;
    if (guest.berth->pool == slice_.pool) {
        start(session, now, broken);
    } else if (groups_.size() == 1 && !next_.warming) {
        leave(session);
    }
}

}  // namespace cairn::scalerpc
