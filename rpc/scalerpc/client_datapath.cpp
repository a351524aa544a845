// How calls are staged, written and answered.
#include "rpc/scalerpc/client.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace cairn::scalerpc {

namespace {

constexpr std::array<CallStatus, static_cast<std::size_t>(Outcome::Count)> kStatusOf{CallStatus::Ok,
                                                                                     CallStatus::NoHandler,
                                                                                     CallStatus::AnswerLost,
                                                                                     CallStatus::DeadlinePassed,
                                                                                     CallStatus::ResponseTooLong,
                                                                                     CallStatus::NotExecuted};

}  // namespace

Posted Client::post(Session& session, const Call& call, Instant now) noexcept {
    if (calls_.is_full()) {
        return {PostVerdict::Full, 0};
    }
    if (call.request.size() > config_.shape.message_max()) {
        return {PostVerdict::TooLong, 0};
    }
    const std::uint32_t index = calls_.add(call, session.id, now);
    calls_.join(session.backlog, index);
    const CallId id = calls_.id_of(index);
    if (session.is_open()) {
        serve_backlog(session, now);
    }
    return {PostVerdict::Posted, id};
}

void Client::serve_backlog(Session& session, Instant now) noexcept {
    Caller& caller = *session.caller;
    while (!session.backlog.empty() && caller.has_room()) {
        const std::uint32_t index = session.backlog.oldest;
        calls_.leave(session.backlog, index);
        const Call& call = calls_[index];
        const bool is_over = call.deadline <= now;  // the next slot of the wheel ends it
        const Caller::Slot& slot =
            caller.stage({0, call.type, left_us(call.deadline, now), call.request, is_over}, index, now);
        calls_.put_into_slot(index, static_cast<std::uint32_t>(&slot - caller.slots().data()));
        sessions_.list(session);
        ++statistics_.requests_sent;
    }
}

// Counts the time up to now with the old state, and keeps the new state.
void Client::watch_stalls(Instant now) noexcept {
    if (!config_.watches_stalls) {
        return;
    }
    const auto span = static_cast<std::uint64_t>(std::max<std::int64_t>((now - watched_).ns, 0));
    statistics_.in_slice_ns += in_slice_ ? span : 0;
    statistics_.stalled_ns += stalled_ ? span : 0;
    watched_ = now;
    in_slice_ = false;
    bool uses = false;
    bool waits = false;
    sessions_.for_each([&](const Session& session) {
        const bool calls = session.caller && session.is_open();
        const bool in_slice = calls && session.caller->state() == CallerState::Process;
        const bool busy = calls && session.caller->busy() != 0;
        in_slice_ = in_slice_ || in_slice;
        uses = uses || (in_slice && busy);
        waits = waits || (!in_slice && busy);
    });
    stalled_ = in_slice_ && waits && !uses;
}

// Completions may post, cancel and disconnect.
std::optional<Breach> Client::poll(Session& session, Instant now, bool& any) noexcept {
    Caller& caller = *session.caller;
    bool heard = false;
    for (std::uint64_t busy = caller.busy(); busy != 0; busy &= busy - 1) {
        Caller::Slot& slot = caller.slots()[static_cast<std::size_t>(std::countr_zero(busy))];
        Answer answer;
        const Look look = read_answer(caller.answer_block(slot.sequence), slot.sequence, answer);
        if (look == Look::Absent) {
            continue;
        }
        if (look == Look::Nonsense) {
            return Breach::BadAnswer;
        }
        any = heard = true;
        if (const std::optional<Breach> breach = caller.on_answered(slot.sequence, answer.news)) {
            return breach;
        }
        on_answer(session, slot, answer, now);
        if (!session.is_open()) {
            return std::nullopt;
        }
    }
    bool nonsense = false;
    for (std::optional<News> news = caller.look_at_control(nonsense); news; news = caller.look_at_control(nonsense)) {
        heard = true;
        if (!caller.on_news(*news)) {
            return Breach::BadNews;
        }
    }
    if (nonsense) {
        return Breach::BadNews;
    }
    if (heard) {
        session.heard = true;
        sessions_.list(session);
    }
    return std::nullopt;
}

