// Takes requests of one packet, and sends responses.
#include "rpc/erpc/server.hpp"

#include <algorithm>
#include <utility>

#include "lib/base/copy.hpp"
#include "rpc/erpc/judge.hpp"

namespace cairn::erpc {

Server::Server(Endpoint& endpoint, const HandlerTable& handlers, const EndpointConfig& config, PacketWriter& writer,
               SessionTable& sessions, ServerMessages& messages, rpc::MsgPool& pool, const OwnPauses& pauses,
               Statistics& statistics)
    : endpoint_(endpoint),
      handlers_(handlers),
      max_message_bytes_(config.max_message_bytes),
      writer_(writer),
      sessions_(sessions),
      messages_(messages),
      pool_(pool),
      pauses_(pauses),
      statistics_(statistics),
      jobs_(*this, config.background),
      transfers_(*this, config.transfers_max) {}

Server::~Server() {
    for (std::size_t place = 0; place < sessions_.open_count(); ++place) {
        if (ServerSlots* const slots = sessions_.open_at(place).server.get(); slots != nullptr) {
            messages_.release(*slots);
        }
    }
}

void Server::end_session(Session& session) noexcept {
    if (session.server != nullptr) {
        messages_.release(*session.server);
    }
    if (reply_session_ == &session) {
        reply_slot_ = nullptr;
    }
}

void Server::on_request(const Arrival& arrival) noexcept {
    Session& session = arrival.session;
    if (session.server == nullptr) [[unlikely]] {
        session.server = make_server_slots(session.first_request);
    }
    if (arrival.header.message_bytes > writer_.packet_bytes()) [[unlikely]] {
        transfers_.on_request_packet(arrival);
        return;
    }
    ServerSlot& slot = (*session.server)[arrival.slot_index()];
    switch (judge_request(slot.state, slot.request_number, arrival.header, arrival.payload_bytes())) {
        case RequestVerdict::Execute:
            execute(arrival, slot);
            return;
        case RequestVerdict::Resend:
            ++statistics_.responses_resent;
            slot.resent = true;
            send_answer(session, slot, {0, true}, &arrival.packet(), arrival.now);
            return;
        case RequestVerdict::Forgotten:
            writer_.refuse(session, slot.request_number, why_unanswered(slot), arrival.now);
            return;
        case RequestVerdict::Busy:
            statistics_.count(Drop::DuplicateBusy);
            return;
        case RequestVerdict::Stale:
            statistics_.count(Drop::StaleRequest);
            return;
        case RequestVerdict::Future:
            statistics_.count(Drop::FutureRequest);
            writer_.refuse(session, arrival.header.request_number, RefuseReason::Ahead, arrival.now);
            return;
        case RequestVerdict::WrongSize:
            statistics_.count(Drop::BadSize);
            return;
    }
}

// Executes a new request of the slot. Without a job for it or room for its answer the request is put off, and the
// client asks again.
void Server::execute(const Arrival& arrival, ServerSlot& slot) noexcept {
    const Header& header = arrival.header;
    const auto& entry = handlers_[header.request_type];
    rpc::BackgroundJob* job = nullptr;
    if (entry.function == nullptr) [[unlikely]] {
        if (!entry.registered()) {
            statistics_.count(Drop::NoHandler);
            writer_.refuse(arrival.session, header.request_number, RefuseReason::NoHandler, arrival.now);
            return;
        }
        job = jobs_.prepare(header.request_type, slot, arrival.payload());
        if (job == nullptr) {
            return;
        }
    } else if (slot.response.capacity < entry.response_bytes_max || messages_.wanted(arrival.now)) [[unlikely]] {
        if (!messages_.has_room(slot, entry.response_bytes_max, arrival.now)) {
            statistics_.count(Drop::NoBuffer);
            return;
        }
    }
    arrival.session.last_heard = arrival.now;
    messages_.retire_answer(slot, header.request_number);
    if (slot.state == ServerSlotState::Receiving) [[unlikely]] {
        messages_.end_request(slot);  // the client has given up the half-received request
    }
    slot.request_number = header.request_number;
    slot.request_type = header.request_type;
    slot.request_packets = 1;
    if (job != nullptr) [[unlikely]] {
        jobs_.submit(arrival.session, slot, *job);
        return;
    }
    run_handler(arrival.session, slot, &arrival.packet(), arrival.payload(), arrival.now);
    statistics_.requests_handled += 1 - take_declined();
}

void Server::keep(const RequestHandle& request) noexcept {
    if (is_running(request)) {
        reply_slot_ = nullptr;  // the request is an earlier one now
    }
}

bool Server::drop(const RequestHandle& request) noexcept {
    return refuse(request, pauses_.last_scan());
}

// Returns the slot of a request that has no answer yet, or nullptr if the handle is stale.
inline ServerSlot* Server::executing_slot(const RequestHandle& handle) noexcept {
    return is_running(handle) ? reply_slot_ : slot_of_earlier(handle);
}

// Returns the slot of a request whose handler has returned without an answer, or nullptr.
[[gnu::noinline]] ServerSlot* Server::slot_of_earlier(const RequestHandle& handle) noexcept {
    if (!sessions_.knows(handle.session)) {
        return nullptr;
    }
    Session& session = sessions_[handle.session];
    if (session.state != SessionState::Serving || session.server == nullptr) {
        return nullptr;
    }
    ServerSlot& slot = (*session.server)[handle.request_number % kSlotsPerSession];
    return slot.state == ServerSlotState::Executing && slot.request_number == handle.request_number ? &slot : nullptr;
}

// The likely case is a handler that runs and a slot that has the memory; it takes few instructions. The function is not
// inlined, or handlers would save registers for the unlikely case.
[[gnu::noinline]] std::span<std::uint8_t> Server::reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept {
    if (!is_running(handle) || !has_room_for(bytes)) [[unlikely]] {
        return reserve_slowly(handle, bytes);
    }
    return reply_slot_->response.resize(bytes);
}

[[gnu::noinline]] std::span<std::uint8_t> Server::reserve_slowly(const RequestHandle& handle,
                                                                 std::uint32_t bytes) noexcept {
    ServerSlot* const slot = slot_with_room(handle, bytes);
    return slot != nullptr ? slot->response.resize(bytes) : std::span<std::uint8_t>{};
}

// Returns the slot of a request that has no answer yet, with memory for one of `bytes`; or nullptr.
ServerSlot* Server::slot_with_room(const RequestHandle& handle, std::uint32_t bytes) noexcept {
    ServerSlot* const slot = executing_slot(handle);
    if (slot == nullptr) {
        return nullptr;
    }
    if (bytes > max_message_bytes_) {
        slot->response.bytes = kNoRoom;
        return nullptr;
    }
    if ((slot->response.capacity < bytes || !slot->response.valid()) && !messages_.make_room(*slot, bytes)) {
        statistics_.count(Drop::NoBuffer);
        slot->response.bytes = kNoRoom;
        return nullptr;
    }
    return slot;
}

bool Server::respond(const RequestHandle& handle, Instant now) noexcept {
    if (!is_running(handle)) [[unlikely]] {
        return respond_late(handle, now);
    }
    respond_running(*reply_session_, *reply_slot_, reply_slot_->response.span(), now);
    return true;
}

bool Server::answer(const RequestHandle& handle, std::span<const std::uint8_t> message, Instant now) noexcept {
    if (!is_running(handle) || !has_room_for(message.size())) [[unlikely]] {
        return answer_slowly(handle, message, now);
    }
    Session& session = *reply_session_;
    ServerSlot& slot = *reply_slot_;
    std::uint8_t* const kept = slot.response.data;
    slot.response.bytes = static_cast<std::uint32_t>(message.size());
    copy_bytes(kept, message.data(), message.size());
    respond_running(session, slot, {kept, message.size()}, now);
    return true;
}

[[gnu::noinline]] bool Server::answer_slowly(const RequestHandle& handle, std::span<const std::uint8_t> message,
                                             Instant now) noexcept {
    if (message.size() > max_message_bytes_) {
        return false;
    }
    const bool has_bytes = !message.empty();  // if not, it needs no memory
    ServerSlot* const slot =
        has_bytes ? slot_with_room(handle, static_cast<std::uint32_t>(message.size())) : executing_slot(handle);
    if (slot == nullptr) {
        return false;
    }
    copy_bytes(slot->response.data, message.data(), message.size());
    slot->response.bytes = static_cast<std::uint32_t>(message.size());
    return respond(handle, now);
}

// Sends `message`, which the slot keeps, as the answer to the running handler's request. A small message goes in the
// request's own buffer, which is still in the cache.
[[gnu::always_inline]] inline void Server::respond_running(Session& session, ServerSlot& slot,
                                                           std::span<const std::uint8_t> message,
                                                           Instant now) noexcept {
    port::PacketRef* const request = reply_buffer_;
    reply_slot_ = nullptr;
    if (message.size() > writer_.small_bytes() || request == nullptr || request->cookie == nullptr ||
        room_for(message.size()) > request->room || slot.request_packets != 1 || !messages_.fits_anyway(now))
        [[unlikely]] {
        send_first_time(session, slot, request, now);
        return;
    }
    slot.state = ServerSlotState::Answered;
    messages_.note_sent(slot, false, now);
    const port::PacketRef buffer = *request;
    request->cookie = nullptr;
    writer_.send_small(session, buffer, session.first_word.with(slot.request_type, message.size()),
                       SecondWord::of(PacketType::Response, slot.request_number), message, now);
}

[[gnu::noinline]] bool Server::respond_late(const RequestHandle& handle, Instant now) noexcept {
    ServerSlot* const slot = slot_of_earlier(handle);
    if (slot == nullptr) {
        return false;
    }
    send_first_time(sessions_[handle.session], *slot, nullptr, now);
    return true;
}

// Sends an answer for the first time. If reserve() found no room, there is no answer. Its length then exceeds all
// others, so that it comes here.
[[gnu::noinline]] void Server::send_first_time(Session& session, ServerSlot& slot, port::PacketRef* request,
                                               Instant now) noexcept {
    slot.state = ServerSlotState::Answered;
    if (slot.response.bytes == kNoRoom) [[unlikely]] {
        messages_.forget_answer(slot);
        writer_.refuse(session, slot.request_number, RefuseReason::AnswerLost, now);
        return;
    }
    messages_.fit_answer(slot, now);
    send_answer(session, slot, {0, false}, request, now);
}

bool Server::refuse(const RequestHandle& handle, Instant now) noexcept {
    ServerSlot* const slot = executing_slot(handle);
    if (slot == nullptr) {
        return false;
    }
    if (slot == reply_slot_) {
        reply_slot_ = nullptr;
    }
    slot->response.bytes = kNoRoom;
    send_first_time(sessions_[handle.session], *slot, nullptr, now);
    return true;
}

bool Server::decline(const RequestHandle& request) noexcept {
    ServerSlot* const slot = executing_slot(request);
    if (slot == nullptr) {
        return false;
    }
    if (slot == reply_slot_) {
        reply_slot_ = nullptr;
        ++declined_;
    }
    ++statistics_.requests_declined;
    messages_.forget_answer(*slot);
    slot->state = ServerSlotState::Declined;
    writer_.refuse(sessions_[request.session], request.request_number, why_unanswered(*slot), pauses_.last_scan());
    return true;
}

// Sends in the request's own buffer if that is still here and large enough: it is still in the cache.
[[gnu::noinline]] void Server::send_answer(Session& session, ServerSlot& slot, AnswerPacket which,
                                           port::PacketRef* request, Instant now) noexcept {
    messages_.note_sent(slot, which.again, now);
    const std::uint32_t bytes = bytes_of_packet(slot.response.bytes, writer_.packet_bytes(), which.index);
    if (request != nullptr && request->cookie != nullptr && room_for(bytes) <= request->room) [[likely]] {
        send_response(session, slot, *request, which.index, now);
        request->cookie = nullptr;
        return;
    }
    const port::PacketRef buffer = writer_.take();
    if (buffer.cookie != nullptr) {  // if there is no buffer, the client asks again
        send_response(session, slot, buffer, which.index, now);
    }
}

void Server::send_response(Session& session, const ServerSlot& slot, const port::PacketRef& buffer, std::uint32_t index,
                           Instant now) noexcept {
    Header header;
    header.request_type = slot.request_type;
    header.message_bytes = slot.response.bytes;
    header.session = session.remote();
    header.type = PacketType::Response;
    header.packet_number = static_cast<std::uint16_t>((slot.request_packets - 1 + index) & kPacketNumberMask);
    header.request_number = slot.request_number;
    std::span<const std::uint8_t> payload = slot.response.span();
    if (const std::uint32_t packet_bytes = writer_.packet_bytes(); payload.size() > packet_bytes) [[unlikely]] {
        payload = payload.subspan(std::size_t{index} * packet_bytes,
                                  bytes_of_packet(slot.response.bytes, packet_bytes, index));
        header.request_type = index == 0 ? slot.request_type : HeldTime::of(writer_.held(now)).on_wire();
    }
    writer_.send(session, buffer, header, payload, now);
}

}  // namespace cairn::erpc
