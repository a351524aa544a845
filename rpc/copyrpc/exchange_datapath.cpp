// Reads the batches that came, and sends the batches in the rings.
#include "rpc/copyrpc/exchange.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "rpc/linked/probes.hpp"

namespace cairn::copyrpc {

bool Exchange::take(Instant now) noexcept {
    std::size_t count = 0;
    bool any = false;
    while ((count = queues_.receives->poll(done_)) != 0) {
        any = true;
        for (const verbs::Completion& completion : std::span(done_).first(count)) {
            take(completion, now);
        }
    }
    queues_.refill();  // also without a completion, since sessions that ended took receive requests with them
    take_failures(now);
    return any;
}

void Exchange::take(const verbs::Completion& completion, Instant now) noexcept {
    Session* const session = sessions_.of_qp(completion.qpn);
    if (session == nullptr || session->state == SessionState::Ending) {
        return;
    }
    if (completion.status != verbs::CompletionStatus::Success || !completion.has_immediate) {
        break_off(*session, Breach::BadImmediate, now);
    } else if (session->rings || peers_.meet(*session)) [[likely]] {
        take_batch(*session, completion.immediate, now);
    } else {
        links_.lose(*session, now);
    }
}

// Ends a session whose peer broke a rule.
void Exchange::break_off(Session& session, Breach breach, Instant now) noexcept {
    statistics_.breaches.count(breach);
    links_.lose(session, now);
}

// Reads a batch. Handlers and completions may end the session meanwhile.
void Exchange::take_batch(Session& session, std::uint32_t immediate, Instant now) noexcept {
    session.heard = true;
    std::optional<Breach> breach = session.rings->open(BatchImmediate::parse(immediate));
    RingEnd::Taken taken;
    while (!breach) {
        if (!session.rings->next(taken)) {
            breach = session.rings->breach();
            break;
        }
        if (taken.message.answer) {
            breach = client_.on_answer(session, taken.message, now);
        } else {
            breach = server_.on_request(session, taken, now);
        }
        if (session.state == SessionState::Ending) {
            return;
        }
    }
    if (breach) {
        break_off(session, *breach, now);
        return;
    }
    sessions_.list(session);
}

// Batches complete without notice. Only failures and the ends of probes are reported.
[[gnu::always_inline]] inline void Exchange::take_failures(Instant now) noexcept {
    std::size_t count = 0;
    while ((count = queues_.sends->poll(done_)) != 0) {
        for (const verbs::Completion& completion : std::span(done_).first(count)) {
            Session* const session = sessions_.of_qp(completion.qpn);
            if (session != nullptr && session->state != SessionState::Ending) {
                take_sent(*session, completion, now);
            }
        }
    }
}

// Handles the completion of a send. If a READ or a WRITE at the peer is refused, the peer named memory that it does not
// have, and so broke a rule.
void Exchange::take_sent(Session& session, const verbs::Completion& completion, Instant now) noexcept {
    const bool transfers = completion.wr_id == kReadWork || completion.wr_id == kWriteWork;
    if (completion.status != verbs::CompletionStatus::Success) {
        const bool refused = transfers && (completion.status == verbs::CompletionStatus::RemoteAccess ||
                                           completion.status == verbs::CompletionStatus::RemoteInvalidRequest);
        statistics_.breaches.count(Breach::BadPlace, refused ? 1 : 0);
        links_.lose(session, now);
    } else if (completion.wr_id == rpc::Probes::kProbe) {
        rpc::Probes::on_answer(session);
    } else {
        session.heard = true;
        if (completion.wr_id == kReadWork) {
            server_.transfers().on_read(session, now);
        } else if (completion.wr_id == kWriteWork) {
            server_.transfers().on_written(session);
        } else if (completion.wr_id == kOneSidedWork) {
            one_sided_.on_done(session, now);
        } else {
            on_word(session, now);
        }
        sessions_.list(session);
    }
}

// A session with a full send queue is tried in each turn, but causes no turn: acknowledgements do.
bool Exchange::flush(Instant now) noexcept {
    const bool any = sessions_.any_listed();
    client_.begin_turn();
    server_.transfers().begin_turn();
    one_sided_.begin_turn();
    held_until_ = Instant::never();
    sessions_.relist_stalled();
    sessions_.take_listed([this, now](Session& session) { flush(session, now); });
    return any;
}

// Completions and the room callback may end the session.
void Exchange::flush(Session& session, Instant now) noexcept {
    bool waits = session.is_open() && session.late != nullptr && !server_.serve_late(session, now);
    if (session.is_open() && session.has_waiting()) {
        client_.serve_and_end_backlog(session, now);
    }
    if (session.is_open() && session.wanted) [[unlikely]] {
        client_.tell_room(session);
    }
    if (session.is_open() && session.transfers != nullptr && !server_.transfers().serve(session, now)) [[unlikely]] {
        sessions_.stall(session);
    }
    if (session.is_open() && session.one_sided != nullptr && !one_sided_.serve(session)) [[unlikely]] {
        sessions_.stall(session);
    }
    const bool held = send_batches(session, now);
    if (session.is_open() && session.word != nullptr) [[unlikely]] {
        waits = waits || session.has_late() || session.has_waiting() || session.wanted;
        serve_words(session, waits, held);
    }
}

// Sends a session's batches. Returns true if a batch is held.
bool Exchange::send_batches(Session& session, Instant now) noexcept {
    while (session.is_open()) {
        if (!session.write && is_held(session, now)) {
            sessions_.stall(session);
            return true;
        }
        if (!session.write) {
            session.write = session.rings->next_write();
        }
        if (!session.write) {
            return false;
        }
        if (!send(session, *session.write)) {
            sessions_.stall(session);  // the send queue is full
            return false;
        }
        if (hold_.messages != 0 && session.write->messages != 0) {
            session.hold.on_batch(session.write->messages, now);
        }
        session.write.reset();
        if (session.has_waiting()) {
            client_.serve_and_end_backlog(session, now);
        }
    }
    return false;
}

// An empty batch is not held: the peer may be waiting for it.
bool Exchange::is_held(Session& session, Instant now) noexcept {
    const std::uint32_t messages = hold_.messages != 0 ? session.rings->send().messages() : 0;
    if (messages == 0) {
        return false;
    }
    const Instant until = session.hold.until(hold_, messages, now);
    if (until <= now) {
        return false;
    }
    held_until_ = std::min(held_until_, until);
    return true;
}

// Shows the peer which of its batches were read, and READs the peer's word if that pays. A held batch lacks no room.
void Exchange::serve_words(Session& session, bool waits, bool held) noexcept {
    const RawConsumerWord raw = session.rings->receive().word().raw();
    std::memcpy(session.word->bytes().data(), &raw, sizeof(raw));
    if (session.asks_word || (held && !waits) || !session.rings->wants_word(waits)) {
        return;
    }
    const std::array<verbs::Sge, 1> pieces{session.read_word->sge(0, sizeof(RawConsumerWord))};
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaRead;
    request.wr_id = kWordWork;
    request.sges = pieces;
    request.rkey = session.peer.word;
    if (session.qp->post_send(request) != verbs::PostVerdict::Posted) {
        sessions_.stall(session);
        return;
    }
    session.asks_word = true;
    session.rings->ask_word();
    ++statistics_.words_read;
}

void Exchange::on_word(Session& session, Instant now) noexcept {
    session.asks_word = false;
    RawConsumerWord raw;
    std::memcpy(&raw, session.read_word->bytes().data(), sizeof(raw));
    if (!session.rings->on_word(ConsumerWord::of(raw))) {
        break_off(session, Breach::BadCredit, now);
    }
}

bool Exchange::send(Session& session, const RingWrite& write) noexcept {
    const std::array<verbs::Sge, 1> pieces{session.mirror->sge(write.offset, write.bytes)};
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWriteWithImmediate;
    request.signalled = false;
    request.sges = pieces;
    request.immediate = write.immediate;
    request.remote_address = session.peer.address + write.offset;
    request.rkey = session.peer.rkey;
    if (session.qp->post_send(request) != verbs::PostVerdict::Posted) {
        return false;
    }
    ++statistics_.batches_sent;
    statistics_.batch_sizes.count(write.messages);
    return true;
}

}  // namespace cairn::copyrpc
