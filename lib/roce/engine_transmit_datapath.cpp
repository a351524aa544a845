// From queue pair to packet.
#include <array>
#include <cstring>

#include "lib/base/user_memory.hpp"
#include "lib/roce/engine.hpp"

namespace cairn::roce {

namespace {

// A queue pair sends this many packets, then others take their turn.
constexpr std::size_t kPacketsPerTurn = 32;
// After these packets the acknowledgement that was put off may follow.
constexpr std::size_t kMostPerTurn = kPacketsPerTurn + 1;
// Room in the sender's queue for packets that peers wait for.
constexpr std::size_t kRoomForAnswers = 32;
// Up to this many queue pairs are worth a look at each.
constexpr std::uint32_t kFewAnswers = 16;
// Shorter payloads are copied: attaching them costs more.
constexpr std::uint32_t kLeastTailBytes = 1024;

// Returns true if the payload need not be copied.
bool can_stay(const rc::OutPacket& packet) noexcept {
    return packet.payload_bytes > kLeastTailBytes && packet.payload.count == 1 && packet.payload.sendable &&
           packet.pad_bytes == 0 && !packet.again;
}

}  // namespace

void Engine::transmit_some(Instant now) noexcept {
    if (held_.any_released()) {
        return_held();
    }
    if (waiting_.size() != 0) {
        give_turns(now);
        settle_ended();
    }
    is_used_ = count_ != 0 || !datagram_pairs_.empty();
}

Engine::Owed Engine::owed() const noexcept {
    if (waiting_.size() == 0) {
        return Owed::Nothing;
    }
    const bool are_short = waiting_.size() <= kFewAnswers && waiting_.all_of([](const Turn& each) noexcept {
        if (each.kind != Turn::Kind::Connection) {
            return false;
        }
        const rc::QueuePair& pair = static_cast<const RcQp&>(each).pair;
        return pair.owes_only_acknowledgement() && !pair.has_unsent_requests();
    });
    return are_short ? Owed::Acknowledgements : Owed::More;
}

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

// Sends short answers when the port takes less than there is, and turns come seldom. So a queue pair that sends much
// does not hold up answers that peers of other queue pairs wait for.
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
            send(buffer, out_, qp, now);
        } else {
            sender_.give_back(buffer);  // the answer left in its turn, or waits after data
        }
        if (qp.pair.owes_short_answer()) {
            answering_.push(qp);
        }
    }
}

// Sends packets of one turn. Returns true if the queue pair may have more. An acknowledgement leaves in one send with
// the first requests, which are equal. So a peer does not get a request long before the acknowledgement that was due
// first.
bool Engine::send_some(RcQp& qp, Instant now) noexcept {
    const bool lets_requests_go_first = qp.pair.owes_only_acknowledgement();
    bool acknowledges = lets_requests_go_first;
    std::size_t sent = 0;
    std::size_t bytes = 0;
    while (lets_requests_go_first ? qp.pair.has_unsent_requests() : qp.pair.may_transmit()) {
        if (sent == kPacketsPerTurn) {
            (void)(acknowledges && acknowledge(qp, true, now));
            return true;
        }
        const port::PacketRef buffer = sender_.take();
        if (buffer.cookie == nullptr) [[unlikely]] {
            counters_.count(EngineCounter::NoBuffer);
            return true;
        }
        out_.elsewhere = buffer.data;
        if (!(lets_requests_go_first ? qp.pair.poll_request(out_, now) : qp.pair.poll_transmit({&out_, 1}, now) != 0)) {
            sender_.give_back(buffer);
            break;
        }
        const bool goes_alone = sent == 0 ? qp.path->takes_batches_from() > now : out_.bytes() != bytes;
        if (acknowledges && batches_ && goes_alone) {
            acknowledges = acknowledge(qp, true, now);
        }
        bytes = out_.bytes();
        send(buffer, out_, qp, now);
        ++sent;
    }
    return acknowledges && acknowledge(qp, sent != 0, now);
}

// Sends the acknowledgement that is owed, or puts it off. Returns true if it was put off. An acknowledgement is less
// urgent than a request. Over a socket it leaves after the requests of its turn, in one send with them. A short packet
// between them would part them into two sends. Elsewhere it leaves by itself in the next turn, so that neither end has
// to deal with it before the request.
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
    rc::OutPacket answer;  // a request may be in out_
    answer.elsewhere = buffer.data;
    if (qp.pair.poll_response(answer)) {
        send(buffer, answer, qp, now);
    } else {
        sender_.give_back(buffer);  // the queue pair failed by its requests
    }
    return false;
}

// The one function by which packets of connections leave. The headers are in the buffer.
void Engine::send(const port::PacketRef& buffer, const rc::OutPacket& packet, RcQp& qp, Instant now) noexcept {
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
    if (!gather(packet.payload, buffer.data + header_bytes)) [[unlikely]] {
        // The packet is lost. The peer, or our own timer, asks for it again, and then the region refuses.
        counters_.count(EngineCounter::MemoryVanished);
        memory_.on_vanished(UserMemory::last_fault());
        sender_.give_back(buffer);
        return;
    }
    std::memset(buffer.data + header_bytes + packet.payload_bytes, 0, port::kIcrcBytes);  // the pad
    sender_.send(buffer, qp.path, packet.bytes(), {}, now);
}

}  // namespace cairn::roce
