// The actions of the users of datagrams.
#include "lib/sim/verbs/verbs_datagrams.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lib/port/path.hpp"

namespace cairn::sim {

using verbs::PostVerdict;
using verbs::QpState;

namespace {

constexpr std::uint32_t kOwnKey = 0x80000000U;  // no other scenario's queue pairs have such keys
constexpr std::size_t kKnown = 24;

}  // namespace

VerbsDatagrams::VerbsDatagrams(World& world, std::vector<std::unique_ptr<VerbsHost>>& hosts, VerbsSpeech& speech,
                               Drain drain)
    : world_(world),
      random_(world.random()),
      hosts_(hosts),
      speech_(speech),
      drain_(std::move(drain)),
      common_key_{kOwnKey | static_cast<std::uint32_t>(random_.next())} {
    for (std::size_t i = 0; i < world.nodes(); ++i) {
        booths_.push_back(std::make_unique<Booth>());
    }
}

std::uint32_t VerbsDatagrams::number_at(const VerbsSpeaker& speaker, std::uint64_t request) {
    return static_cast<std::uint32_t>(speaker.number) * kSpeakerBytes +
           static_cast<std::uint32_t>(request % kRequests) * kNumberBytes;
}

std::uint32_t VerbsDatagrams::receive_at(const VerbsSpeaker& speaker, std::uint64_t request) {
    return static_cast<std::uint32_t>(speaker.number) * kSpeakerBytes + kRequests * kNumberBytes +
           static_cast<std::uint32_t>(request % kRequests) * kMostBytes;
}

// Draws a key. Most have the common one: groups need one.
Qkey VerbsDatagrams::choose_key() {
    return random_.chance(kMillion / 10) ? Qkey{kOwnKey | static_cast<std::uint32_t>(random_.next())} : common_key_;
}

void VerbsDatagrams::start(VerbsHost& host, bool shares) {
    Booth& booth = booth_of(host);
    std::memset(booth.memory.span().data(), VerbsHost::kUntouched, booth.memory.span().size());
    booth.region =
        host.device->register_memory(*host.pd, booth.memory.span(), verbs::Right::LocalWrite, std::uint64_t{0}).value();
    const auto add_way = [&](const net::IpAddress& to) {
        booth.ways.push_back(host.device->create_ah(to, port::kFirstUdpSourcePort, host.node.now()).value());
    };
    for (std::size_t place = 0; place < world_.hosts(); ++place) {
        add_way(world_.network().address_of(place));
    }
    for (std::size_t group = 0; group < kGroups; ++group) {
        add_way(world_.network().group_address(static_cast<std::uint8_t>(0x80 + group)));
    }
    for (std::size_t number = 0; number < kSpeakers; ++number) {
        make(host, number, shares);
    }
}

// Stops the host's queue pairs, and forgets their requests.
void VerbsDatagrams::stop(VerbsHost& host) {
    Booth& booth = booth_of(host);
    booth.speakers.clear();
    booth.ways.clear();
    booth.region.reset();
}

void VerbsDatagrams::make(VerbsHost& host, std::size_t number, bool shares) {
    auto made = std::make_unique<VerbsSpeaker>();
    made->number = number;
    made->qkey = choose_key();
    made->shared = shares && random_.chance(kMillion / 2);
    verbs::QpCapacity capacity;
    capacity.send_slots = kRequests;
    capacity.receive_slots = kRequests;
    capacity.max_sges = 2;
    const verbs::QpQueues queues{*host.queues[random_.below(host.queues.size())],
                                 *host.queues[random_.below(host.queues.size())],
                                 made->shared ? host.shared.get() : nullptr};
    made->qp = host.device->create_datagram_qp(*host.pd, capacity, queues).value();
    expect(made->qp->bring_up(made->qkey) == std::nullopt, "a queue pair can not be brought up", host);
    known_.push_back({host.node.host(), made->qp->qpn(), made->qkey});
    if (known_.size() > kKnown) {
        known_.pop_front();
    }
    booth_of(host).speakers.push_back(std::move(made));
}

// Stops the queue pair. All its posted requests complete.
void VerbsDatagrams::end(VerbsHost& host, VerbsSpeaker& speaker) {
    expect(speaker.qp->modify(QpState::Err) == std::nullopt, "ERR was refused", host);
    drain_(host);
    const auto waits = [this](std::uint64_t number) { return all_[number].signalled; };
    expect(std::none_of(speaker.pending.begin(), speaker.pending.end(), waits), "a datagram without a completion",
           host);
    expect(speaker.receives.empty(), "a receive request without a completion", host);
    std::erase_if(booth_of(host).speakers, [&](const auto& each) { return each.get() == &speaker; });
}

void VerbsDatagrams::change_membership(VerbsHost& host, VerbsSpeaker& speaker, std::size_t group) {
    const verbs::Ah& way = *booth_of(host).ways[world_.hosts() + group];
    if (speaker.groups.erase(group) != 0) {
        expect(speaker.qp->detach(way), "a member can not leave", host);
        ++speech_.memberships;
    } else {
        expect(!speaker.qp->detach(way), "who is no member left", host);
        expect(speaker.qp->attach(way).ok(), "a group can not be joined", host);
        speaker.groups.insert(group);
    }
}

void VerbsDatagrams::act(VerbsHost& host, bool shares) {
    Booth& booth = booth_of(host);
    for (std::size_t i = 0; i < booth.speakers.size(); ++i) {
        VerbsSpeaker& speaker = *booth.speakers[i];
        while (random_.chance(kMillion / 3)) {
            post_somewhere(host, speaker);
        }
        if (random_.chance(kMillion / 10)) {
            change_membership(host, speaker, random_.below(kGroups));
        }
        if (random_.chance(kMillion / 50)) {
            const std::size_t number = speaker.number;
            end(host, speaker);
            make(host, number, shares);
        }
    }
}

void VerbsDatagrams::post_receives(VerbsHost& host, bool lazy) {
    Booth& booth = booth_of(host);
    for (const auto& speaker : booth.speakers) {
        const std::uint64_t wanted = speaker->shared ? 0 : lazy ? random_.below(kRequests + 1) : kRequests;
        while (speaker->receives.size() < wanted) {
            const auto split = static_cast<std::uint32_t>(random_.below(kMostBytes + 1));
            const std::uint32_t at = receive_at(*speaker, speaker->posted);
            const std::array<verbs::Sge, 2> sges{booth.region->sge(at, split),
                                                 booth.region->sge(at + split, kMostBytes - split)};
            const std::uint64_t wr_id = ++speaker->posted | kReceiveBit;
            expect(speaker->qp->post_receive({wr_id, sges}) == PostVerdict::Posted, "a receive request was refused",
                   host);
            speaker->receives.push_back(wr_id);
        }
    }
}

void VerbsDatagrams::post_somewhere(VerbsHost& host, VerbsSpeaker& speaker) {
    if (random_.chance(kMillion / 3)) {
        post(host, speaker, {world_.hosts() + random_.below(kGroups), wire::kGroupQpn, common_key_});
    } else {
        post(host, speaker, known_[random_.below(known_.size())]);
    }
}

void VerbsDatagrams::post(VerbsHost& host, VerbsSpeaker& speaker, const Known& to) {
    if (speaker.pending.size() == kRequests) {
        return;
    }
    const std::uint64_t number = all_.size();
    VerbsDatagram& made = all_.emplace_back();
    made.wr_id = number;
    made.signalled = speaker.pending.size() + 1 == kRequests || random_.chance(kMillion / 2);
    made.host = host.node.index();
    made.source = speaker.qp->qpn();
    made.qkey = speaker.qkey;
    made.to = to.place;
    made.dest = to.qpn;
    made.solicited = random_.chance(kMillion / 4);
    const std::uint64_t most = speaker.qp->most_bytes();
    made.bytes = static_cast<std::uint32_t>(random_.chance(kMillion / 4) ? most : random_.between(kNumberBytes, most));
    made.from = static_cast<std::uint32_t>(random_.below(VerbsHost::kSourceBytes - made.bytes + 1));
    Booth& booth = booth_of(host);
    const std::uint32_t at = number_at(speaker, speaker.sent++);
    std::memcpy(booth.memory.span().data() + at, &number, sizeof(number));
    const std::array<verbs::Sge, 2> sges{
        booth.region->sge(at, kNumberBytes),
        verbs::Sge{VerbsHost::kBase + made.from, made.bytes - kNumberBytes, host.region->lkey()}};
    verbs::DatagramRequest request;
    request.work.wr_id = made.wr_id;
    request.work.signalled = made.signalled;
    request.work.solicited = made.solicited;
    request.work.sges = sges;
    request.work.opcode = verbs::WorkOpcode::Send;
    if (random_.chance(kMillion / 2)) {
        made.immediate = static_cast<std::uint32_t>(random_.next());
        request.work.opcode = verbs::WorkOpcode::SendWithImmediate;
        request.work.immediate = *made.immediate;
    }
    request.to = booth.ways[to.place].get();
    request.qpn = to.qpn;
    request.qkey = Qkey{kOwnKey};
    expect(speaker.qp->post_send(request) == PostVerdict::Posted, "a datagram was refused", host);
    speaker.pending.push_back(number);
    ++speech_.posted;
    speech_.other_keys += to.qkey == speaker.qkey ? 0U : 1U;
}

}  // namespace cairn::sim
