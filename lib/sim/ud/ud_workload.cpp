// The actions of the world's users: post, run out, change states, join, leave, end and begin anew.
#include <algorithm>
#include <array>

#include "lib/sim/ud/ud_scenario.hpp"

namespace cairn::sim {

using verbs::Attribute;
using verbs::AttributeSet;
using verbs::ModifyRefusal;
using verbs::PostVerdict;
using verbs::QpState;

namespace {

constexpr std::uint32_t kInlineBytes = 64;
constexpr std::uint32_t kSharedSlots = UdHost::kQueueSlots;
constexpr std::size_t kKnown = 24;
constexpr std::uint32_t kCommonKey = 0x2222;  // most have it: groups need one
constexpr Qkey kOwnKey{0x80000000U};

}  // namespace

void UdScenario::make_queues(UdHost& host) {
    const auto slots = static_cast<std::uint32_t>(plan_.small_queues ? random_.between(1, 6) : 4096);
    auto made = std::make_unique<UdQueues>();
    made->sends = host.device->create_cq(plan_.small_queues && random_.chance(kMillion / 2) ? slots : 4096).value();
    made->receives = host.device->create_cq(slots).value();
    if (random_.chance(kMillion / 2)) {
        made->shared = host.device->create_srq(kSharedSlots, 2).value();
    }
    host.queues.push_back(std::move(made));
}

void UdScenario::make_user(UdHost& host) {
    auto user = std::make_unique<UdUser>();
    user->queues = host.queues[random_.below(host.queues.size())].get();
    verbs::QpCapacity capacity;
    capacity.send_slots = static_cast<std::uint32_t>(random_.between(1, 16));
    capacity.receive_slots = static_cast<std::uint32_t>(random_.between(1, UdHost::kQueueSlots));
    capacity.max_sges = 2;
    capacity.inline_bytes = kInlineBytes;
    user->receive_slots = capacity.receive_slots;
    user->qp = host.device
                   ->create_datagram_qp(*host.pd, capacity,
                                        {*user->queues->sends, *user->queues->receives, user->queues->shared.get()})
                   .value();
    host.users.push_back(std::move(user));
    bring_up(host, *host.users.back());
}

// Forgets all requests that the queue pair posted.
void UdScenario::forget_requests(UdHost& host, UdUser& user) {
    user.state = QpState::Reset;
    user.flushing = false;
    for (const UdPending& each : user.pending) {
        host.not_known += (each.signalled && !user.queues->sends->overrun()) || each.doomed ? 0U : 1U;
    }
    user.pending.clear();
    for (const UdPlace& each : user.own.posted) {
        expect(user.queues->overrun() || host.is_untouched(each.number, 0), "a message without a completion");
    }
    host.free_line(user.own);
}

void UdScenario::end_user(UdHost& host, UdUser& user) {
    forget_requests(host, user);
    std::erase_if(host.users, [&user](const auto& each) { return each.get() == &user; });
}

// Replaces completion queues that were overrun, and ends their queue pairs.
void UdScenario::mend(UdHost& host) {
    for (std::size_t i = 0; i < host.queues.size(); ++i) {
        UdQueues* const queues = host.queues[i].get();
        if (!queues->overrun()) {
            continue;
        }
        for (std::size_t at = host.users.size(); at-- > 0;) {
            if (host.users[at]->queues == queues) {
                end_user(host, *host.users[at]);
            }
        }
        host.free_line(queues->line);
        host.queues.erase(host.queues.begin() + static_cast<std::ptrdiff_t>(i));
        make_queues(host);
        i = 0;
    }
    while (host.users.empty() || (host.users.size() < 3 && random_.chance(200'000))) {
        make_user(host);
    }
}

void UdScenario::bring_up(UdHost& host, UdUser& user) {
    for (const QpState to : {QpState::Init, QpState::Rtr, QpState::Rts}) {
        modify(host, user, to);
    }
}

// Sets the attributes that the transition requires, and some that it allows.
void UdScenario::modify(UdHost& host, UdUser& user, QpState to) {
    const std::optional<roce::Transition> step = roce::find_transition(user.state, to, verbs::Service::Ud);
    verbs::QpAttributes values;
    values.qkey = Qkey{random_.chance(800'000) ? kCommonKey : static_cast<std::uint32_t>(random_.below(1U << 31U))};
    values.send_psn = Psn{static_cast<std::uint32_t>(random_.next())};
    if (!step) {
        expect(user.qp->modify(to) == ModifyRefusal::NoTransition, "a state change that there is not");
        return;
    }
    AttributeSet which = step->required;
    if (step->optional.has(Attribute::Qkey) && random_.chance(100'000)) {
        which = which.with(AttributeSet::of(Attribute::Qkey));
    }
    expect(user.qp->modify(to, which, values) == std::nullopt, "a state change was refused");
    if (which.has(Attribute::Qkey)) {
        user.qkey = values.qkey;
    }
    if (to == QpState::Reset) {
        forget_requests(host, user);
    } else if (to == QpState::Rts) {
        user.flushing = false;
        own_.insert(user.qp->qpn());
        known_.push_back({host.index, user.qp->qpn(), user.qkey});
        known_.erase(known_.begin(),
                     known_.begin() + static_cast<std::ptrdiff_t>(known_.size() > kKnown ? known_.size() - kKnown : 0));
    }
    user.state = to;
}

void UdScenario::change_state(UdHost& host, UdUser& user) {
    heed_events(host, false);  // of flushed requests that found no room
    if (user.state == QpState::Reset && random_.chance(kMillion / 2)) {
        bring_up(host, user);
    } else {
        modify(host, user, static_cast<QpState>(random_.below(static_cast<std::uint64_t>(QpState::Count))));
    }
}

void UdScenario::change_membership(UdHost& host, UdUser& user) {
    const std::size_t group = random_.below(kGroups);
    const verbs::Ah& way = *host.ways[hosts_.size() + group];
    if (user.groups.count(group) != 0) {
        expect(!user.qp->attach(way).ok(), "attached twice");
        expect(user.qp->detach(way), "a member can not leave");
        user.groups.erase(group);
    } else {
        expect(!user.qp->detach(way), "who is no member left");
        expect(user.qp->attach(way).ok(), "a group can not be joined");
        user.groups.insert(group);
    }
}

void UdScenario::act(UdHost& host) {
    mend(host);
    post_receives(host);
    for (std::size_t i = 0; i < host.users.size(); ++i) {
        UdUser& user = *host.users[i];
        while (random_.chance(kMillion / 2)) {
            post_somewhere(host, user);
        }
        if (random_.chance(60'000)) {
            change_membership(host, user);
        }
        // A user that is not ready to send soon changes its state again.
        if (random_.chance(user.state == QpState::Rts ? 30'000 : 300'000)) {
            change_state(host, user);
        }
        if (random_.chance(10'000)) {
            end_user(host, user);
        }
    }
    mend(host);
}

void UdScenario::post_receives(UdHost& host) {
    const std::uint32_t again = world_.healed() ? kMillion : plan_.lazy ? 300'000 : 950'000;
    for (const auto& queues : host.queues) {
        while (queues->shared && queues->line.posted.size() < kSharedSlots && random_.chance(again)) {
            post_receive(host, nullptr, *queues);
        }
    }
    for (const auto& user : host.users) {
        while (user->own.posted.size() < user->receive_slots && random_.chance(again)) {
            post_receive(host, user.get(), *user->queues);
            if (user->queues->shared || user->state == QpState::Reset) {
                break;
            }
        }
    }
}

// Posts a request to the user's own queue, or to the shared one. It has two pieces, split anywhere.
void UdScenario::post_receive(UdHost& host, UdUser* user, UdQueues& queues) {
    if (host.free_places.empty()) {
        return;
    }
    const bool bold = plan_.bold && !world_.healed();
    UdPlace place{++next_wr_id_, host.free_places.back(), verbs::kGrhBytes + plan_.path_mtu_bytes, false};
    place.bad = bold && random_.chance(5'000);
    if (bold && random_.chance(100'000)) {
        place.bytes = static_cast<std::uint32_t>(random_.below(place.bytes));
    }
    const auto split = static_cast<std::uint32_t>(random_.below(place.bytes + 1));
    const std::size_t at = place.bad ? host.source_at() + UdHost::kSourceBytes - 16 : place.number * host.place_bytes;
    const std::array<verbs::Sge, 2> sges{host.sge(at, split), host.sge(at + split, place.bytes - split)};
    const verbs::ReceiveRequest request{place.wr_id, sges};
    const bool refuses = user != nullptr && (queues.shared || user->state == QpState::Reset);
    const PostVerdict verdict =
        user == nullptr ? queues.shared->post({&request, 1}).verdict : user->qp->post_receive(request);
    expect(verdict == (refuses ? PostVerdict::WrongState : PostVerdict::Posted), "a receive request was misjudged");
    if (verdict == PostVerdict::Posted) {
        host.free_places.pop_back();
        (user == nullptr ? queues.line : user->own).posted.push_back(place);
    }
}

void UdScenario::post_somewhere(UdHost& host, UdUser& user) {
    if (random_.chance(300'000)) {
        const std::size_t group = hosts_.size() + random_.below(kGroups);
        post(host, user, {group, wire::kGroupQpn, Qkey{kCommonKey}});
    } else {
        post(host, user, known_[random_.below(known_.size())]);
    }
}

// Writes the message, and chooses the memory that it is in.
void UdScenario::write_message(UdHost& host, UdUser& user, const Known& to, UdPending& made) {
    UdMessage& message = made.message;
    message.from = peers_[host.index];
    message.to = peers_[to.host];
    message.source = user.qp->qpn();
    message.dest = to.qpn;
    message.solicited = random_.chance(300'000);
    if (random_.chance(kMillion / 2)) {
        message.immediate = static_cast<std::uint32_t>(random_.next());
    }
    message.qkey = to.qkey;
    if (!world_.healed() && random_.chance(100'000)) {
        message.qkey = Qkey{to.qkey.value ^ static_cast<std::uint32_t>(random_.between(1, 255))};
    }
    const std::uint64_t kind = random_.below(4);
    const std::size_t bytes = kind == 0   ? random_.below(9)
                              : kind == 1 ? plan_.path_mtu_bytes
                                          : random_.below(plan_.path_mtu_bytes + std::uint64_t{1});
    made.at = host.source_at() + random_.below(UdHost::kSourceBytes - bytes + 1);
    message.payload.assign(host.at(made.at), host.at(made.at) + bytes);
}

void UdScenario::post(UdHost& host, UdUser& user, const Known& to) {
    UdPending made;
    write_message(host, user, to, made);
    const auto bytes = static_cast<std::uint32_t>(made.message.payload.size());
    const bool too_long = random_.chance(20'000);
    made.bad = plan_.bold && !world_.healed() && bytes != 0 && random_.chance(20'000);
    made.wr_id = ++next_wr_id_;
    made.signalled = random_.chance(700'000) || (made.message.to.is_group() && !plan_.loops_groups);
    const auto split = static_cast<std::uint32_t>(random_.below(bytes + (made.bad ? 0U : 1U)));
    const std::size_t at = made.bad ? host.source_at() + UdHost::kSourceBytes - split : made.at;
    const std::array<verbs::Sge, 2> sges{
        host.sge(at, split), host.sge(at + split, too_long ? plan_.path_mtu_bytes - split + 1 : bytes - split)};
    verbs::DatagramRequest request;
    request.work.wr_id = made.wr_id;
    request.work.signalled = made.signalled;
    request.work.solicited = made.message.solicited;
    request.work.opcode = made.message.immediate ? verbs::WorkOpcode::SendWithImmediate : verbs::WorkOpcode::Send;
    request.work.immediate = made.message.immediate.value_or(0);
    request.work.sges = sges;
    if (!made.bad && !too_long && bytes <= kInlineBytes && random_.chance(kMillion / 2)) {
        request.work.is_inline = true;
        request.work.sges = {};
        request.work.inline_bytes = made.message.payload;
    }
    request.to = host.ways[to.host].get();
    request.qpn = to.qpn;
    request.qkey = made.message.qkey;
    if (!world_.healed() && random_.chance(100'000)) {
        request.qkey = kOwnKey;
        made.message.qkey = user.qkey;
    }
    const PostVerdict verdict = user.qp->post_send(request);
    const bool refuses = user.state == QpState::Reset || user.state == QpState::Init || user.state == QpState::Rtr;
    expect((verdict == PostVerdict::WrongState) == refuses, "a send request in a state that has none");
    expect(refuses || (verdict == PostVerdict::TooLong) == too_long, "a message's length was misjudged");
    if (verdict != PostVerdict::Posted) {
        return;
    }
    made.doomed = user.flushes();
    ++counters_.posted;
    sent_[made.message].times += made.bad ? 0 : 1;
    user.pending.push_back(std::move(made));
}

// Requires that nothing of the past prevents a new message: each queue pair reaches each other one, and its group.
void UdScenario::check_progress() {
    // A receive request that is too short for all messages stays the next one for ever.
    const bool restarts = plan_.bold || plan_.small_queues;
    plan_.small_queues = false;
    for (const auto& host : hosts_) {
        if (restarts) {
            stop(host->node);
            start(host->node);
        }
        mend(*host);
        for (const auto& user : host->users) {
            const bool waits = user->state == QpState::Sqd || user->state == QpState::Sqe;
            if (waits) {
                modify(*host, *user, QpState::Rts);
            } else if (user->state != QpState::Rts) {
                modify(*host, *user, QpState::Reset);
                bring_up(*host, *user);
            }
            if (user->groups.insert(0).second) {
                expect(user->qp->attach(*host->ways[hosts_.size()]).ok(), "a group can not be joined");
            }
        }
    }
    world_.run_until(world_.now() + to_arrive_);
    for (const auto& host : hosts_) {
        for (const auto& user : host->users) {
            std::uint64_t members = 0;
            for (const auto& other : hosts_) {
                for (const auto& peer : other->users) {
                    members += peer->qkey.value == kCommonKey ? 1U : 0U;
                    if (other != host) {
                        send_anew(*host, *user, {other->index, peer->qp->qpn(), peer->qkey}, 1);
                    }
                }
            }
            send_anew(*host, *user, {hosts_.size(), wire::kGroupQpn, Qkey{kCommonKey}}, members);
        }
    }
}

void UdScenario::send_anew(UdHost& host, UdUser& user, const Known& to, std::uint64_t receivers) {
    for (const auto& each : hosts_) {
        post_receives(*each);
    }
    const std::uint64_t posted = counters_.posted;
    while (counters_.posted == posted && !world_.broken()) {
        post(host, user, to);  // some are too long
    }
    const std::uint64_t wanted = counters_.delivered + receivers;
    world_.run_until(world_.now() + to_arrive_);
    expect(counters_.delivered == wanted, "a new message does not arrive in a network that is well");
}

}  // namespace cairn::sim
