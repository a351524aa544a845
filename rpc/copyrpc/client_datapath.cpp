// How calls are posted, answered, and ended otherwise.
#include "rpc/copyrpc/client.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "rpc/common/time_left.hpp"

namespace cairn::copyrpc {

namespace {

constexpr std::uint32_t kShortAnswer = 64;  // fits into the ring; a longer one is written by itself

bool has_deadline(const Call& call) noexcept {
    return call.deadline < Instant::never();
}

// Returns the time until the deadline, for the server: there is no common clock. The last microsecond counts as a whole
// one.
std::uint32_t left_us(const Call& call, Instant now) noexcept {
    const std::int64_t left = (call.deadline - now).ns / 1000;
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 1, rpc::kMostTimeLeft));
}

constexpr std::array<CallStatus, static_cast<std::size_t>(Outcome::Count)> kStatusOf{CallStatus::Ok,
                                                                                     CallStatus::NoHandler,
                                                                                     CallStatus::AnswerLost,
                                                                                     CallStatus::DeadlinePassed,
                                                                                     CallStatus::ResponseTooLong,
                                                                                     CallStatus::NotExecuted};

// True if an answer that was written by itself lies within its room.
bool judge_written(const Message& answer, const Loan* loan) noexcept {
    return answer.written == 0 || (loan != nullptr && answer.written <= loan->answer.bytes);
}

}  // namespace

Client::Client(const EndpointConfig& config, verbs::Device& device, Sessions& sessions, rpc::MsgPool& pool,
               Statistics& statistics)
    : config_(config),
      sessions_(sessions),
      statistics_(statistics),
      calls_(config.calls_max, statistics.calls_failed),
      tickets_(config.calls_max, device, pool),
      traces_(config.calls_max),
      ticket_of_(config.calls_max, kNone) {}

std::uint32_t Client::answer_bytes(const Call& call) const noexcept {
    return call.response != nullptr ? call.response->capacity : config_.answer_bytes;
}

// Returns the call's plan. Its request is at most kMaxMessageBytes long.
Client::Plan Client::plan_of(const Session& session, const Call& call, std::uint64_t trace) const noexcept {
    Plan plan;
    plan.size = {static_cast<std::uint32_t>(call.request.size()), answer_bytes(call),
                 has_deadline(call) || trace != 0 ? 1U : 0U};
    plan.room = judge(session, plan.size);
    if (plan.room != Room::TooLong) [[likely]] {
        return plan;
    }
    const RingShape& ring = session.rings->send().ring();
    const bool long_request = Message::blocks_of(plan.size.request_bytes, 1 + plan.size.extras) > ring.message_max();
    const bool long_answer = Message::charge_for(plan.size.answer_bytes) > session.rings->receive().ring().charge_max();
    if (long_request && plan.size.request_bytes <= std::min(session.peer.longest, config_.message_bytes_max)) {
        plan.lends_request = true;
        plan.size.request_bytes = 0;
        ++plan.size.extras;
    }
    if (long_answer && plan.size.answer_bytes <= config_.message_bytes_max) {
        plan.lends_room = true;
        plan.size.answer_bytes = kShortAnswer;
        ++plan.size.extras;
    }
    plan.room = judge(session, plan.size);
    return plan;
}

Room Client::judge(const Session& session, const Wanted& size) noexcept {
    return session.rings->judge_request(size.request_bytes, size.extras, size.answer_bytes);
}

bool Client::is_beyond_limits(const Call& call) const noexcept {
    const std::uint32_t most = std::max(config_.message_bytes_max, RingShape::kMostBytes);
    return call.request.size() > most || answer_bytes(call) > most;
}

std::uint32_t Client::add(Session& session, const Call& call, Instant now) noexcept {
    const std::uint32_t index = calls_.add(call, session.id, now);
    traces_[index] = call.trace;
    return index;
}

// A new call does not overtake calls that wait.
Posted Client::post(Session& session, const Call& call, Instant now) noexcept {
    if (calls_.is_full()) {
        return {PostVerdict::Full, 0};
    }
    Plan plan{{}, is_beyond_limits(call) ? Room::TooLong : Room::RingFull};
    if (plan.room != Room::TooLong && session.is_open()) [[likely]] {
        plan = plan_of(session, call, call.trace);
    }
    if (plan.room == Room::TooLong) {
        return {PostVerdict::TooLong, 0};
    }
    const std::uint32_t index = add(session, call, now);
    const CallId id = calls_.id_of(index);
    const bool fits = plan.room == Room::Fits && session.backlog.empty() && tickets_.any_free();
    if (fits && call.deadline > now && (!plan.lends() || (session.lacking.empty() && lend(session, call, plan))))
        [[likely]] {
        put(session, index, plan, now);
        return {PostVerdict::Posted, id};
    }
    calls_.join(session.backlog, index);
    if (session.is_open()) {
        serve_backlog(session, now);
        if (is_head_over(session, now)) [[unlikely]] {
            sessions_.list(session);  // the turn runs the room callback
        }
    }
    return {PostVerdict::Posted, id};
}

