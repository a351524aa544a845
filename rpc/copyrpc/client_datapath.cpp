// Calls posted, answered, and ended otherwise.
#include "rpc/copyrpc/client.hpp"

#include <algorithm>
#include <array>

namespace cairn::copyrpc {

namespace {

constexpr std::uint32_t kTicketBits = 24;  // of a call's number on the wire; 7 more are the ticket's generation
constexpr std::uint8_t kGenerations = 0x7f;
constexpr std::uint32_t kTicketMask = (1U << kTicketBits) - 1;

bool has_deadline(const Call& call) noexcept {
    return call.deadline < Instant::never();
}

// What the server is told of a deadline: there is no common clock. A call whose time is over has a last microsecond.
std::uint32_t left_us(const Call& call, Instant now) noexcept {
    const std::int64_t left = (call.deadline - now).ns / 1000;
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 1, 0xffffffff));
}

constexpr std::array<CallStatus, static_cast<std::size_t>(Outcome::Count)> kStatusOf{
    CallStatus::Ok, CallStatus::NoHandler, CallStatus::AnswerLost, CallStatus::DeadlinePassed,
    CallStatus::ResponseTooLong};

}  // namespace

Client::Client(const EndpointConfig& config, Sessions& sessions, Statistics& statistics)
    : config_(config),
      sessions_(sessions),
      statistics_(statistics),
      calls_(config.calls_max, statistics.calls_failed),
      tickets_(config.calls_max),
      ticket_of_(config.calls_max, kNone) {
    for (std::uint32_t i = config.calls_max; i-- > 0;) {
        tickets_[i].next = free_;
        free_ = i;
    }
}

std::uint32_t Client::answer_bytes(const Call& call) const noexcept {
    return call.response != nullptr ? call.response->capacity : config_.answer_bytes;
}

// The request is at most kMostBytes long.
Wanted Client::size_of(const Call& call) const noexcept {
    return {static_cast<std::uint32_t>(call.request.size()), answer_bytes(call), has_deadline(call)};
}

Room Client::judge(const Session& session, const Wanted& size) noexcept {
    return session.rings->judge_request(size.request_bytes, size.has_deadline, size.answer_bytes);
}

// mutants: copyrpc-client-is-too-long
bool Client::is_too_long(const Session& session, const Call& call) const noexcept {
    return call.request.size() > RingShape::kMostBytes || answer_bytes(call) > RingShape::kMostBytes ||
           (session.is_open() && judge(session, size_of(call)) == Room::TooLong);
}

Posted Client::post(Session& session, const Call& call, Instant now) noexcept {
    if (calls_.is_full()) {
        return {PostVerdict::Full, 0};
    }
    if (is_too_long(session, call)) {
        return {PostVerdict::TooLong, 0};
    }
    const std::uint32_t index = calls_.add(call, session.id);
    calls_.join(session.backlog, index);
    const CallId id = calls_.id_of(index);
    if (session.is_open()) {
        serve_backlog(session, now);
    }
    return {PostVerdict::Posted, id};
}

// Nobody overtakes the calls that wait.
// mutants: copyrpc-client-try-post
Tried Client::try_post(Session& session, const Call& call, Instant now) noexcept {
    if (!session.is_open()) {
        return {Attempt::NotOpen, 0};
    }
    if (is_too_long(session, call)) {
        return {Attempt::TooLong, 0};
    }
    if (calls_.is_full() || free_ == kNone) {
        return {Attempt::Full, 0};
    }
    const Wanted size = size_of(call);
    const Room room = session.backlog.empty() ? judge(session, size) : Room::RingFull;
    if (room != Room::Fits) {
        session.wanted = size;
        return {room == Room::RingFull ? Attempt::RingFull : Attempt::InsufficientCredit, 0};
    }
    const std::uint32_t index = calls_.add(call, session.id);
    const CallId id = calls_.id_of(index);
    put(session, index, now);
    return {Attempt::Posted, id};
}

// mutants: copyrpc-client-tell-room
void Client::tell_room(Session& session) noexcept {
    if (session.wanted && session.backlog.empty() && judge(session, *session.wanted) == Room::Fits) {
        session.wanted.reset();
        if (room_callback_ != nullptr) {
            room_callback_(room_context_, session.id);
        }
    }
}

