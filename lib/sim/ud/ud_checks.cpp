// Checks of all datagrams that come and of all requests that complete.
#include <algorithm>
#include <cstring>

#include "lib/port/path.hpp"
#include "lib/sim/ud/ud_scenario.hpp"

namespace cairn::sim {

using roce::Drop;
using verbs::CompletionStatus;
using verbs::QpState;

namespace {

constexpr std::uint16_t kPartition = 0x7fff;  // of all hosts, which are full members: limited ones may talk to them

constexpr std::size_t index_of(Drop reason) {
    return static_cast<std::size_t>(reason);
}

// The drops that follow from the frame, and from the queue pairs and groups that exist.
constexpr std::array kOfFrames{Drop::BadIcrc, Drop::TooShort, Drop::BadVersion, Drop::BadOpcode, Drop::UnknownQpn,
                               Drop::BadPkey, Drop::BadQkey,  Drop::BadLength,  Drop::WrongPeer, Drop::TxQueueFull};

std::vector<verbs::Completion> drain(verbs::Cq& queue) {
    std::vector<verbs::Completion> all(queue.queue().size());
    all.resize(queue.poll(all));
    return all;
}

}  // namespace

void UdScenario::begin_account(UdHost& host) {
    host.account = {};
    host.account.counted = host.node.live_drops().values;
    for (const auto& queues : host.queues) {
        queues->line.came = 0;
        queues->line.had = queues->line.posted.size();
    }
    for (const auto& user : host.users) {
        user->own.came = 0;
        user->own.had = user->own.posted.size();
        user->failed = false;
        user->copies.clear();
    }
}

// Decides the required fate of a frame before the engine sees it.
void UdScenario::on_frame(Node& node, const Frame& frame, bool icrc_ok) {
    UdHost& host = *hosts_[node.host()];
    const std::span<const std::uint8_t> datagram = std::span(frame.bytes).subspan(frame.lower_bytes());
    const auto expect_drop = [&host](Drop reason) { ++host.account.expected[index_of(reason)]; };
    if (!icrc_ok) {
        expect_drop(Drop::BadIcrc);
        return;
    }
    if ((datagram[0] & 0xe0U) != static_cast<unsigned>(wire::Service::Ud)) {
        expect_drop(Drop::UnknownQpn);  // there are no connections
        return;
    }
    const std::optional<UdMessage> message = message_of(frame);
    if (!message) {
        expect_drop(judge_datagram(datagram).value());
        return;
    }
    if (!is_own(*message)) {
        return;  // the datagram is another scenario's
    }
    const auto sent = sent_.find(*message);
    expect(sent != sent_.end(), "a datagram that nobody sent");
    if (sent != sent_.end()) {
        sent->second.psns.insert(std::uint32_t{datagram[9]} << 16U | std::uint32_t{datagram[10]} << 8U | datagram[11]);
        expect(sent->second.psns.size() <= sent->second.times, "a datagram left more often than it was posted");
    }
    const std::uint8_t* const ip = frame.bytes.data() + port::Path::kEthernetBytes;
    bool known = false;
    for (const auto& user : host.users) {
        const bool member = message->dest == wire::kGroupQpn && is_member(*user, message->to);
        if (member || message->dest == user->qp->qpn()) {
            known = true;
            reach(host, *user, *message, grh_of(ip, frame.is_v4()));
        }
    }
    if (!known) {
        expect_drop(Drop::UnknownQpn);
    }
}

// Returns whether the message is this scenario's. Queue pairs of others have Q_Keys with the highest bit: their numbers
// may have been this scenario's in an earlier process.
bool UdScenario::is_own(const UdMessage& message) const {
    constexpr unsigned kOthers = 31;
    const bool to_own = message.dest == wire::kGroupQpn
                            ? std::find(groups_.begin(), groups_.end(), message.to) != groups_.end()
                            : own_.count(message.dest) != 0;
    return plan_.alone || (to_own && message.qkey.value >> kOthers == 0);
}

bool UdScenario::is_member(const UdUser& user, const net::IpAddress& group) const {
    return std::any_of(user.groups.begin(), user.groups.end(),
                       [&](std::size_t number) { return groups_[number] == group; });
}

void UdScenario::reach(UdHost& host, UdUser& user, const UdMessage& message, const Grh& grh) {
    const std::optional<Drop> reason = (message.pkey.value & 0x7fffU) != kPartition     ? std::optional(Drop::BadPkey)
                                       : message.qkey != user.qkey                      ? std::optional(Drop::BadQkey)
                                       : message.payload.size() > user.qp->most_bytes() ? std::optional(Drop::BadLength)
                                                                                        : std::nullopt;
    if (reason) {
        ++host.account.expected[index_of(*reason)];
        return;
    }
    ++host.account.due;
    if (user.receives() || user.failed) {  // it may have failed after this datagram
        ++user.line().came;
        user.copies.push_back({message, grh});
    } else {
        ++host.account.not_ready;
    }
}

// Requires that all datagrams of this turn are received or counted.
void UdScenario::settle_account(UdHost& host) {
    UdAccount::Drops delta = host.node.live_drops().values;
    for (std::size_t i = 0; i < delta.size(); ++i) {
        delta[i] -= host.account.counted[i];
    }
    for (const Drop reason : plan_.alone ? std::span<const Drop>(kOfFrames) : std::span<const Drop>()) {
        expect(delta[index_of(reason)] == host.account.expected[index_of(reason)],
               "a datagram dropped for a wrong reason");
    }
    bool failed = false;
    std::uint64_t beyond = 0;  // datagrams for which there were no requests
    for (const auto& user : host.users) {
        failed |= user->failed;
        if (user->protection_due) {
            expect(user->queues->receives->overrun(), "a queue pair failed without a completion that says so");
            user->protection_due = false;
            ++host.account.taken;
        }
        beyond += user->own.came - std::min(user->own.came, user->own.had);
    }
    for (const auto& queues : host.queues) {
        failed |= queues->overrun();  // a request was used up, and its completion was lost
        beyond += queues->line.came - std::min(queues->line.came, queues->line.had);
    }
    if (!plan_.alone) {
        return;
    }
    const std::uint64_t wrong_state = delta[index_of(Drop::WrongState)];
    const std::uint64_t no_receive = delta[index_of(Drop::NoReceive)];
    const std::uint64_t too_short = delta[index_of(Drop::ReceiveTooShort)];
    expect(wrong_state + no_receive + too_short + host.account.taken == host.account.due,
           "datagrams that are not accounted for");
    expect(failed || wrong_state == host.account.not_ready, "dropped by a queue pair that was ready");
    expect(failed || plan_.bold || (no_receive == beyond && too_short == 0),
           "dropped although a receive request waited");
}

void UdScenario::heed_events(UdHost& host, bool receiving) {
    for (const auto& user : host.users) {
        while (const std::optional<verbs::QpEvent> event = user->qp->poll_event()) {
            if (*event == verbs::QpEvent::SendQueueDrained || *event == verbs::QpEvent::LastWqeReached) {
                continue;
            }
            user->failed = true;
            user->state = QpState::Err;
            expect(*event == verbs::QpEvent::CqOverrun, "an event that nothing explains");
            expect(plan_.small_queues && user->queues->overrun(), "an overrun of a queue with room");
            ++counters_.overruns;
            host.account.taken += receiving ? 1U : 0U;  // the request of the completion that was lost
        }
        if (user->state != QpState::Err && user->qp->state() == QpState::Err) {  // a completion shows why
            expect(plan_.bold, "a queue pair that stopped and should not");
            user->failed = true;
            user->state = QpState::Err;
            user->protection_due = true;
        }
    }
}

// Moves a queue pair to RESET over completions that were not polled: they are lost.
void UdScenario::reset_one_unseen(UdHost& host) {
    if (world_.healed() || !random_.chance(10'000)) {
        return;
    }
    UdUser& user = *host.users[random_.below(host.users.size())];
    if (user.queues->shared || !user.receives() || user.failed) {
        return;
    }
    const std::uint32_t before = user.queues->receives->queue().size();
    expect(user.qp->modify(QpState::Reset) == std::nullopt, "RESET was refused");
    const std::uint32_t forgotten = before - user.queues->receives->queue().size();
    host.account.taken += forgotten;
    counters_.forgotten += forgotten;
    user.own.posted.erase(user.own.posted.begin(), user.own.posted.begin() + forgotten);
    forget_requests(host, user);
}

void UdScenario::take_receives(UdHost& host) {
    for (const auto& queues : host.queues) {
        for (const verbs::Completion& got : drain(*queues->receives)) {
            UdUser* const user = host.find(got.qpn);
            expect(user != nullptr, "a completion of a queue pair that is gone");
            if (user != nullptr) {
                on_received(host, *user, got);
            }
        }
    }
}

void UdScenario::on_received(UdHost& host, UdUser& user, const verbs::Completion& got) {
    UdLine& line = user.line();
    if (line.posted.empty() || line.posted.front().wr_id != got.wr_id) {
        expect(false, "a receive request completed out of its turn, or of an earlier life");
        return;
    }
    const UdPlace place = line.posted.front();
    line.posted.pop_front();
    if (got.status == CompletionStatus::Success) {
        on_success(host, user, place, got);
    } else if (got.status == CompletionStatus::LocalProtection) {
        expect(place.bad && user.protection_due, "a receive request failed for no reason");
        user.protection_due = false;
        ++host.account.taken;
        ++counters_.foreign_memory;
    } else {
        const bool may = got.status == CompletionStatus::Flushed && user.state == QpState::Err && !user.queues->shared;
        expect(may, "a receive request was flushed for no reason");
        expect(host.is_untouched(place.number, 0), "a flushed receive request was written to");
    }
    host.free_place(place.number);
}

void UdScenario::on_success(UdHost& host, UdUser& user, const UdPlace& place, const verbs::Completion& got) {
    const std::uint8_t* const at = host.place(place.number);
    const auto same = [&](const UdCopy& copy) {
        const UdMessage& it = copy.message;
        return got.source_qpn == it.source && got.solicited == it.solicited &&
               got.has_immediate == it.immediate.has_value() && (!it.immediate || got.immediate == *it.immediate) &&
               got.bytes == verbs::kGrhBytes + it.payload.size() && std::equal(copy.grh.begin(), copy.grh.end(), at) &&
               std::equal(it.payload.begin(), it.payload.end(), at + verbs::kGrhBytes);
    };
    const auto found = std::find_if(user.copies.begin(), user.copies.end(), same);
    expect(found != user.copies.end(), "received what nobody sent to it, or more often than it came");
    expect(!place.bad && got.bytes <= place.bytes, "received into memory that does not hold it");
    expect(got.has_grh && !got.has_invalidate && got.opcode == verbs::CompletionOpcode::Receive,
           "a completion of another kind");
    expect(host.is_untouched(place.number, got.bytes), "written beyond the end of a message");
    ++host.account.taken;
    ++counters_.delivered;
    if (found != user.copies.end()) {
        counters_.delivered_to_groups += found->message.to.is_group() ? 1U : 0U;
        user.copies.erase(found);
    }
}

void UdScenario::take_sends(UdHost& host) {
    for (const auto& queues : host.queues) {
        for (const verbs::Completion& got : drain(*queues->sends)) {
            UdUser* const user = host.find(got.qpn);
            expect(user != nullptr, "a completion of a queue pair that is gone");
            if (user != nullptr) {
                on_sent(host, *user, got);
            }
        }
    }
}

void UdScenario::on_sent(UdHost& host, UdUser& user, const verbs::Completion& got) {
    std::deque<UdPending>& pending = user.pending;
    while (!pending.empty() && !pending.front().signalled && pending.front().wr_id != got.wr_id) {
        expect(!pending.front().doomed && !user.flushing, "a request that failed made no completion");
        ++host.done;
        pending.pop_front();
    }
    if (pending.empty() || pending.front().wr_id != got.wr_id) {
        expect(false, "a send request completed twice, out of order, or of an earlier life");
        return;
    }
    const UdPending one = std::move(pending.front());
    pending.pop_front();
    if (got.status == CompletionStatus::Success) {
        expect(one.signalled && !one.bad && !one.doomed && !user.flushing, "a send request succeeded that could not");
        ++host.done;
        if (one.message.to.is_group() && !plan_.loops_groups) {
            loop_back(host, one.message);
        }
    } else if (got.status == CompletionStatus::LocalProtection) {
        expect(one.bad && !one.doomed && !user.flushing, "a send request failed for no reason");
        user.flushing = true;
        user.state = user.state == QpState::Rts ? QpState::Sqe : user.state;
        ++counters_.failures;
    } else {
        const bool may = one.doomed || user.flushing || user.state == QpState::Err;
        expect(got.status == CompletionStatus::Flushed && may, "a send request was flushed for no reason");
        user.flushing = user.flushing || !one.doomed;
        ++counters_.flushed;
        if (!one.bad) {
            --sent_[one.message].times;
        }
    }
}

// Brings the message to its own host's members: the port does not bring back datagrams to a group, so the service must.
void UdScenario::loop_back(UdHost& host, const UdMessage& message) {
    const std::size_t pad = -message.payload.size() & 3U;
    const std::size_t bytes = 20 + (message.immediate ? 4 : 0) + message.payload.size() + pad + port::kIcrcBytes;
    port::Path path({message.from, message.to, port::kFirstUdpSourcePort, host.traffic_class});
    std::array<std::uint8_t, port::Path::kLowerBytesV6> headers{};
    std::uint8_t* const payload = headers.data() + path.lower_bytes();
    path.write_lower_headers(payload, static_cast<std::uint16_t>(bytes));
    const Grh grh = grh_of(headers.data() + port::Path::kEthernetBytes, path.is_v4());
    for (const auto& user : host.users) {
        if (is_member(*user, message.to)) {
            ++counters_.looped_back;
            reach(host, *user, message, grh);
        }
    }
}

void UdScenario::check_states(UdHost& host) {
    for (const auto& user : host.users) {
        expect(user->qp->state() == user->state, "a queue pair in another state than its user knows");
        const bool must = user->flushes() && !user->queues->overrun();
        const bool left = std::any_of(user->pending.begin(), user->pending.end(),
                                      [](const UdPending& each) { return each.signalled || each.doomed; });
        expect(!must || !left, "send requests that are not flushed");
        expect(!must || user->state == QpState::Sqe || user->own.posted.empty(), "receive requests likewise");
    }
}

void UdScenario::check_end() {
    for (const auto& host : hosts_) {
        const SimPortCounters& port = host->node.port().counters();
        expect(host->margins_untouched(), "memory around the region was written");
        std::uint64_t seen = 0;
        for (const auto& each : world_.workers_of(host->index)) {
            const SimPortCounters& one = each->port().counters();
            seen += one.taken + one.foreign + one.unheard;
        }
        expect(host->arrived == seen, "frames that no port counted");
        const std::uint64_t left = port.sent + host->node.unsent();
        expect(!plan_.alone || (left >= host->done && left <= host->done + host->not_known),
               "packets that were lost on their way out");
    }
}

}  // namespace cairn::sim
