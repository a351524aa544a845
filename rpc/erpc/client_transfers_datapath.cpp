// Messages of several packets at the client. Sends requests, and takes credit returns and responses.
#include <algorithm>
#include <array>
#include <cstring>

#include "rpc/erpc/client.hpp"
#include "rpc/erpc/judge.hpp"

namespace cairn::erpc {

namespace {

// A missing number counts as lost when an answered number is at least this far ahead of it.
constexpr std::uint32_t kOvertaken = 3;
// A batch of this many packets is efficient on every port.
constexpr std::uint32_t kWorthSending = 16;

}  // namespace

ClientTransfers::ClientTransfers(const EndpointConfig& config, Client& client)
    : config_(config),
      client_(client),
      transfers_(config.transfers_max),
      wheel_(make_wheel(config.congestion, config.sessions_max, Instant{})) {}

bool ClientTransfers::begin(ClientSession& client, ClientSlot& slot) noexcept {
    slot.transfer = transfers_.take();
    if (slot.transfer == nullptr) {
        client_.statistics_.count(Drop::NoBuffer);
        return false;
    }
    const std::size_t bytes = client_.calls_[slot.call].request.size();
    slot.transfer->request_packets = packets_of(static_cast<std::uint32_t>(bytes), client_.writer_.packet_bytes());
    client.move(slot, SlotState::Moving);
    return true;
}

rpc::MsgBuffer ClientTransfers::end(ClientSession& client, ClientSlot& slot) noexcept {
    ClientTransfer& transfer = *slot.transfer;
    client.credits = static_cast<std::uint16_t>(client.credits + transfer.outstanding());
    const rpc::MsgBuffer owned = transfer.owns_response ? transfer.response : rpc::MsgBuffer{};
    transfers_.give_back(&transfer);
    slot.transfer = nullptr;
    return owned;
}

// Packets that may not leave yet wait in the stall queue or the wheel.
void ClientTransfers::kick(Session& session, ClientSlot& slot, Instant now) noexcept {
    ClientSession& client = *session.client;
    ClientTransfer& transfer = *slot.transfer;
    const std::uint32_t limit = std::min(transfer.known_numbers(), transfer.answered.next() + kWindowPackets);
    // Waits until enough credits for a batch are back. Small batches would bring back few credits at a time for ever.
    const std::uint32_t worth = std::min({limit - transfer.sent, kWorthSending, session.credits_max / 2U});
    if (client.credits < worth && transfer.outstanding() != 0) {
        client_.stall(session, slot, SlotState::Starved);
        return;
    }
    client.move(slot, SlotState::Moving);
    while (transfer.sent < limit) {
        if (transfer.answered.has(transfer.sent)) {
            ++transfer.sent;
            continue;
        }
        if (client.credits == 0) {
            client_.stall(session, slot, SlotState::Starved);
            return;
        }
        if (!client.may_send(now)) [[unlikely]] {
            hold_back(session, slot);
            return;
        }
        --client.credits;
        const std::uint32_t number = transfer.sent++;
        transfer.sent_most = std::max(transfer.sent_most, transfer.sent);
        send_number(session, slot, number, now);
    }
}

// Sends a packet whether or not the rate allows it. A packet that is sent again goes first, and the others wait longer
// for that.
void ClientTransfers::send_number(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept {
    ClientTransfer& transfer = *slot.transfer;
    const std::uint32_t packet_bytes = client_.writer_.packet_bytes();
    client_.watch_.note_sent(session, *session.client, now);
    slot.last_sent = now;
    slot.sends = std::max<std::uint8_t>(slot.sends, 1);
    transfer.sent_at[number % kWindowPackets] = now;
    const port::PacketRef buffer = client_.writer_.take();
    if (buffer.cookie == nullptr) {
        return;
    }
    const Call& call = client_.calls_[slot.call];
    const auto bytes = static_cast<std::uint32_t>(call.request.size());
    const bool data = number < transfer.request_packets;
    Header header;
    header.request_type = call.type;
    header.session = session.remote();
    header.type = data ? PacketType::Request : PacketType::Rfr;
    header.packet_number = static_cast<std::uint16_t>(number & kPacketNumberMask);
    header.request_number = slot.request_number;
    std::span<const std::uint8_t> payload;
    if (data) {
        header.message_bytes = bytes;
        payload =
            call.request.subspan(std::size_t{number} * packet_bytes, bytes_of_packet(bytes, packet_bytes, number));
    }
    // An RFR makes the server send a packet, so it is charged as that packet.
    session.client->charge((data ? payload.size() : packet_bytes) + kPacketOverheadBytes, now);
    client_.writer_.send(session, buffer, header, payload, now);
}

// Congestion control gets the round trip less the time that either host may have held the packet or its answer. A slow
// host makes round trips long, too, but the credits hold back what is sent to it. The first packet of a response gives
// no sample for congestion control, since it has waited for the handler.
void ClientTransfers::sample(Session& session, const ClientSlot& slot, std::uint32_t number, HeldTime held,
                             Instant now) noexcept {
    const ClientTransfer& transfer = *slot.transfer;
    if (number < transfer.ambiguous_below || transfer.answered.has(number)) {
        return;
    }
    ClientSession& client = *session.client;
    const Instant sent = transfer.sent_at[number % kWindowPackets];
    client.round_trip.sample(now - sent);
    if (config_.round_trips != nullptr) [[unlikely]] {
        config_.round_trips->record(static_cast<std::uint64_t>((now - sent).ns));
    }
    if (client.control != nullptr && number + 1 != transfer.request_packets) {
        const Duration waited = client_.writer_.held(now) + held.least();
        const Duration network = held.is_long() ? Duration{} : now - sent - waited;
        client.control->on_ack({network, client_.writer_.packet_bytes() + kPacketOverheadBytes, spoils(sent)}, now);
    }
}

void ClientTransfers::note_answered(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept {
    ClientTransfer& transfer = *slot.transfer;
    const bool held_credit = number < transfer.sent;
    if (transfer.answered.see(number) == PacketWindow::Seen::New) {
        session.last_heard = now;
        session.client->credits = static_cast<std::uint16_t>(session.client->credits + (held_credit ? 1 : 0));
        client_.stalled_.credits_came(session);
        slot.sends = std::min<std::uint8_t>(slot.sends, 1);  // there is progress, so the timeout starts anew
    }
}

void ClientTransfers::on_credit_return(const Arrival& arrival) noexcept {
    Session& session = arrival.session;
    const CreditReturn said = CreditReturn::of(arrival.header);
    ClientSlot* const slot = session.client != nullptr ? &session.client->slots[arrival.slot_index()] : nullptr;
    if (slot == nullptr || slot->transfer == nullptr || slot->request_number != arrival.header.request_number) {
        client_.statistics_.count(Drop::StaleResponse);
        return;
    }
    ClientTransfer& transfer = *slot->transfer;
    const std::uint32_t answerable = std::min(transfer.request_packets - 1, transfer.sent_most);
    const std::uint32_t number = resolve_number(said.newest, transfer.answered.next());
    std::array<Be64, 2> ahead{};
    if (said.in_order > answerable || number >= transfer.sent_most ||
        (arrival.payload_bytes() != 0 && arrival.payload_bytes() != sizeof(ahead))) {
        client_.statistics_.count(Drop::BadSize);
        return;
    }
    std::memcpy(&ahead, arrival.payload().data(), arrival.payload_bytes());
    if (number < answerable) {
        sample(session, *slot, number, said.held, arrival.now);
    }
    for (std::uint32_t each = transfer.answered.next(); each < said.in_order; ++each) {
        note_answered(session, *slot, each, arrival.now);
    }
    for (std::uint32_t i = 0; i < kWindowPackets && said.in_order + i < answerable; ++i) {
        if (((ahead[i / 64].get() >> (i % 64)) & 1U) != 0) {
            note_answered(session, *slot, said.in_order + i, arrival.now);
        }
    }
    go_on(session, *slot, arrival.now);
}

// Goes on after some packets of the call were answered. If other messages of the session wait to go on, the call waits
// its turn for the new credits.
void ClientTransfers::go_on(Session& session, ClientSlot& slot, Instant now) noexcept {
    resend_overtaken(session, slot, now);
    if ((session.client->stalled_under_way() & ~(1U << slot.index())) != 0) [[unlikely]] {
        client_.stall(session, slot, SlotState::Starved);
        return;
    }
    kick(session, slot, now);
}

// Sends each overtaken number again once, without waiting for the timeout. Both ends must hold early packets for that.
void ClientTransfers::resend_overtaken(Session& session, ClientSlot& slot, Instant now) noexcept {
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
            ++client_.statistics_.retransmits;
            send_number(session, slot, number, now);
        }
    }
}

// Sends again from the oldest missing number on, but not the numbers that were answered.
void ClientTransfers::on_timeout(Session& session, ClientSlot& slot, Instant now) noexcept {
    ClientSession& client = *session.client;
    ClientTransfer& transfer = *slot.transfer;
    if (transfer.outstanding() == 0) {
        return;  // all packets that were sent have answers; the others wait for credits or their time
    }
    client.credits = static_cast<std::uint16_t>(client.credits + transfer.outstanding());
    client_.stalled_.credits_came(session);
    transfer.sent = transfer.answered.next();
    transfer.ambiguous_below = transfer.sent_most;
    transfer.answered.clear_marks();
    slot.sends = static_cast<std::uint8_t>(slot.sends < 255 ? slot.sends + 1 : 255);
    ++client_.statistics_.retransmits;
    if (client.stalled_under_way() == 0) [[likely]] {
        kick(session, slot, now);
        return;
    }
    client_.stall(session, slot, SlotState::Starved);
    client.comes_last(slot);
    client_.serve_stalled(session, now);
}

void ClientTransfers::restart(Session& session, ClientSlot& slot, Instant now) noexcept {
    ClientSession& client = *session.client;
    ++client_.statistics_.calls_restarted;
    client_.writer_.settle(client_.calls_[slot.call].request);
    rpc::MsgBuffer owned = end(client, slot);
    client_.stalled_.credits_came(session);
    client_.pool_.release(owned);
    slot.request_number = number_of_next(slot.request_number);
    slot.sends = 0;
    client.move(slot, SlotState::WaitsCredit);
    if (client.credits == 0) {
        client_.stall(session, slot, SlotState::WaitsCredit);
    } else {
        client_.send_first(session, slot, now);
    }
}

// Chooses where the response is assembled: in the caller's buffer or in one of the pool. Returns false if the pool has
// none now.
bool ClientTransfers::place_response(ClientTransfer& transfer, const Call& call, std::uint32_t bytes) noexcept {
    if (call.response != nullptr) {
        transfer.response = *call.response;
    } else {
        transfer.response = client_.pool_.allocate(bytes);
        transfer.owns_response = transfer.response.valid();
        if (!transfer.owns_response) {
            client_.statistics_.count(Drop::NoBuffer);
            client_.messages_.want(0);
            return false;
        }
    }
    transfer.response_bytes = bytes;
    transfer.response_packets = packets_of(bytes, client_.writer_.packet_bytes());
    return true;
}

// Gives the slot a transfer: the answer to a request of one packet has several packets. Returns false if no transfer is
// free.
bool ClientTransfers::adopt(Session& session, ClientSlot& slot) noexcept {
    const bool yielded = slot.state == SlotState::Yielded;
    if (!begin(*session.client, slot)) {
        return false;
    }
    slot.transfer->sent = yielded ? 0 : 1;
    slot.transfer->sent_most = 1;
    slot.transfer->sent_at[0] = slot.last_sent;
    slot.transfer->ambiguous_below = slot.sends > 1 ? 1 : 0;
    return true;
}

void ClientTransfers::on_response_packet(const Arrival& arrival) noexcept {
    Session& session = arrival.session;
    const Header& header = arrival.header;
    const Instant now = arrival.now;
    ClientSlot& slot = session.client->slots[arrival.slot_index()];
    if (slot.call == kNone || !slot.may_be_known() || slot.request_number != header.request_number) {
        client_.statistics_.count(Drop::StaleResponse);
        return;
    }
    const std::uint32_t packet_bytes = client_.writer_.packet_bytes();
    const std::uint32_t index = judge_response_packet(slot, header, arrival.payload_bytes(), packet_bytes);
    if (index == kNone) {
        client_.statistics_.count(Drop::BadSize);
        return;
    }
    if (slot.transfer == nullptr && !adopt(session, slot)) {
        return;
    }
    ClientTransfer& transfer = *slot.transfer;
    const Call& call = client_.calls_[slot.call];
    const std::uint32_t room = call.response != nullptr ? call.response->capacity : config_.max_message_bytes;
    if (header.message_bytes > std::min(room, config_.max_message_bytes)) {
        ++client_.statistics_.responses_received;
        client_.complete(session, slot, CallStatus::ResponseTooLong, {}, now);
        return;
    }
    if (transfer.response_packets == 0 && !place_response(transfer, call, header.message_bytes)) {
        if (transfer.outstanding() == 0) {
            client_.stall(session, slot, SlotState::Starved);  // the slot had yielded; otherwise it would not ask again
        }
        return;
    }
    const std::uint32_t number = index + transfer.request_packets - 1;
    if (transfer.answered.has(number)) {
        client_.statistics_.count(Drop::StaleResponse);
        return;
    }
    std::memcpy(transfer.response.data + std::size_t{index} * packet_bytes, arrival.payload().data(),
                arrival.payload_bytes());
    sample(session, slot, number, header.held(), now);
    for (std::uint32_t each = transfer.answered.next(); each + 1 < transfer.request_packets; ++each) {
        note_answered(session, slot, each, now);  // a server that answers has the whole request
    }
    note_answered(session, slot, number, now);
    if (transfer.complete()) {
        ++client_.statistics_.responses_received;
        client_.complete(session, slot, CallStatus::Ok, {transfer.response.data, transfer.response_bytes}, now);
        return;
    }
    go_on(session, slot, now);
}

}  // namespace cairn::erpc
