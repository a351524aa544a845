// From packet to queue pair, and from queue pair to packet.
#include "lib/roce/engine.hpp"

#include <algorithm>
#include <cstring>

#include "lib/base/copy.hpp"
#include "lib/base/fetch.hpp"
#include "lib/port/ecn.hpp"

namespace cairn::roce {

namespace {

// A queue pair sends so many packets, then others take their turn.
constexpr std::size_t kPacketsPerTurn = 32;
// Then the acknowledgement that was put off may follow.
constexpr std::size_t kMostPerTurn = kPacketsPerTurn + 1;
// Of the sender's queue, for what peers wait for.
constexpr std::size_t kRoomForAnswers = 32;
// Shorter payloads are copied: attaching them costs more.
constexpr std::uint32_t kLeastTailBytes = 1024;

// What requests look at of a responder: not the answers that it keeps for its peer.
constexpr std::size_t kFetchedOfResponder = 320;

// What a packet with this opcode looks at of its queue pair.
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

// The payload need not be copied.
// mutants: roce-engine-can-stay
bool can_stay(const rc::OutPacket& packet) noexcept {
    return packet.payload_bytes > kLeastTailBytes && packet.payload.count == 1 && packet.payload.sendable &&
           packet.pad_bytes == 0 && !packet.again;
}

bool is_datagram(const port::PacketRef& packet) noexcept {
    return packet.len != 0 && (packet.data[0] & 0xe0U) == static_cast<unsigned>(wire::Service::Ud);
}

}  // namespace

// What was posted is sent at the end of the turn.
void Engine::wake(RcQp& qp) noexcept {
    if (!qp.link.listed) {
        fetch_lines(&qp.pair.requester(), sizeof(rc::Requester));
    }
    waiting_.push(qp);
}

// mutants: roce-engine-on-packets
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

// With many connections each packet's queue pair is somewhere in memory: all of a burst's are asked for before the
// first is looked at.
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

// mutants: roce-engine-take-burst
void Engine::take_burst(std::span<port::PacketRef> burst, Instant now) noexcept {
    burst = burst.subspan(datagrams_.take_known(burst, now));
    if (std::all_of(burst.begin(), burst.end(), is_datagram)) {
        datagrams_.on_packets(burst, now);
        return;
    }
    fetch_queue_pairs(burst);
    const bool may_keep = port().has_spare_buffers();
    std::size_t datagrams = 0;
    RcQp* recent = nullptr;  // what follows from its packets is seen to once for a run of them
    for (port::PacketRef& packet : burst) {
        if (is_datagram(packet)) {
            datagram_packets_[datagrams++] = packet;
            packet.cookie = nullptr;
            continue;
        }
        const wire::Parsed<wire::Packet> parsed = wire::Packet::parse({packet.data, packet.len});
        RcQp* const qp = judge(packet, parsed);
        if (qp == nullptr) {
            continue;
        }
        if (qp != recent && recent != nullptr) {
            after_input(*recent, now);
        }
        recent = qp;
        if (packet.ecn == port::kCongestionExperienced) [[unlikely]] {
            qp->pair.on_marked(parsed.value(), now);
        }
        const rc::PacketOffer offer{{packet.data, may_keep ? packet.len : std::size_t{0}}, packet.cookie};
        if (qp->pair.on_packet(parsed.value(), offer, now)) [[unlikely]] {
            packet.cookie = nullptr;  // kept: it came before others
        }
    }
    if (recent != nullptr) {
        after_input(*recent, now);
    }
    port().release_burst(burst);
    datagrams_.on_packets(std::span(datagram_packets_).first(datagrams), now);
}

// Whose packet it is; nullptr: dropped.
// mutants: roce-engine-judge
Engine::RcQp* Engine::judge(const port::PacketRef& packet, const wire::Parsed<wire::Packet>& parsed) noexcept {
    if (!packet.icrc_ok) [[unlikely]] {
        drop(Drop::BadIcrc);
        return nullptr;
    }
    if (!parsed.ok()) [[unlikely]] {
        wire_drops_.count(parsed.reason());
        return nullptr;
    }
    RcQp* const qp = find(parsed.value().bth().dest_qpn);
    if (qp == nullptr) [[unlikely]] {
        drop(Drop::UnknownQpn);
        return nullptr;
    }
    // Without a path it receives nothing yet, and says so itself.
    const bool from_peer =
        packet.path == qp->path || qp->path == nullptr || packet.path->key().remote == qp->path->key().remote;
    if (!from_peer) [[unlikely]] {
        drop(Drop::WrongPeer);
        return nullptr;
    }
    return qp;
}

// Buffers of early packets that were taken or dropped meanwhile.
// mutants: roce-engine-return-held
void Engine::return_held() noexcept {
    std::array<void*, kBurst> cookies;
    while (const std::size_t count = held_.poll_released(cookies)) {
        std::array<port::PacketRef, kBurst> buffers{};
        for (std::size_t i = 0; i < count; ++i) {
            buffers[i].cookie = cookies[i];
        }
        port().release_burst(std::span(buffers).first(count));
    }
}

// mutants: roce-engine-after-input
void Engine::after_input(RcQp& qp, Instant now) noexcept {
    if (qp.pair.state() == QpState::Err && !qp.stopped) [[unlikely]] {
        stop(qp);
    }
    if (holds_back_ && qp.sent_in_place) [[unlikely]] {
        copy_acknowledged(qp);
    }
    waiting_.push(qp);
    if (qp.pair.owes_short_answer()) {
        answering_.push(qp);
    }
    keep_deadline(qp, now);
}

// A hostile peer acknowledges what it can not have seen. The user that sees the completion may then write to memory
// that waits to be sent. Looked for only where something waits, which an honest peer has not acknowledged.
void Engine::copy_acknowledged(const RcQp& qp) noexcept {
    const Psn oldest = qp.pair.requester().unacknowledged_psn();
    const Qpn peer = qp.pair.attributes().dest_qpn;
    const auto acknowledged = [&qp, oldest, peer](const port::TxPacket& packet) noexcept {
        const auto& bth = *reinterpret_cast<const wire::RawBth*>(packet.packet.data);
        return packet.packet.path == qp.path && Qpn{bth.dest_qpn.get()} == peer && Psn{bth.psn.get()}.since(oldest) < 0;
    };
    sender_.copy_tails(port::TailFilter(acknowledged));
}

// A queue pair has one timer, at its deadline or before: deadlines mostly move away, and a timer that rings too early
// is set again.
void Engine::keep_deadline(RcQp& qp, Instant now) noexcept {
    const Instant deadline = qp.pair.next_deadline();
    if (deadline >= qp.timer_at) [[likely]] {
        return;
    }
    timers_.cancel(qp.timer);
    qp.timer_at = std::min(deadline, now + timers_.horizon());
    qp.timer = timers_.insert(&qp, qp.timer_at);
}

// mutants: roce-engine-ring-timers
void Engine::ring_timers(Instant now) noexcept {
    turns_.on_turn(now);
    (void)timers_.advance(now, [this, now](RcQp* qp) noexcept {
        qp->timer = {};
        qp->timer_at = Instant::never();
        qp->pair.on_timeout(now);
        after_input(*qp, now);
    });
    settle_ended();
}

// mutants: roce-engine-next-deadline
Instant Engine::next_deadline() const noexcept {
    return waiting_.size() != 0 ? Instant{} : timers_.next_due();
}

// mutants: roce-engine-transmit-some
void Engine::transmit_some(Instant now) noexcept {
    return_held();
    give_turns(now);
    settle_ended();
    is_used_ = count_ != 0 || !datagram_pairs_.empty();
}

// mutants: roce-engine-give-turns
void Engine::give_turns(Instant now) noexcept {
    for (std::uint32_t turns = waiting_.size(); turns > 0; --turns) {
        if (sender_.queued() + kMostPerTurn + kRoomForAnswers > Sender::kQueuePackets) [[unlikely]] {
            counters_.count(EngineCounter::NoBuffer);
            answer_peers(now);
            return;
        }
        Turn& turn = waiting_.pop();
        if (turn.kind == Turn::Kind::Connection) [[likely]] {
            take_turn(static_cast<RcQp&>(turn), now);
            continue;
        }
        contexts_.use(turn);
        if (static_cast<UdQueuePair&>(turn).transmit(kPacketsPerTurn, now)) {
            waiting_.push(turn);
        }
    }
}

// mutants: roce-engine-take-turn
void Engine::take_turn(RcQp& qp, Instant now) noexcept {
    if (send_some(qp, now)) {
        waiting_.push(qp);
    }
    if (!qp.pair.owes_short_answer()) {
        answering_.remove(qp);
    }
    if (qp.pair.state() == QpState::Err && !qp.stopped) [[unlikely]] {
        stop(qp);
    }
    keep_deadline(qp, now);
}

// The port takes less than there is, and turns come seldom. A queue pair that sends much does not hold up answers that
// peers of other queue pairs wait for.
void Engine::answer_peers(Instant now) noexcept {
    for (std::uint32_t left = answering_.size(); left > 0 && sender_.queued() < Sender::kQueuePackets; --left) {
        const port::PacketRef buffer = sender_.take();
        if (buffer.cookie == nullptr) {
            return;
        }
        RcQp& qp = answering_.pop();
        out_.elsewhere = buffer.data;
        if (qp.pair.poll_short_answer(out_)) {
            qp.put_off = false;
            send(buffer, qp, now);
        } else {
            sender_.give_back(buffer);  // it left in its turn, or waits behind data
        }
        if (qp.pair.owes_short_answer()) {
            answering_.push(qp);
        }
    }
}

// True: it may have more.
bool Engine::send_some(RcQp& qp, Instant now) noexcept {
    const bool acknowledges = qp.pair.owes_only_acknowledgement();
    std::size_t sent = 0;
    bool more = true;
    while (more && sent < kPacketsPerTurn) {
        const port::PacketRef buffer = sender_.take();
        if (buffer.cookie == nullptr) [[unlikely]] {
            counters_.count(EngineCounter::NoBuffer);
            return true;
        }
        out_.elsewhere = buffer.data;
        more = acknowledges ? qp.pair.poll_request(out_, now) : qp.pair.poll_transmit({&out_, 1}, now) != 0;
        if (more) {
            send(buffer, qp, now);
            ++sent;
        } else {
            sender_.give_back(buffer);
        }
    }
    return (acknowledges && acknowledge(qp, sent != 0, now)) || more;
}

// True: put off. An acknowledgement is less urgent than a request. Over a socket it leaves behind the requests of its
// turn, in one send with them; a short packet between them would part them into two sends. Elsewhere it leaves by
// itself in the next turn, so that neither end has to deal with it before the request.
// mutants: roce-engine-acknowledge
bool Engine::acknowledge(RcQp& qp, bool sent_requests, Instant now) noexcept {
    qp.put_off = sent_requests && !batches_ && !qp.put_off;
    if (qp.put_off) {
        return true;
    }
    const port::PacketRef buffer = sender_.take();
    if (buffer.cookie == nullptr) [[unlikely]] {
        counters_.count(EngineCounter::NoBuffer);
        return true;
    }
    out_.elsewhere = buffer.data;
    if (qp.pair.poll_response(out_)) {
        send(buffer, qp, now);
    } else {
        sender_.give_back(buffer);  // it failed by its requests
    }
    return false;
}

// The one point where packets of connections leave. The headers are in the buffer.
// mutants: roce-engine-send
void Engine::send(const port::PacketRef& buffer, RcQp& qp, Instant now) noexcept {
    const rc::OutPacket& packet = out_;
    contexts_.use_for(packet.headers()[0], qp);
    counters_.count(EngineCounter::PacketsSent);
    if (packet.again) [[unlikely]] {
        counters_.count(EngineCounter::PacketsResent);
    }
    const std::size_t header_bytes = packet.header_bytes;
    if (qp.pair.service() != wire::Service::Uc && can_stay(packet)) {
        counters_.count(EngineCounter::PayloadsInPlace);
        qp.sent_in_place = true;
        sender_.send(buffer, qp.path, header_bytes + port::kIcrcBytes, packet.payload.at[0], now);
        return;
    }
    std::uint8_t* at = buffer.data + header_bytes;
    for (const std::span<std::uint8_t> piece : packet.payload.all()) {
        copy_bytes(at, piece.data(), piece.size());
        at += piece.size();
    }
    std::memset(at, 0, port::kIcrcBytes);  // the pad
    sender_.send(buffer, qp.path, packet.bytes(), {}, now);
}

}  // namespace cairn::roce
