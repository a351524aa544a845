// Takes requests from their blocks, looks at entries, begins and ends slices.
#include "rpc/scalerpc/slices.hpp"

#include <algorithm>
#include <utility>

namespace cairn::scalerpc {

namespace {

constexpr std::int64_t kDrainRounds = 2;  // rounds in which answers notify clients that the slice is over

// READs that are still under way are for the present slice, or come too late.
void await_nobody(const Pools& pools) noexcept {
    for (std::uint8_t pool = 0; pool != 2; ++pool) {
        for (Session* const session : pools.tenants(pool)) {
            session->guest->fetched_for = FetchedFor::Now;
        }
    }
}

// Looks at a waiting request again. If the slice ends before it is taken, its client stages it again.
void put_off(Sessions& sessions, Session& session, Server::Taking why, Slices::Broken& broken) {
    if (why == Server::Taking::Overdrawn) {
        broken.emplace_back(&session, Breach::Overdrawn);
    } else {
        sessions.note_written(session);
    }
}

// Notes when requests were first seen behind one that waits. Their time runs while they wait, too.
void note_waiting(Guest& guest, const Pools& pools, const BlockShape& shape, Instant now) noexcept {
    for (std::uint32_t sequence = guest.next + 1; sequence != guest.next + shape.blocks; ++sequence) {
        Request request;
        Instant& since = guest.kept[shape.index_of(sequence)].waits_since;
        if (since == Instant::never() &&
            read_request(pools.block(guest, sequence), guest.epoch, sequence, request) == Look::There) {
            since = now;
        }
    }
}

// Returns true if the present slice ends for another one.
bool has_successor(const Groups& groups, const NextSlice& next) noexcept {
    return groups.size() > 1 || next.warming;
}

}  // namespace

// With one entry a leaving client may ask for the next slice, or for the present one. A client in its own slice asks
// until it is notified of the slice. A slow client's requests are read as soon as it asks.
bool Slices::look_at(Session& session, Instant now, Broken& broken) {
    Guest& guest = *session.guest;
    bool any = guest.state == GuestState::Serving && take_requests(session, now, broken);
    guest.note_asked(entries_[session], config_.shape, now);
    server_.answers().tell_of_slice(session, entries_[session]);
    if (guest.state == GuestState::Leaving) {
        look_whether_left(session, now);
    }
    if (has_work(session)) {
        nobody_waits_ = false;
        if (groups_.size() > 1 && patience_.is_slow(guest.way, config_.groups.slice)) {
            any = (pools_->has_spare(pools_->other(slice_.pool)) && admit(session, When::Next, now, broken)) || any;
        } else if (!next_.warming && guest.served == slice_.number) {
            any = admit(session, When::Now, now, broken) || any;
        }
    }
    return any;
}

bool Slices::on_turn(Instant now, Broken& broken) {
    looks_again_ = false;
    // If this worker stood still, input of that time is read first: clients are not late because this worker was.
    if (now - last_turn_ > config_.notice_timeout / 4) {
        next_late_ = std::max(next_late_, now + config_.notice_timeout / 4);
    }
    last_turn_ = now;
    if (census_.leaving != 0 && now >= next_late_) {
        end_keys_of_the_late(now);
    }
    if (!has_successor(groups_, next_)) {  // the slice does not end
        return false;
    }
    SliceView seen = view(now);
    if (is_ready(seen)) {
        next_.ready = std::min(next_.ready, now);
        seen.ready_for = now - next_.ready;
    }
    next_step_ = slice_.began + next_look(seen);
    switch (judge_slice(seen)) {
        case SliceStep::Go:
            break;
        case SliceStep::Warm:
            if (!nobody_waits_) {
                warm(now, broken);
            }
            break;
        case SliceStep::Close:
            close(now);
            break;
        case SliceStep::Switch:
            switch_over(now, broken);
            return true;
    }
    return false;
}

void Slices::become(Session& session, GuestState state) noexcept {
    Guest& guest = *session.guest;
    census_.count(guest.state, guest.fetched_for, -1);
    guest.state = state;
    census_.count(guest.state, guest.fetched_for, 1);
    CAIRN_ASSERT(census_.awaited >= 0);
}

// A client is expected to ask again after the mean time of clients in this slice.
SliceView Slices::view(Instant now) const noexcept {
    const bool free = config_.slice_clock == nullptr;  // the slice ends when it is not used
    SliceView view;
    view.clocked = !free;
    view.elapsed = now - slice_.began;
    view.patience = patience_.for_most(slice_.usual, std::min(config_.notice_timeout, Patience::kMost));
    view.length = config_.features.warmup ? slice_.length : std::max(slice_.length, view.patience);
    view.quiet = free ? now - slice_.last_request : Duration{};
    view.drain = Duration{
        std::min(slice_.length.ns / 2, kDrainRounds * view.elapsed.ns * census_.serving / (slice_.requests + 1))};
    view.warming = next_.warming;
    view.deserted = free && census_.serving == 0;
    view.warmed_for = now - next_.began;
    view.warm = census_.awaited == 0;
    return view;
}

// Takes a client's requests in the order of their sequence numbers, so it looks only at the block of the next one. Only
// requests of the slice's own clients are taken (I1). A block is zero outside its request, so a trailer without a
// request finds no bytes of others.
bool Slices::take_requests(Session& session, Instant now, Broken& broken) {
    Guest& guest = *session.guest;
    CAIRN_ASSERT(guest.served == slice_.number && guest.berth->pool == slice_.pool);
    bool any = false;
    while (session.is_open() && guest.state == GuestState::Serving) {
        ++statistics_.polls;
        Request request;
        const std::span<std::uint8_t> block = pools_->block(guest, guest.next);
        const Look look = read_request(block, guest.epoch, guest.next, request);
        if (look == Look::Absent) {
            break;
        }
        if (look == Look::Nonsense) {
            broken.emplace_back(&session, Breach::BadBlock);
            break;
        }
        const Server::Taking taking = server_.on_request(session, request, now);
        if (taking != Server::Taking::Taken) {
            put_off(sessions_, session, taking, broken);
            if (taking == Server::Taking::Waits) {
                note_waiting(guest, *pools_, config_.shape, now);
            }
            break;
        }
        clear_message(block, request.payload.size());
        any = true;
        slice_.on_request(now);
        ++slice_.requests;
    }
    return any;
}

// If a client has left, ends its key, and then takes its slot back. The key's end does not go through the send queue. A
// client that acknowledges nothing holds up that queue, and could then write into another client's slot.
void Slices::look_whether_left(Session& session, Instant now) {
    Guest& guest = *session.guest;
    if (entries_[session].acknowledged == guest.epoch) {
        patience_.on_heard(now - guest.left);
        guest.window.reset();
        pools_->give_back(session);
        become(session, GuestState::Idle);
    }
}

// Ends the key of each client that does not leave in time. Its later writes have no effect, and end its connection. If
// the send queue has no room for a notice, the notice is late itself. A client that causes this for long loses its key,
// too.
void Slices::end_keys_of_the_late(Instant now) {
    next_late_ = Instant::never();
    for (std::uint8_t pool = 0; pool != 2; ++pool) {
        const std::vector<Session*>& tenants = pools_->tenants(pool);
        for (std::size_t i = tenants.size(); i-- > 0;) {
            Session& session = *tenants[i];
            const Duration on_its_way = session.guest->words.notice_posted ? Duration{} : config_.peer_timeout;
            const Instant late = session.guest->left + config_.notice_timeout + on_its_way;
            if (session.guest->state != GuestState::Leaving) {
                continue;
            }
            if (now < late) {
                next_late_ = std::min({next_late_, late, now + config_.notice_timeout});  // a notice may leave soon
                continue;
            }
            ++statistics_.keys_ended;
            session.guest->window.reset();
            pools_->wipe(*session.guest);
            leave(session);
        }
    }
}

// Takes the slot back, and looks at the client again: it may have asked before.
void Slices::leave(Session& session) noexcept {
    pools_->give_back(session);
    become(session, GuestState::Idle);
    sessions_.note_written(session);
}

// A request must not be longer than what was read of it: bytes before that are not the client's. If one request waits,
// all later ones wait as if the client had written them.
void Slices::take_fetched(Session& session, Instant now, Broken& broken) {
    Guest& guest = *session.guest;
    const std::uint32_t end = guest.next + guest.fetched.count;
    bool waits = false;
    for (std::uint32_t sequence = guest.next; sequence != end && session.is_open(); ++sequence) {
        Request request;
        const std::span<std::uint8_t> block = pools_->block(guest, sequence);
        if (read_request(block, kStaged, sequence, request) != Look::There ||
            request.payload.size() + sizeof(RawTrailer) > guest.fetched.longest) {
            broken.emplace_back(&session, Breach::BadFetch);
            return;
        }
        if (!waits) {
            const Server::Taking taking = server_.on_request(session, request, now);
            waits = taking != Server::Taking::Taken;
            if (waits) {
                put_off(sessions_, session, taking, broken);
            } else {
                clear_message(block, request.payload.size());
            }
        }
        if (waits) {
            change_epoch(block, guest.epoch);
        }
    }
}

// Begins a client's slice: gives it the key of its blocks, and takes the requests that were read.
void Slices::start(Session& session, Instant now, Broken& broken) {
    Guest& guest = *session.guest;
    verbs::WindowBind blocks;
    blocks.signalled = false;
    blocks.offset = pools_->offset_of(*guest.berth);
    blocks.bytes = config_.shape.session_bytes();
    blocks.rights = verbs::Rights{verbs::Right::RemoteWrite};
    if (guest.window == nullptr) {
        auto made = device_->create_window(*pd_, verbs::WindowType::Type2B);
        guest.window = made.ok() ? std::move(made).value() : nullptr;
    }
    if (guest.window == nullptr ||
        guest.window->bind(*session.qp, pools_->region(), blocks) != verbs::PostVerdict::Posted) {
        leave(session);
        return;
    }
    become(session, GuestState::Serving);
    guest.epoch = next_epoch(guest.epoch);
    guest.served = slice_.number;
    guest.told = false;
    for (Guest::Kept& each : guest.kept) {
        each.waits_since = Instant::never();  // the client staged the request again, and told the time that is left
    }
    guest.grant.kind = News::Kind::Grant;
    guest.grant.epoch = guest.epoch;
    guest.grant.accepted = guest.next + guest.fetched.count;  // the client writes from this request on
    guest.grant.grant = {pools_->region().address() + pools_->offset_of(*guest.berth), guest.window->rkey()};
    take_fetched(session, now, broken);
    server_.answers().tell_of_slice(session, entries_[session]);
    if (guest.fetched.count == 0) {
        slice_.last_request = now;
    } else {
        slice_.on_request(now);
    }
}

// Sends away clients that have an answer now, so that they need no separate notice.
void Slices::close(Instant now) {
    for (Session* const session : pools_->tenants(slice_.pool)) {
        const Guest& guest = *session->guest;
        if (guest.state == GuestState::Serving && !session->guest->outbox.entries().empty()) {
            send_away(*session, now);
        }
    }
}

// Switches slices. All blocks were looked at in this turn, so each request that came is answered (I3), and the clients
// are notified.
void Slices::switch_over(Instant now, Broken& broken) {
    ++statistics_.switches;
    const Instant due = std::max(slice_.began + slice_.length, next_.began);
    statistics_.waited_ns +=
        static_cast<std::uint64_t>(std::max<std::int64_t>((std::min(next_.ready, now) - due).ns, 0));
    next_.ready = Instant::never();
    for (Session* const session : pools_->tenants(slice_.pool)) {
        if (session->guest->state == GuestState::Serving) {
            send_away(*session, now);
        }
    }
    CAIRN_ASSERT(census_.serving == 0);
    patience_.on_slice(std::any_of(slice_.shares.begin(), slice_.shares.end(),
                                   [](const Groups::Share& share) { return share.requests != 0; }));
    groups_.end_slice(slice_.shares, now - slice_.began);
    slice_.shares.clear();
    slice_.requests = 0;
    slice_.pool = pools_->other(slice_.pool);
    ++slice_.number;
    serve(next_.served);
    next_.served.clear();
    slice_.length = next_.length;
    slice_.usual = next_.usual;
    if (config_.slice_clock != nullptr) {
        slice_.slot = next_.slot;
        slice_.length = slice_.usual = std::max(next_.ends - now, kLead);
    }
    next_.warming = false;
    slice_.began = slice_.last_request = now;
    serve_all_if_alone();
    await_nobody(*pools_);
    census_.awaited = 0;
    const std::vector<Session*> tenants = pools_->tenants(slice_.pool);
    for (Session* const session : tenants) {
        if (session->is_open() && session->guest->state == GuestState::Fetched) {
            start(*session, now, broken);
        }
    }
}

void Slices::send_away(Session& session, Instant now) {
    Guest& guest = *session.guest;
    News notice;
    notice.kind = News::Kind::Notice;
    notice.epoch = guest.epoch;
    notice.accepted = guest.next;
    server_.answers().tell(session, notice);
    slice_.shares.push_back({session.id, guest.share.requests, guest.share.bytes});
    guest.share = {};
    guest.told = true;
    if (census_.leaving == 0) {
        next_late_ = now + config_.notice_timeout;
    }
    become(session, GuestState::Leaving);
    guest.left = now;
    guest.words.notice_posted = false;
}

}  // namespace cairn::scalerpc
