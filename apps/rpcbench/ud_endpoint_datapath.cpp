#include <cstring>
#include <utility>

#include "apps/rpcbench/ud_endpoint.hpp"
#include "lib/base/copy.hpp"

namespace cairn::rpcbench {

namespace {

constexpr std::uint32_t kMostUnderWay = UdRoad::kSlots / 2;

}  // namespace

bool UdEndpoint::on_turn(Instant now) noexcept {
    if (now >= next_look_) {
        look(now);
    }
    // Each message has at most one answer.
    waits_ = road_->room() < UdRoad::kBurst;
    bool worked = false;
    if (!waits_) {
        const std::span<const UdArrival> arrivals = road_->receive(statistics_.breaches);
        for (const UdArrival& arrival : arrivals) {
            on_message(arrival, now);
        }
        road_->release_received();
        worked = !arrivals.empty();
    }
    send_backlog();
    return worked;
}

void UdEndpoint::on_message(const UdArrival& arrival, Instant now) noexcept {
    if (arrival.head.kind == UdKind::Request) [[likely]] {
        on_request(arrival, now);
    } else if (arrival.head.kind == UdKind::Response || arrival.head.kind == UdKind::Refusal) [[likely]] {
        on_answer(arrival, now);
    } else {
        sessions_.on_control(arrival, now);
    }
}

void UdEndpoint::on_request(const UdArrival& arrival, Instant now) noexcept {
    UdSession* const session = sessions_.find(arrival, now);
    if (session == nullptr) {
        return;
    }
    const Entry& handler = handlers()[arrival.head.type];
    const rpc::RequestHandle handle{SessionId{arrival.head.session.get()}, arrival.head.call.get()};
    handled_ = handle;
    if (handler.function != nullptr) [[likely]] {
        ++statistics_.requests_handled;
        handler.function(handler.context, {*this, *this, handle, arrival.head.type, arrival.payload, now});
    }
    if (std::exchange(handled_, std::nullopt)) [[unlikely]] {  // it has no answer
        road_->send(session->way(), session->head(UdKind::Refusal, handle.request_number), 0);
        ++statistics_.datagrams_sent;
    }
}

// Returns zeroed room: the buffer has been that of datagrams to other peers.
std::span<std::uint8_t> UdEndpoint::reserve(const rpc::RequestHandle& handle, std::uint32_t bytes) noexcept {
    const std::span<std::uint8_t> room = room_for(handle, bytes);
    clear_bytes(room.data(), room.size());
    return room;
}

std::span<std::uint8_t> UdEndpoint::room_for(const rpc::RequestHandle& handle, std::size_t bytes) noexcept {
    if (!is_handled(handle) || bytes > road_->message_bytes()) {
        statistics_.breaches.count(UdBreach::AnswerTooLong);
        return {};
    }
    reserved_bytes_ = static_cast<std::uint32_t>(bytes);
    return {road_->payload(), bytes};
}

bool UdEndpoint::respond(const rpc::RequestHandle& handle, Instant) noexcept {
    if (!is_handled(handle)) [[unlikely]] {
        return false;
    }
    const UdSession& session = *sessions_.open_session(handle.session.number());
    road_->send(session.way(), session.head(UdKind::Response, handle.request_number), reserved_bytes_);
    ++statistics_.datagrams_sent;
    handled_.reset();
    return true;
}

bool UdEndpoint::answer(const rpc::RequestHandle& handle, std::span<const std::uint8_t> message, Instant now) noexcept {
    const std::span<std::uint8_t> place = room_for(handle, message.size());
    if (place.data() == nullptr) [[unlikely]] {
        return false;
    }
    if (!message.empty()) {
        std::memcpy(place.data(), message.data(), message.size());
    }
    return respond(handle, now);
}

void UdEndpoint::on_answer(const UdArrival& arrival, Instant now) noexcept {
    const UdSession* const session = sessions_.find(arrival, now);
    if (session == nullptr) {
        return;
    }
    const std::uint32_t index = calls_.find(arrival.head.call.get());
    const bool is_under_way = index != rpc::kNone && calls_.slot_of(index) != rpc::CallTable::kNoSlot &&
                              calls_.session_of(index).number() == arrival.head.session.get();
    if (!is_under_way) [[unlikely]] {
        statistics_.breaches.count(UdBreach::UnknownCall);
        return;
    }
    --under_way_;
    posted_[index] = Instant::never();
    const bool is_answer = arrival.head.kind == UdKind::Response;
    calls_.finish(index, is_answer ? rpc::CallStatus::Ok : rpc::CallStatus::NoHandler, arrival.payload, now);
}

rpc::Posted UdEndpoint::post(SessionId session, const rpc::Call& call, Instant now) noexcept {
    if (call.request.size() > road_->message_bytes()) [[unlikely]] {
        return {rpc::PostVerdict::TooLong, 0};
    }
    if (sessions_.open_session(session.number()) == nullptr) [[unlikely]] {
        return {rpc::PostVerdict::NoSuchSession, 0};
    }
    if (calls_.is_full()) [[unlikely]] {
        return {rpc::PostVerdict::Full, 0};
    }
    const std::uint32_t index = calls_.add(call, session, now);
    posted_[index] = now;
    calls_.join(backlog_, index);
    return {rpc::PostVerdict::Posted, calls_.id_of(index)};
}

// Sends calls of the backlog. It leaves the room that answers need, and sends no more than a server has receive
// requests for, as FaSST does.
void UdEndpoint::send_backlog() noexcept {
    if (backlog_.empty()) {
        return;
    }
    for (std::uint32_t room = road_->room(); room > UdRoad::kBurst && under_way_ < kMostUnderWay && !backlog_.empty();
         --room) {
        const std::uint32_t index = backlog_.oldest;
        const rpc::Call& call = calls_[index];
        calls_.leave(backlog_, index);
        calls_.put_into_slot(index, 0);
        ++under_way_;
        UdSession* const session = sessions_.open_session(calls_.session_of(index).number());
        if (session == nullptr) {
            continue;  // the next look ends the call
        }
        if (!call.request.empty()) {
            std::memcpy(road_->payload(), call.request.data(), call.request.size());
        }
        RawUdMessage head = session->head(UdKind::Request, calls_.id_of(index));
        head.type = call.type;
        road_->send(session->way(), head, static_cast<std::uint32_t>(call.request.size()));
        ++statistics_.datagrams_sent;
    }
}

}  // namespace cairn::rpcbench
