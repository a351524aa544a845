// The client's side of a call: slots, credits, backlog, requests out, responses in.
#include <bit>
#include <utility>

#include "lib/base/copy.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/erpc/judge.hpp"

namespace cairn::erpc {

namespace {

constexpr std::uint8_t bit_of(std::uint32_t slot_index) noexcept {
    return static_cast<std::uint8_t>(1U << slot_index);
}

// Field by field: the whole struct was written piece by piece just now and would not be forwarded.
void keep(Call& kept, const Call& call) noexcept {
    kept.type = call.type;
    kept.request = call.request;
    kept.response = call.response;
    kept.completion = call.completion;
    kept.context = call.context;
    kept.tag = call.tag;
    kept.deadline = call.deadline;
    kept.ends_with_endpoint = call.ends_with_endpoint;
}

// Into the caller's buffer, where `response` then lies.
CallStatus take_response(rpc::MsgBuffer& into, std::span<const std::uint8_t>& response) noexcept {
    if (response.size() > into.capacity) {
        response = {};
        return CallStatus::ResponseTooLong;
    }
    if (response.data() != into.data) {  // else it was put together there
        copy_bytes(into.data, response.data(), response.size());
    }
    into.bytes = static_cast<std::uint32_t>(response.size());
    response = into.span();
    return CallStatus::Ok;
}

}  // namespace

Posted Endpoint::post(SessionId session_id, const Call& call, Instant now) noexcept {
    if (session_id.value >= sessions_.size()) {
        return {PostVerdict::NoSuchSession};
    }
    Session& session = sessions_[session_id.value];
    if (session.state != SessionState::Connected && session.state != SessionState::Connecting) {
        return {PostVerdict::NoSuchSession};
    }
    if (call.request.size() > config_.max_message_bytes) {
        return {PostVerdict::TooLong};
    }
    if (free_call_ == kNone) {
        return {PostVerdict::Full};
    }
    const std::uint32_t index = free_call_;
    PendingCall& pending = calls_[index];
    free_call_ = pending.next;
    keep(pending.call, call);
    pending.used = true;
    pending.session = session_id.value;
    pending.slot = 0xff;
    pending.next = kNone;
    ++calls_pending_;
    if (call.deadline < Instant::never()) {
        pending.deadline = deadlines_.insert(index, call.deadline);
    }
    const CallId id = (std::uint64_t{pending.generation} << 32U) | (index + 1U);
    if (session.state == SessionState::Connected && session.free_slots != 0 && session.backlog_head == kNone) {
        start(session, index, now);
    } else if (session.backlog_tail == kNone) {
        session.backlog_head = session.backlog_tail = index;
    } else {
        calls_[session.backlog_tail].next = index;
        pending.previous = session.backlog_tail;
        session.backlog_tail = index;
    }
    return {PostVerdict::Posted, id};
}

void Endpoint::start(Session& session, std::uint32_t call, Instant now) noexcept {
    if (session.client_slots == nullptr) [[unlikely]] {
        make_client_slots(session);
    }
    const auto slot_index = static_cast<std::uint32_t>(std::countr_zero(session.free_slots));
    session.free_slots = static_cast<std::uint8_t>(session.free_slots & ~bit_of(slot_index));
    ClientSlot& slot = (*session.client_slots)[slot_index];
    slot.call = call;
    slot.sends = 0;
    calls_[call].slot = static_cast<std::uint8_t>(slot_index);
    if (session.credits == 0 || (session.stalled_slots != 0 && session.others_go_first())) {
        stall(session, slot_index);
    } else if (calls_[call].call.request.size() > packet_bytes_) [[unlikely]] {
        send_first(session, slot_index, now);
    } else {
        slot.first_sent = now;
        --session.credits;
        send_request(session, slot_index, now);
        ++statistics_.requests_sent;
    }
}

// With a credit at hand: for the first time, or again if the slot gave its credit up.
void Endpoint::send_first(Session& session, std::uint32_t slot_index, Instant now) noexcept {
    ClientSlot& slot = (*session.client_slots)[slot_index];
    if (slot.sends != 0) [[unlikely]] {  // it yielded
        --session.credits;
        sent_slots_.remove(slot);
        ++statistics_.retransmits;
        send_request(session, slot_index, now);
        return;
    }
    slot.first_sent = now;
    if (calls_[slot.call].call.request.size() > packet_bytes_) [[unlikely]] {
        if (!begin_transfer(slot)) {
            stall(session, slot_index);
            return;
        }
        ++statistics_.requests_sent;
        kick(session, slot_index, now);
        return;
    }
    --session.credits;
    send_request(session, slot_index, now);
    ++statistics_.requests_sent;
}

// Sends or resends; without a buffer the retransmission timer tries again.
void Endpoint::send_request(Session& session, std::uint32_t slot_index, Instant now) noexcept {
    ClientSlot& slot = (*session.client_slots)[slot_index];
    const Call& call = calls_[slot.call].call;
    slot.last_sent = now;
    slot.sends = static_cast<std::uint8_t>(slot.sends < 255 ? slot.sends + 1 : 255);
    sent_slots_.add(slot);
    const port::PacketRef buffer = sender_.take();
    if (buffer.cookie == nullptr) {
        statistics_.count(Drop::NoBuffer);
        return;
    }
    Header header;
    header.request_type = call.type;
    header.message_bytes = static_cast<std::uint32_t>(call.request.size());
    header.session = session.remote;
    header.type = PacketType::Request;
    header.request_number = slot.request_number;
    send_packet(session, buffer, header, call.request, now);
}

void Endpoint::on_response(Session& session, const roce::UdDatagram& datagram, const Header& header,
                           Instant now) noexcept {
    const auto slot_index = static_cast<std::uint32_t>(header.request_number % kSlotsPerSession);
    if (session.client_slots == nullptr) [[unlikely]] {
        statistics_.count(Drop::StaleResponse);  // no call was ever made over it
        return;
    }
    ClientSlot& slot = (*session.client_slots)[slot_index];
    if (slot.transfer != nullptr || header.message_bytes > packet_bytes_) [[unlikely]] {
        on_response_packet(session, datagram, header, now);
        return;
    }
    const std::size_t payload_bytes = datagram.payload_bytes - sizeof(RawHeader);
    const ResponseVerdict verdict = judge_response(slot, header, payload_bytes);
    if (verdict != ResponseVerdict::Take) {
        statistics_.count(verdict == ResponseVerdict::Stale ? Drop::StaleResponse : Drop::BadSize);
        return;
    }
    session.last_heard = now;
    ++statistics_.responses_received;
    if (slot.sends == 1) [[likely]] {  // a resent request's answer may be to either copy (Karn)
        session.round_trip.sample(now - slot.last_sent);
        if (session.control != nullptr) {
            session.control->on_ack({now - slot.last_sent, payload_bytes, stalls_.spoils(slot.last_sent)}, now);
        }
    }
    complete(session, slot_index, CallStatus::Ok, {datagram.payload + sizeof(RawHeader), payload_bytes}, now);
    // The completion is done with the buffer; the next request can go out in it.
    sender_.give_back(*datagram.packet);
    datagram.packet->cookie = nullptr;
}

// Frees the slot and its credit first, so that the completion may post or disconnect.
void Endpoint::complete(Session& session, std::uint32_t slot_index, CallStatus status,
                        std::span<const std::uint8_t> response, Instant now) noexcept {
    ClientSlot& slot = (*session.client_slots)[slot_index];
    if (const auto& request = calls_[slot.call].call.request; request.size() >= kTailBytes) [[unlikely]] {
        // A hostile server answers what it can not have seen: the request's memory is its owner's again, and may wait.
        if (slot.last_sent == now || slot.transfer != nullptr || sender_.holds_back()) {
            sender_.copy_tails(request);
        }
    }
    if (slot.transfer != nullptr || slot.sends != 1 || status != CallStatus::Ok) [[unlikely]] {
        complete_slowly(session, slot_index, status, response, now);
        return;
    }
    sent_slots_.remove(slot);
    ++session.credits;
    const Duration latency = now - slot.first_sent;
    finish_call(free_slot(session, slot_index), status, response, latency);
    refill_slots(session, now);
}

// Failed, sent more than once, or of several packets.
void Endpoint::complete_slowly(Session& session, std::uint32_t slot_index, CallStatus status,
                               std::span<const std::uint8_t> response, Instant now) noexcept {
    ClientSlot& slot = (*session.client_slots)[slot_index];
    const Duration latency = slot.sends == 0 ? Duration{} : now - slot.first_sent;
    const bool copies = slot.sends > 1 || (slot.transfer != nullptr && slot.transfer->ambiguous_below != 0);
    if (copies || status != CallStatus::Ok) {
        messages_.settle(calls_[slot.call].call.request);  // a copy of the request may still wait for the device
    }
    if (slot.sends != 0) {
        sent_slots_.remove(slot);
    }
    rpc::MsgBuffer owned;
    if (slot.transfer != nullptr) {
        owned = end_transfer(session, slot);
    } else {
        session.credits = static_cast<std::uint16_t>(session.credits + session.credits_held(slot));
    }
    finish_call(free_slot(session, slot_index), status, response, latency);
    pool_.release(owned);
    refill_slots(session, now);
}

// The call it held.
std::uint32_t Endpoint::free_slot(Session& session, std::uint32_t slot_index) noexcept {
    ClientSlot& slot = (*session.client_slots)[slot_index];
    CAIRN_ASSERT(session.credits <= session.credits_max);
    if (session.stalled_slots != 0) [[unlikely]] {
        session.end_stall(slot_index);
    }
    session.free_slots = static_cast<std::uint8_t>(session.free_slots | bit_of(slot_index));
    if (slot.sends != 0) {  // else no server can have come by the number
        slot.request_number = (slot.request_number + kSlotsPerSession) & kRequestNumberMask;
    }
    slot.sends = 0;
    return std::exchange(slot.call, kNone);
}

void Endpoint::finish_call(std::uint32_t index, CallStatus status, std::span<const std::uint8_t> response,
                           Duration latency) noexcept {
    PendingCall& pending = calls_[index];
    const Call& call = pending.call;
    --calls_pending_;
    if (pending.deadline) {
        deadlines_.cancel(std::exchange(pending.deadline, {}));
    }
    if (call.response != nullptr && status == CallStatus::Ok) {
        status = take_response(*call.response, response);
    }
    if (status != CallStatus::Ok) {
        ++statistics_.calls_failed;
    } else if (telemetry::Histogram* kept = handlers_[call.type].latency_ns.get(); kept != nullptr) {
        kept->record(static_cast<std::uint64_t>(latency.ns));
    }
    const Completion completion = call.completion;
    void* const context = call.context;
    const CallResult result{status, response, latency, call.tag};
    // From here on the completion may post, which takes this very entry.
    pending.used = false;
    ++pending.generation;
    pending.next = free_call_;
    free_call_ = index;
    if (completion != nullptr) {
        completion(context, result);
    }
}

void Endpoint::leave_backlog(Session& session, PendingCall& call) noexcept {
    (call.previous == kNone ? session.backlog_head : calls_[call.previous].next) = call.next;
    (call.next == kNone ? session.backlog_tail : calls_[call.next].previous) = call.previous;
    call.next = call.previous = kNone;
}

void Endpoint::refill_slots(Session& session, Instant now) noexcept {
    while (session.state == SessionState::Connected && session.backlog_head != kNone && session.free_slots != 0) {
        const std::uint32_t call = session.backlog_head;
        leave_backlog(session, calls_[call]);
        start(session, call, now);
    }
}

bool Endpoint::cancel(CallId id, Instant now) noexcept {
    const std::uint64_t index = (id & 0xffffffffU) - 1U;
    if (id == 0 || index >= calls_.size()) {
        return false;
    }
    PendingCall& pending = calls_[index];
    if (!pending.used || pending.generation != static_cast<std::uint32_t>(id >> 32U)) {
        return false;
    }
    end_call(static_cast<std::uint32_t>(index), CallStatus::Cancelled, now);
    return true;
}

void Endpoint::end_call(std::uint32_t index, CallStatus status, Instant now) noexcept {
    PendingCall& pending = calls_[index];
    Session& session = sessions_[pending.session];
    if (pending.slot != 0xff) {
        complete(session, pending.slot, status, {}, now);
        return;
    }
    leave_backlog(session, pending);
    finish_call(index, status, {}, Duration{});
}

}  // namespace cairn::erpc
