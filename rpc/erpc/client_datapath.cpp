// Calls over a session's slots: sends requests of one packet, takes their responses, and ends calls.
#include "rpc/erpc/client.hpp"

#include <bit>

#include "rpc/erpc/judge.hpp"

namespace cairn::erpc {

// Must not be inlined into Endpoint::post(), which begins most calls on the short path.
[[gnu::noinline]] Posted Client::post(Session& session, const Call& call, Instant now) noexcept {
    if (call.request.size() > config_.max_message_bytes) {
        return {PostVerdict::TooLong};
    }
    if (calls_.is_full()) {
        return {PostVerdict::Full};
    }
    if (session.client == nullptr) [[unlikely]] {
        make_client_session(session, now);
    }
    ClientSession& client = *session.client;
    const std::uint32_t index = calls_.add(call, session.self, now);
    const CallId id = calls_.id_of(index);
    if (session.state == SessionState::Connected && client.in(SlotState::Free) != 0 && client.backlog.empty()) {
        start(session, index, now);
    } else {
        calls_.join(client.backlog, index);
    }
    return {PostVerdict::Posted, id};
}

void Client::start(Session& session, std::uint32_t call, Instant now) noexcept {
    ClientSession& client = *session.client;
    const auto slot_index = static_cast<std::uint32_t>(std::countr_zero(client.in(SlotState::Free)));
    ClientSlot& slot = client.slots[slot_index];
    slot.call = call;
    slot.sends = 0;
    calls_.put_into_slot(call, slot_index);
    if (client.credits == 0 || (client.stalled() != 0 && client.others_go_first())) {
        stall(session, slot, SlotState::WaitsCredit);
    } else {
        send_first(session, slot, now);
    }
}

// Sends the slot's request for the first time, or again if the slot gave its credit up. A credit is free.
void Client::send_first(Session& session, ClientSlot& slot, Instant now) noexcept {
    ClientSession& client = *session.client;
    if (slot.state == SlotState::Yielded) [[unlikely]] {
        ++statistics_.retransmits;
    } else {
        if (calls_[slot.call].request.size() > writer_.packet_bytes()) [[unlikely]] {
            if (!transfers_.begin(client, slot)) {
                stall(session, slot, SlotState::WaitsCredit);
                return;
            }
            slot.transfer->first_sent = now;
            ++statistics_.requests_sent;
            transfers_.kick(session, slot, now);
            return;
        }
        ++statistics_.requests_sent;
    }
    --client.credits;
    client.move(slot, SlotState::Sent);
    send_request(session, slot, now);
}

// Sends or resends a request of one packet. Without a buffer the retransmission timer tries again.
void Client::send_request(Session& session, ClientSlot& slot, Instant now) noexcept {
    const Call& call = calls_[slot.call];
    slot.last_sent = now;
    slot.sends = static_cast<std::uint8_t>(slot.sends < 255 ? slot.sends + 1 : 255);
    const bool is_copied = call.request.size() < kTailBytes;
    slot.awaited = slot.sends == 1 && is_copied ? SecondWord::of(PacketType::Request, slot.request_number).of_answer()
                                                : SecondWord::none();
    watch_.note_sent(session, *session.client, now);
    const port::PacketRef buffer = writer_.take();
    if (buffer.cookie == nullptr) {
        return;
    }
    Header header;
    header.request_type = call.type;
    header.message_bytes = static_cast<std::uint32_t>(call.request.size());
    header.session = session.remote();
    header.type = PacketType::Request;
    header.request_number = slot.request_number;
    writer_.send(session, buffer, header, call.request, now);
}

void Client::on_response(const Arrival& arrival) noexcept {
    Session& session = arrival.session;
    if (session.client == nullptr) [[unlikely]] {
        statistics_.count(Drop::StaleResponse);  // this session has had no call yet
        return;
    }
    ClientSession& client = *session.client;
    ClientSlot& slot = client.slots[arrival.slot_index()];
    if (slot.transfer != nullptr || arrival.header.message_bytes > writer_.packet_bytes()) [[unlikely]] {
        transfers_.on_response_packet(arrival);
        return;
    }
    const ResponseVerdict verdict = judge_response(slot, arrival.header, arrival.payload_bytes());
    if (verdict != ResponseVerdict::Take) {
        statistics_.count(verdict == ResponseVerdict::Stale ? Drop::StaleResponse : Drop::BadSize);
        return;
    }
    session.last_heard = arrival.now;
    ++statistics_.responses_received;
    if (slot.sends == 1) [[likely]] {  // the answer to a request that was sent again may belong to either copy (Karn)
        transfers_.note_round_trip(client, slot, arrival.payload_bytes(), arrival.now);
    }
    complete(session, slot, CallStatus::Ok, arrival.payload(), arrival.now);
    // The completion has read the buffer, so the next request can use it.
    writer_.sender().give_back(arrival.packet());
    arrival.packet().cookie = nullptr;
}

// Frees the slot and its credit first, so that the completion may post or disconnect.
void Client::complete(Session& session, ClientSlot& slot, CallStatus status, std::span<const std::uint8_t> response,
                      Instant now) noexcept {
    if (const auto& request = calls_[slot.call].request; request.size() >= kTailBytes) [[unlikely]] {
        // A hostile server may answer a request that has not left. The caller owns the request's memory again now, so
        // packets that still wait get a copy of it.
        if (slot.last_sent == now || slot.transfer != nullptr || writer_.sender().holds_back()) {
            writer_.sender().copy_tails(request);
        }
    }
    if (slot.state != SlotState::Sent || slot.sends != 1 || status != CallStatus::Ok) [[unlikely]] {
        complete_slowly(session, slot, status, response, now);
        return;
    }
    ClientSession& client = *session.client;
    ++client.credits;
    stalled_.credits_came(session);
    calls_.finish(client.free_slot(slot), status, response, now);
    refill_slots(session, now);
}

// Completes a call that failed, was sent more than once, or has several packets.
void Client::complete_slowly(Session& session, ClientSlot& slot, CallStatus status,
                             std::span<const std::uint8_t> response, Instant now) noexcept {
    ClientSession& client = *session.client;
    const bool copies = slot.sends > 1 || (slot.transfer != nullptr && slot.transfer->ambiguous_below != 0);
    if (copies || status != CallStatus::Ok) {
        writer_.settle(calls_[slot.call].request);  // a copy of the request may still wait for the device
    }
    rpc::MsgBuffer owned;
    if (slot.transfer != nullptr) {
        owned = transfers_.end(client, slot);
    } else {
        client.credits = static_cast<std::uint16_t>(client.credits + slot.credits_held());
    }
    stalled_.credits_came(session);
    calls_.finish(client.free_slot(slot), status, response, now);
    pool_.release(owned);
    refill_slots(session, now);
}

void Client::refill_slots(Session& session, Instant now) noexcept {
    ClientSession& client = *session.client;
    while (!client.backlog.empty() && client.in(SlotState::Free) != 0 && session.state == SessionState::Connected) {
        const std::uint32_t call = client.backlog.oldest;
        calls_.leave(client.backlog, call);
        start(session, call, now);
    }
}

bool Client::cancel(CallId id, Instant now) noexcept {
    const std::uint32_t index = calls_.find(id);
    if (index == kNone) {
        return false;
    }
    end_call(index, CallStatus::Cancelled, now);
    return true;
}

void Client::end_call(std::uint32_t index, CallStatus status, Instant now) noexcept {
    Session& session = sessions_[calls_.session_of(index)];
    const std::uint8_t slot_index = calls_.slot_of(index);
    if (slot_index != rpc::CallTable::kNoSlot) {
        complete(session, session.client->slots[slot_index], status, {}, now);
        return;
    }
    calls_.leave(session.client->backlog, index);
    calls_.finish(index, status, {}, now);
}

}  // namespace cairn::erpc
