// From packet to queue pair, and the work that is due.
#include "lib/roce/engine.hpp"

#include <algorithm>

#include "lib/base/fetch.hpp"
#include "lib/port/ecn.hpp"

namespace cairn::roce {

namespace {

// The state of this many queue pairs is in a cache: to fetch it would cost more.
constexpr std::uint32_t kFewQueuePairs = 16;
// The bytes of a responder that requests need; the answers kept for the peer lie after them.
constexpr std::size_t kFetchedOfResponder = 320;

// Fetches the parts of the queue pair that a packet with this opcode needs.
void fetch(const Engine::RcQp& qp, std::uint8_t opcode) noexcept {
    const rc::Requester& requester = qp.pair.requester();
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(&qp);
    fetch_lines(begin, static_cast<std::size_t>(reinterpret_cast<const std::uint8_t*>(&requester) - begin));
    if (wire::is_answer(opcode)) {
        fetch_lines(&requester, sizeof(requester));
    } else {
        fetch_lines(&qp.pair.responder(), kFetchedOfResponder);
    }
}

// Puts answers first in each run of packets to one queue pair. A peer's acknowledgement leaves after the requests of
// its turn. A program that saw the requests first would see its own message complete after the peer's reply to it.
// Adapters never show that order.
void put_answers_first(std::span<port::PacketRef> burst) noexcept {
    constexpr std::uint32_t kNobody = ~0U;
    std::uint32_t whose = kNobody;
    std::size_t next = 0;  // place of the run's next answer
    for (std::size_t i = 0; i < burst.size(); ++i) {
        const port::PacketRef& packet = burst[i];
        const bool is_short = packet.len < sizeof(wire::RawBth);
        const auto& bth = *reinterpret_cast<const wire::RawBth*>(packet.data);
        const std::uint32_t qpn = is_short ? kNobody : bth.dest_qpn.get();
        next = qpn == whose ? next : i;
        whose = qpn;
        if (is_short || !wire::is_answer(bth.opcode)) {
            continue;
        }
        if (next != i) {
            const port::PacketRef answer = packet;
            std::move_backward(&burst[next], &burst[i], &burst[i] + 1);
            burst[next] = answer;
        }
        ++next;
    }
}

bool is_datagram(const port::PacketRef& packet) noexcept {
    return packet.len != 0 && (packet.data[0] & 0xe0U) == static_cast<unsigned>(wire::Service::Ud);
}

}  // namespace

// Posted requests are sent at the end of the turn.
void Engine::wake(RcQp& qp) noexcept {
    if (count_ > kFewQueuePairs && !qp.link.listed) {
        fetch_lines(&qp.pair.requester(), sizeof(rc::Requester));
    }
    waiting_.push(qp);
}

void Engine::on_packets(std::span<port::PacketRef> burst, Instant now) noexcept {
    if (count_ != 0) {
        turns_.on_turn(now);
        holds_back_ = sender_.holds_back();
    }
    while (!burst.empty()) {
        const std::span<port::PacketRef> part = burst.first(std::min(burst.size(), kBurst));
        burst = burst.subspan(part.size());
        take_burst(part, now);
    }
    settle_ended();
}

// Fetches the queue pairs of a whole burst before the first packet is looked at. With many connections each packet's
// queue pair is somewhere in memory.
void Engine::fetch_queue_pairs(std::span<const port::PacketRef> burst) const noexcept {
    const RcQp* recent = nullptr;
    for (const port::PacketRef& packet : burst) {
        if (packet.len < sizeof(wire::RawBth)) {
            continue;
        }
        const auto& bth = *reinterpret_cast<const wire::RawBth*>(packet.data);
        const RcQp* const qp = table_[place_of(Qpn{bth.dest_qpn.get()})].get();
        if (qp != nullptr && qp != recent) {
            fetch(*qp, bth.opcode);
        }
        recent = qp;
    }
}

void Engine::take_burst(std::span<port::PacketRef> burst, Instant now) noexcept {
    burst = burst.subspan(datagrams_.take_known(burst, now));
    if (std::all_of(burst.begin(), burst.end(), is_datagram)) {
        datagrams_.on_packets(burst, now);
        return;
    }
    if (count_ > kFewQueuePairs) {
        fetch_queue_pairs(burst);
    }
    if (burst.size() > 1) {
        put_answers_first(burst);
    }
    const bool may_keep = sender_.port().has_spare_buffers();
    std::size_t datagrams = 0;
    wire::Packet parsed;
    RcQp* recent = nullptr;  // after_input() is called once for a run of its packets
    for (port::PacketRef& packet : burst) {
        if (is_datagram(packet)) {
            datagram_packets_[datagrams++] = packet;
            packet.cookie = nullptr;
            continue;
        }
        RcQp* const qp = judge(packet, parsed);
        if (qp == nullptr) {
            continue;
        }
        if (qp != recent && recent != nullptr) {
            after_input(*recent, now);
        }
        recent = qp;
        if (packet.ecn == port::kCongestionExperienced) [[unlikely]] {
            qp->pair.on_marked(parsed, now);
        }
        const rc::PacketOffer offer{{packet.data, may_keep ? packet.len : std::size_t{0}}, packet.cookie};
        if (qp->pair.on_packet(parsed, offer, now)) [[unlikely]] {
            packet.cookie = nullptr;  // kept: it came before others
        }
    }
    if (recent != nullptr) {
        after_input(*recent, now);
    }
    sender_.port().release_burst(burst);
    if (datagrams != 0) {
        datagrams_.on_packets(std::span(datagram_packets_).first(datagrams), now);
    }
}

// Reads the packet. Returns its queue pair; nullptr: the packet was dropped.
Engine::RcQp* Engine::judge(const port::PacketRef& packet, wire::Packet& parsed) noexcept {
    if (!packet.icrc_ok) [[unlikely]] {
        drop(Drop::BadIcrc);
        return nullptr;
    }
    if (const std::optional<wire::Drop> flaw = parsed.read({packet.data, packet.len})) [[unlikely]] {
        wire_drops_.count(*flaw);
        return nullptr;
    }
    RcQp* const qp = find(parsed.bth().dest_qpn);
    if (qp == nullptr) [[unlikely]] {
        drop(Drop::UnknownQpn);
        return nullptr;
    }
    // A queue pair without a path receives nothing yet, and counts the packet itself.
    const bool from_peer =
        packet.path == qp->path || qp->path == nullptr || packet.path->key().remote == qp->path->key().remote;
    if (!from_peer) [[unlikely]] {
        drop(Drop::WrongPeer);
        return nullptr;
    }
    return qp;
}

// Returns the buffers of early packets that were taken or dropped since the last call.
void Engine::return_held() noexcept {
    std::array<void*, kBurst> cookies;
    while (const std::size_t count = held_.poll_released(cookies)) {
        std::array<port::PacketRef, kBurst> buffers{};
        for (std::size_t i = 0; i < count; ++i) {
            buffers[i].cookie = cookies[i];
        }
        sender_.port().release_burst(std::span(buffers).first(count));
    }
}

void Engine::after_input(RcQp& qp, Instant now) noexcept {
    if (qp.pair.state() == QpState::Err && !qp.stopped) [[unlikely]] {
        stop(qp);
    }
    if (holds_back_ && qp.sent_in_place) [[unlikely]] {
        copy_acknowledged(qp);
    }
    if (qp.pair.may_transmit()) {
        waiting_.push(qp);
    }
    if (qp.pair.owes_short_answer()) {
        answering_.push(qp);
    }
    keep_deadline(qp, now);  // its turn may be far away
}

// Copies tails that the peer has acknowledged while they still wait here: a hostile peer can acknowledge packets that
// it cannot have seen. The user that sees the completion may then write to that memory. Only called when something
// waits, which an honest peer has not acknowledged.
void Engine::copy_acknowledged(const RcQp& qp) noexcept {
    const Psn oldest = qp.pair.requester().unacknowledged_psn();
    const Qpn peer = qp.pair.attributes().dest_qpn;
    const auto acknowledged = [&qp, oldest, peer](const port::TxPacket& packet) noexcept {
        const auto& bth = *reinterpret_cast<const wire::RawBth*>(packet.packet.data);
        return packet.packet.path == qp.path && Qpn{bth.dest_qpn.get()} == peer && Psn{bth.psn.get()}.since(oldest) < 0;
    };
    sender_.copy_tails(port::TailFilter(acknowledged));
}

// Keeps one timer for a queue pair, at its deadline or before. Deadlines mostly move away, and a timer that rings too
// early is set again.
void Engine::keep_deadline(RcQp& qp, Instant now) noexcept {
    const Instant deadline = qp.pair.next_deadline();
    if (deadline >= qp.timer_at) [[likely]] {
        return;
    }
    timers_.cancel(qp.timer);
    qp.timer_at = std::min(deadline, now + timers_.horizon());
    qp.timer = timers_.insert(&qp, qp.timer_at);
}

void Engine::ring_timers(Instant now) noexcept {
    turns_.on_turn(now);
    const std::size_t rung = timers_.advance(now, [this, now](RcQp* qp) noexcept {
        qp->timer = {};
        qp->timer_at = Instant::never();
        qp->pair.on_timeout(now);
        after_input(*qp, now);
    });
    if (rung != 0) {
        settle_ended();
    }
}

Instant Engine::next_deadline() const noexcept {
    return waiting_.size() != 0 ? Instant{} : timers_.next_due();
}

}  // namespace cairn::roce
