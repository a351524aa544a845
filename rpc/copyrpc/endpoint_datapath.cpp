// A turn: batches that came are read, what was put into rings leaves.
#include <algorithm>
#include <array>

#include "rpc/copyrpc/endpoint.hpp"

namespace cairn::copyrpc {

namespace {

constexpr Duration kPollInterval = microseconds(50);

}  // namespace

bool Endpoint::on_turn(Instant now) noexcept {
    bool worked = links_->poll_events(serves(), now);
    worked = take_batches(now) || worked;
    take_failures(now);
    server_.jobs().on_turn(now);
    next_poll_ = now + kPollInterval;
    client_.end_overdue(now);
    look_at_peers(now);
    if (sessions_.any_listed()) {
        sessions_.take_listed([this, now](Session& session) { flush(session, now); });
        worked = true;
    }
    return worked;
}

// mutants: copyrpc-endpoint-take-batches
bool Endpoint::take_batches(Instant now) noexcept {
    std::array<verbs::Completion, 32> done;
    std::size_t count = 0;
    bool any = false;
    while ((count = receives_->poll(done)) != 0) {
        any = true;
        for (const verbs::Completion& completion : std::span(done).first(count)) {
            Session* const session = sessions_.of_qp(completion.qpn);
            if (session == nullptr || session->state == SessionState::Ending) {
                continue;
            }
            if (completion.status != verbs::CompletionStatus::Success || !completion.has_immediate) {
                links_->on_breach(*session, Breach::BadImmediate, now);
            } else if (session->rings || links_->meet(*session)) [[likely]] {
                take_batch(*session, completion.immediate, now);
            } else {
                links_->on_lost(*session, now);
            }
        }
    }
    if (any && requests_->size() < requests_promised_) {
        refill();
    }
    return any;
}

// Handlers and completions may end the session while its batch is read.
// mutants: copyrpc-endpoint-take-batch
void Endpoint::take_batch(Session& session, std::uint32_t immediate, Instant now) noexcept {
    const SessionId id = session.id;
    session.heard = true;
    std::optional<Breach> breach = session.rings->open(BatchImmediate::parse(immediate));
    while (!breach) {
        const std::optional<RingEnd::Taken> taken = session.rings->next();
        if (!taken) {
            breach = session.rings->breach();
            break;
        }
        if (taken->message.answer) {
            breach = client_.on_answer(session, taken->message, now);
        } else {
            server_.on_request(session, *taken, now);
        }
        if (sessions_.find(id) != &session || session.state == SessionState::Ending) {
            return;
        }
    }
    if (breach) {
        links_->on_breach(session, *breach, now);
        return;
    }
    sessions_.list(session);
}

// Posts receive requests that take no memory: a batch is written to the ring.
void Endpoint::refill() noexcept {
    static constexpr std::array<verbs::ReceiveRequest, 32> kBare{};
    while (requests_->size() < requests_full_) {
        const std::size_t count = std::min<std::size_t>(kBare.size(), requests_full_ - requests_->size());
        const verbs::PostResult posted = requests_->post(std::span(kBare).first(count));
        CAIRN_ASSERT(posted.posted == count);
    }
}

// Batches complete without a word; what is told is a failure, or the end of a probe.
void Endpoint::take_failures(Instant now) noexcept {
    std::array<verbs::Completion, 32> done;
    std::size_t count = 0;
    while ((count = sends_->poll(done)) != 0) {
        for (const verbs::Completion& completion : std::span(done).first(count)) {
            Session* const session = sessions_.of_qp(completion.qpn);
            if (session != nullptr && completion.status != verbs::CompletionStatus::Success) {
                links_->on_lost(*session, now);
            } else if (session != nullptr) {
                session->probed = false;
                session->heard = true;
            }
        }
    }
}

// mutants: copyrpc-endpoint-flush
void Endpoint::flush(Session& session, Instant now) noexcept {
    if (!session.is_open()) {
        return;
    }
    client_.serve_backlog(session, now);
    while (session.is_open()) {
        if (!session.write) {
            session.write = session.rings->next_write();
        }
        if (!session.write || !send(session, *session.write)) {
            break;
        }
        session.write.reset();
        client_.serve_backlog(session, now);
    }
    if (session.write) {
        sessions_.list(session);  // its send queue was full
    }
}

bool Endpoint::send(Session& session, const RingWrite& write) noexcept {
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
    statistics_.batches_empty += write.bytes == kBlockBytes ? 1 : 0;
    return true;
}

}  // namespace cairn::copyrpc