void Client::on_answer(Session& session, Caller::Slot& slot, const Answer& answer, Instant now) noexcept {
    const std::uint32_t call = slot.call;
    session.caller->free(slot);
    if (call == kNone) {
        ++statistics_.late_answers;
    } else {
        ++statistics_.responses_received;
        calls_.finish(call, kStatusOf[static_cast<std::size_t>(answer.outcome)], answer.payload, now);
    }
    if (session.is_open()) {
        serve_backlog(session, now);
    }
}

// Ends a call that its server has not answered.
void Client::finish(std::uint32_t call, CallStatus status, Instant now) noexcept {
    Session& session = *sessions_.find(calls_.session_of(call));
    const std::uint8_t slot = calls_.slot_of(call);
    if (slot != rpc::CallTable::kNoSlot) {
        session.caller->give_up(session.caller->slots()[slot]);
    } else {
        calls_.leave(session.backlog, call);
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

void Client::end_awaited(Instant now) noexcept {
    calls_.end_awaited([this, now](std::uint32_t call) { finish(call, CallStatus::Disconnected, now); });
}

void Client::fail_calls(Session& session, CallStatus status, Instant now) noexcept {
    for (Caller::Slot& slot : session.caller->slots()) {
        if (slot.call != kNone) {
            finish(slot.call, status, now);
        }
    }
    while (!session.backlog.empty()) {
        finish(session.backlog.oldest, status, now);
    }
}

// Sends what has room. The rest waits for another turn.
void Client::flush(Session& session, Instant now) noexcept {
    Caller& caller = *session.caller;
    serve_backlog(session, now);
    for (Caller::Span staged = caller.to_write(); !staged.empty(); staged = caller.to_write()) {
        const Caller::Span run{staged.from, run_end(caller, staged)};
        if (!write_blocks(session, run, now)) {
            sessions_.stall(session);
            return;
        }
        caller.written(run.to);
    }
    const std::optional<Entry> entry = caller.entry_due(session.staged->address());
    if (entry && !write_entry(session, *entry, now)) {
        sessions_.stall(session);
    }
}

// Returns the end of a run of small neighbouring requests, which leave in one WRITE with the bytes between them.
std::uint32_t Client::run_end(const Caller& caller, Caller::Span staged) const noexcept {
    const BlockShape& shape = caller.shape();
    std::uint32_t to = staged.from + 1;
    if (config_.features.packing) {
        while (to != staged.to && shape.index_of(to) != 0 &&
               (to - staged.from) * shape.bytes + caller.tail_of(staged.from) <= kWriteMost) {
            ++to;
        }
    }
    return to;
}

bool Client::write_blocks(Session& session, Caller::Span run, Instant now) noexcept {
    Caller& caller = *session.caller;
    const BlockShape& shape = caller.shape();
    caller.tell_time_left(run, now);
    for (std::uint32_t sequence = run.from; sequence != run.to; ++sequence) {
        caller.ready(sequence);
    }
    const std::uint32_t bytes = (run.to - run.from - 1) * shape.bytes + caller.tail_of(run.from);
    const std::uint32_t offset = shape.end_of(run.to - 1) - bytes;
    const std::array<verbs::Sge, 1> pieces{session.staged->sge(offset, bytes)};
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWrite;
    request.signalled = false;
    request.sges = pieces;
    request.remote_address = caller.grant().address + offset;
    request.rkey = caller.grant().rkey;
    return session.qp->post_send(request) == verbs::PostVerdict::Posted;
}

bool Client::write_entry(Session& session, const Entry& entry, Instant now) noexcept {
    session.caller->tell_time_left({entry.first, entry.first + entry.count}, now);
    const RawEntry raw = entry.raw();
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWrite;
    request.signalled = false;
    request.is_inline = true;
    request.inline_bytes = {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
    request.remote_address = session.caller->entry_at().address;
    request.rkey = session.caller->entry_at().rkey;
    if (session.qp->post_send(request) != verbs::PostVerdict::Posted) {
        return false;
    }
    session.caller->entry_written(entry);
    return true;
}

}  // namespace cairn::scalerpc