// A new call does not overtake calls that wait. A call with a passed deadline joins them, so that its completion runs.
Tried Client::try_post(Session& session, const Call& call, Instant now) noexcept {
    if (!session.is_open()) {
        return {Attempt::NotOpen, 0};
    }
    const Plan plan = is_beyond_limits(call) ? Plan{{}, Room::TooLong} : plan_of(session, call, call.trace);
    if (plan.room == Room::TooLong) {
        return {Attempt::TooLong, 0};
    }
    if (calls_.is_full() || !tickets_.any_free()) {
        return {Attempt::Full, 0};
    }
    if (call.deadline <= now) [[unlikely]] {
        return {Attempt::Posted, post(session, call, now).id};
    }
    const Room room = session.backlog.empty() ? plan.room : Room::RingFull;
    if (room != Room::Fits) {
        session.wanted = plan.size;
        return {room == Room::RingFull ? Attempt::RingFull : Attempt::InsufficientCredit, 0};
    }
    if (plan.lends() && (!session.lacking.empty() || !lend(session, call, plan))) {
        return {Attempt::Full, 0};
    }
    const std::uint32_t index = add(session, call, now);
    const CallId id = calls_.id_of(index);
    put(session, index, plan, now);
    return {Attempt::Posted, id};
}

void Client::put(Session& session, std::uint32_t call, const Plan& plan, Instant now) noexcept {
    const Call& posted = calls_[call];
    const std::uint32_t room = plan.size.answer_bytes;
    const std::uint32_t index = tickets_.take(session, call, Message::charge_for(room));
    ticket_of_[call] = index;
    Message request;
    request.call = tickets_.number_of(index);
    request.type = posted.type;
    request.payload = plan.lends_request ? std::span<const std::uint8_t>{} : posted.request;
    if (const Loan* const loan = tickets_.loan_of(index); loan != nullptr) [[unlikely]] {
        request.elsewhere = plan.lends_request ? std::optional(Loan::place_of(*loan->request_key)) : std::nullopt;
        request.room = plan.lends_room ? std::optional(Loan::place_of(*loan->answer_key)) : std::nullopt;
    }
    if (has_deadline(posted) || traces_[call] != 0) [[unlikely]] {
        request.extension = Extension{traces_[call], has_deadline(posted) ? left_us(posted, now) : 0};
        if (has_deadline(posted)) {
            session.hold.hurry();
        }
    }
    session.rings->put_request(request, room);
    sessions_.list(session);
    ++statistics_.requests_sent;
}

// Frees a ticket, for which calls of any session may have waited.
[[gnu::always_inline]] inline std::unique_ptr<Loan> Client::free(Session& session, std::uint32_t ticket) noexcept {
    if (tickets_.take_awaited()) [[unlikely]] {
        sessions_.for_each([this](Session& other) {
            if (other.is_open() && other.has_waiting()) {
                sessions_.list(other);
            }
        });
    }
    return tickets_.free(session, ticket);
}

// The completion may take the ticket again. The loan lives until the completion has returned.
std::optional<Breach> Client::on_answer(Session& session, const Message& answer, Instant now) noexcept {
    const std::uint32_t index = tickets_.find(session, answer.call);
    if (index == kNone) {
        return Breach::UnknownCall;
    }
    if (!judge_written(answer, tickets_.loan_of(index))) {
        return Breach::BadPlace;
    }
    const Tickets::Ticket ticket = tickets_[index];
    session.rings->on_answered(ticket.charge);
    std::unique_ptr<Loan> loan = free(session, index);
    if (ticket.call == kNone) {
        ++statistics_.late_answers;
    } else {
        ++statistics_.responses_received;
        ticket_of_[ticket.call] = kNone;
        calls_.finish(ticket.call, kStatusOf[static_cast<std::size_t>(answer.outcome)],
                      answer.written != 0 ? loan->answer.span().first(answer.written) : answer.payload, now);
    }
    if (loan != nullptr) [[unlikely]] {
        tickets_.end(std::move(loan));
    }
    return std::nullopt;
}

// Ends a call that its peer has not answered.
void Client::finish(std::uint32_t call, CallStatus status, Instant now) noexcept {
    Session& session = *sessions_.find(calls_.session_of(call));
    const std::uint32_t ticket = std::exchange(ticket_of_[call], kNone);
    if (ticket < kLacksMemory) {
        tickets_.give_up(session, ticket);
    } else {
        calls_.leave(ticket == kLacksMemory ? session.lacking : session.backlog, call);
    }
    calls_.finish(call, status, {}, now);
}

bool Client::cancel(CallId id, Instant now) noexcept {
    const std::uint32_t call = calls_.find(id);
    if (call == kNone) {
        return false;
    }
    finish(call, CallStatus::Cancelled, now);
    return true;
}

void Client::end_overdue(Instant now) noexcept {
    calls_.end_overdue(now, [this, now](std::uint32_t call) { finish(call, CallStatus::DeadlinePassed, now); });
}

void Client::end_tickets(Session& session) noexcept {
    while (!session.outstanding.tickets.empty()) {
        tickets_.end(free(session, session.outstanding.tickets.first));
    }
}

void Client::end_awaited(Instant now) noexcept {
    calls_.end_awaited([this, now](std::uint32_t call) { finish(call, CallStatus::Disconnected, now); });
}

bool Client::fail_calls(Session& session, CallStatus status, Instant now) noexcept {
    const bool lent = session.outstanding.lent_bytes != 0;
    while (!session.outstanding.tickets.empty()) {
        const std::uint32_t index = session.outstanding.tickets.first;
        if (tickets_[index].call != kNone) {
            finish(tickets_[index].call, status, now);
        }
        tickets_.end(free(session, index));
    }
    while (session.has_waiting()) {
        finish((session.backlog.empty() ? session.lacking : session.backlog).oldest, status, now);
    }
    return lent;
}

}  // namespace cairn::copyrpc
