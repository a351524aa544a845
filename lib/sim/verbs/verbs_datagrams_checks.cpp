// Checks of the results of the users' datagrams.
#include <algorithm>
#include <cstring>

#include "lib/sim/verbs/verbs_datagrams.hpp"

namespace cairn::sim {

using verbs::CompletionStatus;

bool VerbsDatagrams::take(VerbsHost& host, const verbs::Completion& got) {
    const auto& speakers = booth_of(host).speakers;
    const auto found =
        std::find_if(speakers.begin(), speakers.end(), [&got](const auto& each) { return each->qp->qpn() == got.qpn; });
    if (found == speakers.end()) {
        return false;
    }
    if ((got.wr_id & kReceiveBit) != 0) {
        on_received(host, **found, got);
    } else {
        on_sent(host, **found, got);
    }
    return true;
}

// Requires that completions come in the order of posting. A request without a completion has succeeded before the next
// one that has one.
void VerbsDatagrams::on_sent(VerbsHost& host, VerbsSpeaker& speaker, const verbs::Completion& got) {
    while (!speaker.pending.empty() && speaker.pending.front() != got.wr_id &&
           !all_[speaker.pending.front()].signalled) {
        speaker.pending.pop_front();
    }
    const bool next = !speaker.pending.empty() && speaker.pending.front() == got.wr_id;
    expect(next, "a datagram completed twice, out of order, or of an earlier life", host);
    if (!next) {
        return;
    }
    speaker.pending.pop_front();
    const bool stopped = speaker.qp->state() == verbs::QpState::Err;
    const bool flushed = got.status == CompletionStatus::Flushed;
    expect(flushed ? stopped : got.status == CompletionStatus::Success, "a datagram failed for no reason", host);
    expect(flushed || all_[got.wr_id].signalled, "a completion that nobody asked for", host);
    speech_.flushed += flushed ? 1U : 0U;
}

std::uint8_t* VerbsDatagrams::take_cell(VerbsHost& host, VerbsSpeaker& speaker, std::uint64_t wr_id) {
    if (speaker.shared) {
        return host.take_shared(wr_id);
    }
    if (speaker.receives.empty() || speaker.receives.front() != wr_id) {
        return nullptr;
    }
    const std::uint64_t request = speaker.posted - speaker.receives.size();
    speaker.receives.pop_front();
    return booth_of(host).memory.span().data() + receive_at(speaker, request);
}

void VerbsDatagrams::on_received(VerbsHost& host, VerbsSpeaker& speaker, const verbs::Completion& got) {
    std::uint8_t* const cell = take_cell(host, speaker, got.wr_id);
    expect(cell != nullptr, "a receive request completed twice, out of order, or of an earlier life", host);
    if (cell == nullptr) {
        return;
    }
    if (got.status == CompletionStatus::Success) {
        on_message(host, speaker, got, cell);
    } else {
        expect(got.status == CompletionStatus::Flushed && speaker.qp->state() == verbs::QpState::Err,
               "a receive request of datagrams failed for no reason", host);
        ++speech_.flushed;
    }
    std::memset(cell, VerbsHost::kUntouched, speaker.shared ? VerbsHost::kMostBytes : kMostBytes);
}

// Requires that the datagram was sent to this queue pair, or to a group of which it is a member, and comes whole. It
// comes once if the network makes no copies.
void VerbsDatagrams::on_message(VerbsHost& host, VerbsSpeaker& speaker, const verbs::Completion& got,
                                const std::uint8_t* cell) {
    std::uint64_t number = 0;
    std::memcpy(&number, cell + verbs::kGrhBytes, sizeof(number));
    const bool known = got.has_grh && number < all_.size();
    expect(known, "a datagram that nobody sent", host);
    if (!known) {
        return;
    }
    const VerbsDatagram& sent = all_[number];
    VerbsHost& sender = *hosts_[sent.host];
    const bool in_group = sent.to >= world_.hosts();
    const bool mine = in_group ? speaker.groups.count(sent.to - world_.hosts()) != 0
                               : sent.to == host.node.host() && sent.dest == speaker.qp->qpn();
    expect(mine, in_group ? "a datagram to a group came to who is no member" : "a datagram came to somebody else",
           host);
    expect(sent.qkey == speaker.qkey, "a datagram was received with another Q_Key", host);
    const net::IpAddress from = world_.network().address_of(sender.node.host());
    expect(got.source_qpn == sent.source && verbs::source_of({cell, verbs::kGrhBytes}) == from,
           "a datagram has another sender than sent it", host);
    expect(got.bytes == sent.bytes + verbs::kGrhBytes && got.solicited == sent.solicited &&
               got.has_immediate == sent.immediate.has_value() && (!sent.immediate || got.immediate == *sent.immediate),
           "a datagram is another one than was sent", host);
    expect(std::memcmp(cell + verbs::kGrhBytes + kNumberBytes, sender.at(VerbsHost::kBase + sent.from),
                       sent.bytes - kNumberBytes) == 0,
           "a datagram has other bytes than were sent", host);
    const std::size_t used = verbs::kGrhBytes + sent.bytes;
    expect(used == kMostBytes || cell[used] == VerbsHost::kUntouched, "written behind the end of a datagram", host);
    const LinkFaults& faults = world_.mix().link;
    const bool copied = faults.duplicate_per_million != 0 || faults.late_copy_per_million != 0;
    expect(speaker.had.insert(number).second || copied, "a datagram came twice", host);
    ++speech_.received;
    speech_.in_groups += in_group ? 1U : 0U;
    speech_.at_home += in_group && &sender != &host && sender.node.host() == host.node.host() ? 1U : 0U;
    speech_.shared += speaker.shared ? 1U : 0U;
}

void VerbsDatagrams::send_anew(VerbsHost& host, VerbsSpeaker& speaker, const Known& to, std::uint64_t receivers) {
    const Duration to_arrive = milliseconds(1) + (world_.has_slow_node() ? world_.mix().node.turn_max * 2 : Duration{});
    const std::uint64_t wanted = speech_.received + receivers;
    host.node.read_clock();
    post(host, speaker, to);
    world_.run_until(world_.now() + to_arrive);
    expect(speech_.received == wanted, "a new datagram does not arrive in a network that is well, or twice", host);
}

// Sends a datagram from each host to one other queue pair, and to a group.
void VerbsDatagrams::check_progress() {
    std::vector<Known> live;
    for (const auto& host : hosts_) {
        for (const auto& speaker : booth_of(*host).speakers) {
            live.push_back({host->node.host(), speaker->qp->qpn(), speaker->qkey});
            while (speaker->groups.size() < kGroups) {
                change_membership(*host, *speaker, speaker->groups.count(0));
            }
        }
    }
    for (const auto& host : hosts_) {
        VerbsSpeaker& speaker = *booth_of(*host).speakers.front();
        const Known& to = live[random_.below(live.size())];
        send_anew(*host, speaker, to, to.qkey == speaker.qkey ? 1 : 0);
        const auto members =
            std::count_if(live.begin(), live.end(), [&](const Known& each) { return each.qkey == speaker.qkey; });
        send_anew(*host, speaker, {world_.hosts() + random_.below(kGroups), wire::kGroupQpn, common_key_},
                  static_cast<std::uint64_t>(members));
    }
}

void VerbsDatagrams::wind_up() {
    for (const auto& host : hosts_) {
        auto& speakers = booth_of(*host).speakers;
        while (!speakers.empty()) {
            const auto waits = [this](std::uint64_t number) { return all_[number].signalled; };
            expect(std::none_of(speakers.back()->pending.begin(), speakers.back()->pending.end(), waits),
                   "a datagram that does not leave", *host);
            end(*host, *speakers.back());
        }
    }
}

}  // namespace cairn::sim
