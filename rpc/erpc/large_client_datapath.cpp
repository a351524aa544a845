// The client's side of calls whose messages have several packets: requests out, credit returns and responses in.
#include <algorithm>
#include <cstring>

#include "rpc/erpc/endpoint.hpp"
#include "rpc/erpc/judge.hpp"

namespace cairn::erpc {

namespace {

// Numbers that overtook a missing one by more than this many say that it is lost.
constexpr std::uint32_t kOvertaken = 3;
// Packets that make a batch which every port carries well.
constexpr std::uint32_t kWorthSending = 16;

}  // namespace

// False: no transfer is free; the slot waits in the stall queue.
bool Endpoint::begin_transfer(ClientSlot& slot) noexcept {
    slot.transfer = client_transfers_.take();
    if (slot.transfer == nullptr) {
        statistics_.count(Drop::NoBuffer);
        return false;
    }
    const std::size_t bytes = calls_[slot.call].call.request.size();
    slot.transfer->request_packets = packets_of(static_cast<std::uint32_t>(bytes), packet_bytes_);
    return true;
}

// Its credits return; the response's memory is left to the caller.
rpc::MsgBuffer Endpoint::end_transfer(Session& session, ClientSlot& slot) noexcept {
    ClientTransfer& transfer = *slot.transfer;
    session.credits = static_cast<std::uint16_t>(session.credits + transfer.outstanding());
    const rpc::MsgBuffer owned = transfer.owns_response ? transfer.response : rpc::MsgBuffer{};
    client_transfers_.give_back(&transfer);
    slot.transfer = nullptr;
    return owned;
}

// Sends as many as credits, window and the flow's rate allow; what is left waits in the stall queue or the wheel.
void Endpoint::kick(Session& session, std::uint32_t slot_index, Instant now) noexcept {
    ClientSlot& slot = (*session.client_slots)[slot_index];
    ClientTransfer& transfer = *slot.transfer;
    const std::uint32_t limit = std::min(transfer.known_numbers(), transfer.answered.next() + kWindowPackets);
    // A few credits at a time would come back a few at a time, for ever: what is under way brings more.
    const std::uint32_t worth = std::min({limit - transfer.sent, kWorthSending, session.credits_max / 2U});
    if (session.credits < worth && transfer.outstanding() != 0) {
        stall(session, slot_index);
        return;
    }
    while (transfer.sent < limit) {
        if (transfer.answered.has(transfer.sent)) {
            ++transfer.sent;
            continue;
        }
        if (session.credits == 0) {
            stall(session, slot_index);
            break;
        }
        if (!session.may_send(now)) [[unlikely]] {
            hold_back(session, slot_index);
            break;
        }
        --session.credits;
        const std::uint32_t number = transfer.sent++;
        transfer.sent_most = std::max(transfer.sent_most, transfer.sent);
        send_number(session, slot, number, now);
    }
}

// Whatever the rate allows: a packet that is sent again goes ahead of the others, which wait the longer.
void Endpoint::send_number(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept {
    ClientTransfer& transfer = *slot.transfer;
    if (slot.sends != 0) {
        sent_slots_.remove(slot);
    }
    sent_slots_.add(slot);
    slot.last_sent = now;
    slot.sends = std::max<std::uint8_t>(slot.sends, 1);
    transfer.sent_at[number % kWindowPackets] = now;
    const port::PacketRef buffer = sender_.take();
    if (buffer.cookie == nullptr) {
        statistics_.count(Drop::NoBuffer);
        return;
    }
    const Call& call = calls_[slot.call].call;
    const auto bytes = static_cast<std::uint32_t>(call.request.size());
    const bool data = number < transfer.request_packets;
    Header header;
    header.request_type = call.type;
    header.session = session.remote;
    header.type = data ? PacketType::Request : PacketType::Rfr;
    header.packet_number = static_cast<std::uint16_t>(number & kPacketNumberMask);
    header.request_number = slot.request_number;
    std::span<const std::uint8_t> payload;
    if (data) {
        header.message_bytes = bytes;
        payload =
            call.request.subspan(std::size_t{number} * packet_bytes_, bytes_of_packet(bytes, packet_bytes_, number));
    }
    // A request for response puts as much on the network, in the other direction.
    session.charge((data ? payload.size() : packet_bytes_) + kPacketOverheadBytes, now);
    send_packet(session, buffer, header, payload, now);
}

// What control is told is without the time that either host may have let the packet or its answer wait: a slow host
// makes long round trips, too, and it is the credits that hold back who sends to it. The first packet of a response has
// waited for the handler.
void Endpoint::sample(Session& session, const ClientSlot& slot, std::uint32_t number, std::uint8_t held,
                      Instant now) noexcept {
    const ClientTransfer& transfer = *slot.transfer;
    if (number < transfer.ambiguous_below || transfer.answered.has(number)) {
        return;
    }
    const Instant sent = transfer.sent_at[number % kWindowPackets];
    session.round_trip.sample(now - sent);
    if (config_.round_trips != nullptr) [[unlikely]] {
        config_.round_trips->record(static_cast<std::uint64_t>((now - sent).ns));
    }
    if (session.control != nullptr && number + 1 != transfer.request_packets) {
        const Duration waited = now - sender_.port().empty_at() + kHeldUnit * std::int64_t{held};
        const Duration network = held == kHeldLong ? Duration{} : now - sent - waited;
        session.control->on_ack({network, packet_bytes_ + kPacketOverheadBytes, stalls_.spoils(sent)}, now);
    }
}

void Endpoint::note_answered(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept {
    ClientTransfer& transfer = *slot.transfer;
    const bool held_credit = number < transfer.sent;
    if (transfer.answered.see(number) == PacketWindow::Seen::New) {
        session.last_heard = now;
        session.credits = static_cast<std::uint16_t>(session.credits + (held_credit ? 1 : 0));
        slot.sends = std::min<std::uint8_t>(slot.sends, 1);  // progress: the timeout starts anew
    }
}

void Endpoint::on_credit_return(Session& session, const roce::UdDatagram& datagram, const Header& header,
                                Instant now) noexcept {
    const auto slot_index = static_cast<std::uint32_t>(header.request_number % kSlotsPerSession);
    ClientSlot* const slot = session.client_slots != nullptr ? &(*session.client_slots)[slot_index] : nullptr;
    if (slot == nullptr || slot->call == kNone || slot->transfer == nullptr ||
        slot->request_number != header.request_number) {
        statistics_.count(Drop::StaleResponse);
        return;
    }
    ClientTransfer& transfer = *slot->transfer;
    const std::uint32_t answerable = std::min(transfer.request_packets - 1, transfer.sent_most);
    const std::uint32_t number = resolve_number(header.packet_number, transfer.answered.next());
    const std::size_t payload_bytes = datagram.payload_bytes - sizeof(RawHeader);
    std::array<Be64, 2> ahead{};
    if (header.message_bytes > answerable || number >= transfer.sent_most ||
        (payload_bytes != 0 && payload_bytes != sizeof(ahead))) {
        statistics_.count(Drop::BadSize);
        return;
    }
    std::memcpy(&ahead, datagram.payload + sizeof(RawHeader), payload_bytes);
    if (number < answerable) {
        sample(session, *slot, number, header.request_type, now);
    }
    for (std::uint32_t each = transfer.answered.next(); each < header.message_bytes; ++each) {
        note_answered(session, *slot, each, now);
    }
    for (std::uint32_t i = 0; i < kWindowPackets && header.message_bytes + i < answerable; ++i) {
        if (((ahead[i / 64].get() >> (i % 64)) & 1U) != 0) {
            note_answered(session, *slot, header.message_bytes + i, now);
        }
    }
    resend_overtaken(session, slot_index, now);
    kick(session, slot_index, now);
}

// Not waiting for the timeout: between Cairn peers a number that others overtook is sent again, once.
void Endpoint::resend_overtaken(Session& session, std::uint32_t slot_index, Instant now) noexcept {
    ClientSlot& slot = (*session.client_slots)[slot_index];
    ClientTransfer& transfer = *slot.transfer;
    const std::uint32_t end = transfer.answered.end();
    if (!session.selective || end < transfer.answered.next() + kOvertaken) [[likely]] {
        return;
    }
    const std::uint32_t most = std::min(end - kOvertaken, transfer.sent);
    for (std::uint32_t number = transfer.answered.next(); number < most; ++number) {
        if (!transfer.answered.has(number) && !transfer.answered.marked(number)) {
            transfer.answered.mark(number);
            transfer.ambiguous_below = std::max(transfer.ambiguous_below, number + 1);
            ++statistics_.retransmits;
            send_number(session, slot, number, now);
        }
    }
}

// Back to the oldest one that is missing; those answered already are passed over.
void Endpoint::on_transfer_timeout(Session& session, ClientSlot& slot, Instant now) noexcept {
    ClientTransfer& transfer = *slot.transfer;
    if (transfer.outstanding() == 0) {
        return;  // all that was sent is answered; the others wait for credits or their time
    }
    session.credits = static_cast<std::uint16_t>(session.credits + transfer.outstanding());
    transfer.sent = transfer.answered.next();
    transfer.ambiguous_below = transfer.sent_most;
    transfer.answered.clear_marks();
    slot.sends = static_cast<std::uint8_t>(slot.sends < 255 ? slot.sends + 1 : 255);
    ++statistics_.retransmits;
    if (session.stalled_under_way() == 0) [[likely]] {
        kick(session, slot.index(), now);
        return;
    }
    stall(session, slot.index());
    serve_stalled(session, slot.index() + 1, now);  // itself last
}

// Where the response is put together: the caller's buffer, or one of the pool. False: there is none now.
bool Endpoint::place_response(ClientTransfer& transfer, const Call& call, std::uint32_t bytes) noexcept {
    if (call.response != nullptr) {
        transfer.response = *call.response;
    } else {
        transfer.response = pool_.allocate(bytes);
        transfer.owns_response = transfer.response.valid();
        if (!transfer.owns_response) {
            statistics_.count(Drop::NoBuffer);
            messages_.want(0);
            return false;
        }
    }
    transfer.response_bytes = bytes;
    transfer.response_packets = packets_of(bytes, packet_bytes_);
    return true;
}

void Endpoint::on_response_packet(Session& session, const roce::UdDatagram& datagram, const Header& header,
                                  Instant now) noexcept {
    const auto slot_index = static_cast<std::uint32_t>(header.request_number % kSlotsPerSession);
    ClientSlot& slot = (*session.client_slots)[slot_index];
    if (slot.call == kNone || slot.sends == 0 || slot.request_number != header.request_number) {
        statistics_.count(Drop::StaleResponse);
        return;
    }
    const std::size_t payload_bytes = datagram.payload_bytes - sizeof(RawHeader);
    const std::uint32_t index = judge_response_packet(slot, header, payload_bytes, packet_bytes_);
    if (index == kNone) {
        statistics_.count(Drop::BadSize);
        return;
    }
    if (slot.transfer == nullptr) {
        if (!begin_transfer(slot)) {
            return;
        }
        slot.transfer->sent = session.has_yielded(slot) ? 0 : 1;
        slot.transfer->sent_most = 1;
        slot.transfer->sent_at[0] = slot.last_sent;
        slot.transfer->ambiguous_below = slot.sends > 1 ? 1 : 0;
        session.end_stall(slot_index);  // from now on it waits for the credits of its transfer
    }
    ClientTransfer& transfer = *slot.transfer;
    const Call& call = calls_[slot.call].call;
    const std::uint32_t room = call.response != nullptr ? call.response->capacity : config_.max_message_bytes;
    if (header.message_bytes > std::min(room, config_.max_message_bytes)) {
        ++statistics_.responses_received;
        complete(session, slot_index, CallStatus::ResponseTooLong, {}, now);
        return;
    }
    if (transfer.response_packets == 0 && !place_response(transfer, call, header.message_bytes)) {
        if (transfer.outstanding() == 0) {
            stall(session, slot_index);  // it had yielded: nothing else asks again
        }
        return;
    }
    const std::uint32_t number = index + transfer.request_packets - 1;
    if (transfer.answered.has(number)) {
        statistics_.count(Drop::StaleResponse);
        return;
    }
    std::memcpy(transfer.response.data + std::size_t{index} * packet_bytes_, datagram.payload + sizeof(RawHeader),
                payload_bytes);
    sample(session, slot, number, header.request_type, now);
    for (std::uint32_t each = transfer.answered.next(); each + 1 < transfer.request_packets; ++each) {
        note_answered(session, slot, each, now);  // who answers has the whole request
    }
    note_answered(session, slot, number, now);
    if (transfer.complete()) {
        ++statistics_.responses_received;
        complete(session, slot_index, CallStatus::Ok, {transfer.response.data, transfer.response_bytes}, now);
        return;
    }
    resend_overtaken(session, slot_index, now);
    kick(session, slot_index, now);
}

}  // namespace cairn::erpc
