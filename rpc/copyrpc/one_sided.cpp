#include "rpc/copyrpc/one_sided.hpp"

#include <algorithm>
#include <utility>

#include "rpc/copyrpc/endpoint_config.hpp"
#include "rpc/copyrpc/transfers.hpp"

namespace cairn::copyrpc {

namespace {

SessionOneSided& one_sided_of(Session& session) {
    if (session.one_sided == nullptr) {
        session.one_sided = std::make_unique<SessionOneSided>();
    }
    return *session.one_sided;
}

}  // namespace

Result<Place> OneSided::open(SessionId id, std::span<std::uint8_t> memory, verbs::Rights rights) {
    Session* const session = sessions_.find(id);
    if (session == nullptr || session->state == SessionState::Ending) {
        return Error{"there is no such session", "name one that has not ended"};
    }
    if (memory.empty() || memory.size() > kMostBytes) {
        return Error{"no bytes, or too many for one place", "open 1 byte to 4 GiB less one"};
    }
    const verbs::Rights remote = verbs::Rights{verbs::Right::RemoteRead} | verbs::Right::RemoteWrite;
    if (rights == verbs::Rights{} || !remote.cover(rights)) {
        return Error{"a session's peer cannot have these rights", "choose RemoteRead, RemoteWrite or both"};
    }
    const bool writes = rights.cover(verbs::Right::RemoteWrite);
    auto made = device_.register_memory(*session->pd, memory, writes ? rights | verbs::Right::LocalWrite : rights, 0);
    if (!made.ok()) {
        return made.error();
    }
    const verbs::Mr& key = *one_sided_of(*session).opened.emplace_back(std::move(made).value());
    return Place{key.address(), key.rkey(), static_cast<std::uint32_t>(memory.size())};
}

bool OneSided::close(SessionId id, const Place& place) noexcept {
    Session* const session = sessions_.find(id);
    return session != nullptr && session->one_sided != nullptr &&
           std::erase_if(session->one_sided->opened,
                         [&place](const std::unique_ptr<verbs::Mr>& key) { return key->rkey() == place.rkey; }) != 0;
}

rpc::PostVerdict OneSided::post(SessionId id, const OneSidedWork& work, verbs::WorkOpcode opcode, Instant now) {
    Session* const session = sessions_.find(id);
    if (session == nullptr || !session->is_open() || ended_) {
        return rpc::PostVerdict::NoSuchSession;
    }
    if (work.memory.empty() || work.memory.size() > work.place.bytes) {
        return rpc::PostVerdict::TooLong;
    }
    SessionOneSided& own = one_sided_of(*session);
    if (own.pending.size() == kMostPending) {
        return rpc::PostVerdict::Full;
    }
    (opcode == verbs::WorkOpcode::RdmaRead ? statistics_.one_sided.reads : statistics_.one_sided.writes) += 1;
    SessionOneSided::Pending& added = own.pending.emplace_back();
    added.place = work.place;
    added.bytes = static_cast<std::uint32_t>(work.memory.size());
    added.work = work;
    added.opcode = opcode;
    added.began = now;
    sessions_.list(*session);
    return rpc::PostVerdict::Posted;
}

// Only operations under way have a key, since a worker has a limited number of them.
bool OneSided::give_key(Session& session, SessionOneSided::Pending& work) {
    const bool reads = work.opcode == verbs::WorkOpcode::RdmaRead;
    const verbs::Rights rights = reads ? verbs::Rights{verbs::Right::LocalWrite} : verbs::Rights{};
    auto key = device_.register_memory(*session.pd, work.work.memory, rights, 0);
    work.key = key.ok() ? std::move(key).value() : nullptr;
    return work.key != nullptr;
}

bool OneSided::serve(Session& session) noexcept {
    SessionOneSided& own = *session.one_sided;
    for (SessionOneSided::Pending& each : own.pending) {
        const bool writes = each.opcode == verbs::WorkOpcode::RdmaWrite;  // READs before it may read the same memory
        while (!each.is_posted()) {
            if (own.pieces == pieces_most_) {
                return true;  // the end of the next piece lets it go on
            }
            if (each.key == nullptr && !give_key(session, each)) {
                wants_polling_ = true;
                return false;
            }
            if (!each.post(*session.qp, each.opcode, kOneSidedWork, writes)) {
                return false;
            }
            ++own.pieces;
        }
    }
    return true;
}

void OneSided::on_done(Session& session, Instant now) noexcept {
    SessionOneSided& own = *session.one_sided;
    --own.pieces;
    own.under_way.on_done();
    SessionOneSided::Pending& oldest = own.pending.front();
    if (!oldest.advance()) {
        return;
    }
    SessionOneSided::Pending done = std::move(oldest);
    own.pending.pop_front();
    done.key.reset();
    if (done.work.completion != nullptr) {
        done.work.completion(done.work.context, {CallStatus::Ok, done.work.memory, now - done.began, done.work.tag});
    }
}

namespace {

// Completes an operation that was not done. Its owner may use the memory again before the completion runs. The owner
// may have posted with a later time than the turn's.
void tell(SessionOneSided::Pending& ended, rpc::CallStatus status, Instant now) {
    ended.key.reset();
    if (ended.work.completion != nullptr) {
        const Duration latency = std::max(now - ended.began, Duration{});
        ended.work.completion(ended.work.context, {status, {}, latency, ended.work.tag});
    }
}

}  // namespace

bool OneSided::fail(Session& session, rpc::CallStatus status, Instant now) noexcept {
    if (session.one_sided == nullptr) {
        return false;
    }
    const bool opened = !session.one_sided->opened.empty();
    session.one_sided->opened.clear();
    session.one_sided->pieces = 0;
    while (!session.one_sided->pending.empty()) {
        SessionOneSided::Pending ended = std::move(session.one_sided->pending.front());
        session.one_sided->pending.pop_front();
        tell(ended, status, now);
    }
    return opened;
}

void OneSided::end_awaited(Instant now) noexcept {
    ended_ = true;
    sessions_.for_each([now](Session& session) {
        if (session.one_sided == nullptr) {
            return;
        }
        std::deque<SessionOneSided::Pending>& pending = session.one_sided->pending;
        while (!pending.empty()) {
            SessionOneSided::Pending ended = std::move(pending.front());
            pending.pop_front();
            if (ended.work.ends_with_endpoint) {
                tell(ended, CallStatus::Disconnected, now);
            }
        }
        session.one_sided->opened.clear();
    });
}

bool OneSided::is_stuck(Session& session) noexcept {
    SessionOneSided* const own = session.one_sided.get();
    return own != nullptr && own->under_way.is_stuck(own->pieces);
}

}  // namespace cairn::copyrpc