// A call that is too long was posted before the peer's ring was known.
// mutants: copyrpc-client-serve-backlog
void Client::serve_backlog(Session& session, Instant now) noexcept {
    while (!session.backlog.empty() && free_ != kNone) {
        const std::uint32_t call = session.backlog.oldest;
        const Room room = judge(session, size_of(calls_[call]));
        if (room != Room::Fits && room != Room::TooLong) {
            return;
        }
        calls_.leave(session.backlog, call);
        if (room == Room::TooLong) {
            calls_.finish(call, CallStatus::RequestTooLong, {}, {});
            if (!session.is_open()) {
                return;
            }
        } else {
            put(session, call, now);
        }
    }
}

// mutants: copyrpc-client-put
void Client::put(Session& session, std::uint32_t call, Instant now) noexcept {
    const std::uint32_t index = free_;
    Ticket& ticket = tickets_[index];
    free_ = ticket.next;
    const Call& posted = calls_[call];
    const std::uint32_t room = answer_bytes(posted);
    ticket.call = call;
    ticket.charge = static_cast<std::uint16_t>(Message::charge_for(room));
    ticket.session = session.id.value;
    ticket.posted = now;
    ticket_of_[call] = index;
    Message request;
    request.call = index | std::uint32_t{ticket.generation} << kTicketBits;
    request.type = posted.type;
    request.payload = posted.request;
    if (has_deadline(posted)) [[unlikely]] {
        request.extension = Extension{0, left_us(posted, now)};
    }
    session.rings->put_request(request, room);
    sessions_.list(session);
    ++statistics_.requests_sent;
}

// Calls of any session may have waited for a ticket.
// mutants: copyrpc-client-free
void Client::free(std::uint32_t index) noexcept {
    if (free_ == kNone) [[unlikely]] {
        sessions_.for_each([this](Session& session) {
            if (session.is_open() && !session.backlog.empty()) {
                sessions_.list(session);
            }
        });
    }
    Ticket& ticket = tickets_[index];
    ticket.call = kNone;
    ticket.charge = 0;
    ticket.generation = (ticket.generation + 1U) & kGenerations;
    ticket.next = free_;
    free_ = index;
}

// mutants: copyrpc-client-on-answer
std::optional<Breach> Client::on_answer(Session& session, const Message& answer, Instant now) noexcept {
    const std::uint32_t index = answer.call & kTicketMask;
    if (index >= tickets_.size()) {
        return Breach::UnknownCall;
    }
    const Ticket ticket = tickets_[index];
    if (ticket.charge == 0 || ticket.session != session.id.value || ticket.generation != answer.call >> kTicketBits) {
        return Breach::UnknownCall;
    }
    session.rings->on_answered(ticket.charge);
    free(index);
    if (ticket.call == kNone) {
        ++statistics_.late_answers;
        return std::nullopt;
    }
    ++statistics_.responses_received;
    ticket_of_[ticket.call] = kNone;
    calls_.finish(ticket.call, kStatusOf[static_cast<std::size_t>(answer.outcome)], answer.payload,
                  now - ticket.posted);
    return std::nullopt;
}

// Ends a call that its peer has not answered.
// mutants: copyrpc-client-finish
void Client::finish(std::uint32_t call, CallStatus status) noexcept {
    if (ticket_of_[call] != kNone) {
        tickets_[ticket_of_[call]].call = kNone;
        ticket_of_[call] = kNone;
    } else {
        calls_.leave(sessions_.find(calls_.session_of(call))->backlog, call);
    }
    calls_.finish(call, status, {}, {});
}

bool Client::cancel(CallId id) noexcept {
    const std::uint32_t call = calls_.find(id);
    if (call == kNone) {
        return false;
    }
    finish(call, CallStatus::Cancelled);
    return true;
}

void Client::end_overdue(Instant now) noexcept {
    calls_.end_overdue(now, [this](std::uint32_t call) { finish(call, CallStatus::DeadlinePassed); });
}

void Client::end_awaited() noexcept {
    calls_.end_awaited([this](std::uint32_t call) { finish(call, CallStatus::Disconnected); });
}

// mutants: copyrpc-client-fail-calls
void Client::fail_calls(Session& session, CallStatus status) noexcept {
    for (std::uint32_t i = 0; i < tickets_.size(); ++i) {
        if (tickets_[i].charge != 0 && tickets_[i].session == session.id.value) {
            const std::uint32_t call = tickets_[i].call;
            if (call != kNone) {
                finish(call, status);
            }
            free(i);
        }
    }
    while (!session.backlog.empty()) {
        finish(session.backlog.oldest, status);
    }
}

}  // namespace cairn::copyrpc
