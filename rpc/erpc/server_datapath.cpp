// The server's side of a call: at most one execution per request number, answers kept for resending.
#include <algorithm>

#include "rpc/erpc/endpoint.hpp"
#include "rpc/erpc/judge.hpp"

namespace cairn::erpc {

void Endpoint::on_request(Session& session, const roce::UdDatagram& datagram, const Header& header,
                          Instant now) noexcept {
    if (session.server_slots == nullptr) [[unlikely]] {
        make_server_slots(session);
    }
    if (header.message_bytes > packet_bytes_) [[unlikely]] {
        on_request_packet(session, datagram, header, now);
        return;
    }
    ServerSlot& slot = (*session.server_slots)[header.request_number % kSlotsPerSession];
    const std::size_t payload_bytes = datagram.payload_bytes - sizeof(RawHeader);
    switch (judge_request(slot.state, slot.request_number, header, payload_bytes)) {
        case RequestVerdict::Execute:
            execute(session, slot, datagram, header, now);
            return;
        case RequestVerdict::Resend:
            ++statistics_.responses_resent;
            slot.resent = true;
            answer(session, slot, {0, true}, datagram.packet, now);
            return;
        case RequestVerdict::Forgotten:
            refuse(session, slot.request_number, RefuseReason::AnswerLost, now);
            return;
        case RequestVerdict::Busy:
            statistics_.count(Drop::DuplicateBusy);
            return;
        case RequestVerdict::Stale:
            statistics_.count(Drop::StaleRequest);
            return;
        case RequestVerdict::Future:
            statistics_.count(Drop::FutureRequest);
            refuse(session, header.request_number, RefuseReason::Ahead, now);
            return;
        case RequestVerdict::WrongSize:
            statistics_.count(Drop::BadSize);
            return;
    }
}

// A new request of the slot. Without means to execute it, or room for its answer, it is put off: the client asks again.
void Endpoint::execute(Session& session, ServerSlot& slot, const roce::UdDatagram& datagram, const Header& header,
                       Instant now) noexcept {
    const std::span<const std::uint8_t> payload{datagram.payload + sizeof(RawHeader),
                                                datagram.payload_bytes - sizeof(RawHeader)};
    const TypeEntry& entry = handlers_[header.request_type];
    BackgroundJob* job = nullptr;
    if (entry.function == nullptr) [[unlikely]] {
        if (!entry.registered()) {
            statistics_.count(Drop::NoHandler);
            refuse(session, header.request_number, RefuseReason::NoHandler, now);
            return;
        }
        job = prepare_job(header.request_type, slot, payload);
        if (job == nullptr) {
            return;
        }
    } else if (slot.response.capacity < entry.response_bytes_max || messages_.wanted(now)) [[unlikely]] {
        if (!messages_.has_room(slot, entry.response_bytes_max, now)) {
            statistics_.count(Drop::NoBuffer);
            return;
        }
    }
    session.last_heard = now;
    messages_.retire_answer(slot, header.request_number);
    if (slot.state == ServerSlotState::Receiving) [[unlikely]] {
        messages_.end_request(slot);  // its client gave it up
    }
    slot.request_number = header.request_number;
    slot.request_type = header.request_type;
    slot.request_packets = 1;
    if (job != nullptr) [[unlikely]] {
        submit_job(session, slot, *job);
        return;
    }
    run_handler(session, slot, datagram.packet, payload, now);
}

void Endpoint::run_handler(Session& session, ServerSlot& slot, port::PacketRef* packet,
                           std::span<const std::uint8_t> payload, Instant now) noexcept {
    const TypeEntry& handler = handlers_[slot.request_type];
    slot.state = ServerSlotState::Executing;
    slot.newest_rfr = 0;
    ++statistics_.requests_handled;
    reply_buffer_ = packet;
    reply_slot_ = &slot;
    reply_session_ = &session;
    handler.function(handler.context, {*this, {session.self, slot.request_number}, slot.request_type, payload, now});
    reply_buffer_ = nullptr;
    reply_slot_ = nullptr;
}

ServerSlot* Endpoint::executing_slot(const RequestHandle& handle) noexcept {
    if (reply_slot_ != nullptr && reply_session_->self == handle.session &&
        reply_slot_->request_number == handle.request_number && reply_slot_->state == ServerSlotState::Executing)
        [[likely]] {
        return reply_slot_;  // of the handler that runs
    }
    if (handle.session.value >= sessions_.size() || sessions_[handle.session.value].state != SessionState::Serving ||
        sessions_[handle.session.value].server_slots == nullptr) {
        return nullptr;
    }
    ServerSlot& slot = (*sessions_[handle.session.value].server_slots)[handle.request_number % kSlotsPerSession];
    return slot.state == ServerSlotState::Executing && slot.request_number == handle.request_number ? &slot : nullptr;
}

std::span<std::uint8_t> Endpoint::reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept {
    ServerSlot* slot = executing_slot(handle);
    if (slot == nullptr || bytes > config_.max_message_bytes) {
        return {};
    }
    if ((slot->response.capacity < bytes || !slot->response.valid()) && !messages_.make_room(*slot, bytes)) {
        statistics_.count(Drop::NoBuffer);
        return {};
    }
    slot->response.bytes = bytes;
    return slot->response.span();
}

bool Endpoint::respond(const RequestHandle& handle, Instant now) noexcept {
    ServerSlot* slot = executing_slot(handle);
    if (slot == nullptr) {
        return false;
    }
    Session& session = sessions_[handle.session.value];
    slot->state = ServerSlotState::Answered;
    messages_.fit_answer(*slot, now);
    port::PacketRef* const request = reply_slot_ == slot ? reply_buffer_ : nullptr;
    answer(session, *slot, {0, false}, request, now);
    return true;
}

// In the request's own buffer if that is still here and large enough: it is still warm.
void Endpoint::answer(Session& session, ServerSlot& slot, AnswerPacket which, port::PacketRef* request,
                      Instant now) noexcept {
    messages_.note_sent(slot, which.again, now);
    const std::uint32_t bytes = bytes_of_packet(slot.response.bytes, packet_bytes_, which.index);
    if (request != nullptr && request->cookie != nullptr && room_for(bytes) <= request->room) [[likely]] {
        send_response(session, slot, *request, which.index, now);
        request->cookie = nullptr;
        return;
    }
    const port::PacketRef buffer = sender_.take();
    if (buffer.cookie == nullptr) {
        statistics_.count(Drop::NoBuffer);  // the client asks again
        return;
    }
    send_response(session, slot, buffer, which.index, now);
}

void Endpoint::send_response(Session& session, const ServerSlot& slot, const port::PacketRef& buffer,
                             std::uint32_t index, Instant now) noexcept {
    Header header;
    header.request_type = slot.request_type;
    header.message_bytes = slot.response.bytes;
    header.session = session.remote;
    header.type = PacketType::Response;
    header.packet_number = static_cast<std::uint16_t>((slot.request_packets - 1 + index) & kPacketNumberMask);
    header.request_number = slot.request_number;
    std::span<const std::uint8_t> payload = slot.response.span();
    if (payload.size() > packet_bytes_) [[unlikely]] {
        payload = payload.subspan(std::size_t{index} * packet_bytes_,
                                  bytes_of_packet(slot.response.bytes, packet_bytes_, index));
        header.request_type = index == 0 ? slot.request_type : held_code(now - sender_.port().empty_at());
    }
    send_packet(session, buffer, header, payload, now);
}

}  // namespace cairn::erpc
