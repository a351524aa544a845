#include "rpc/copyrpc/one_sided.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "rpc/copyrpc/endpoint_config.hpp"
#include "rpc/copyrpc/transfers.hpp"

namespace cairn::copyrpc {

namespace {

constexpr std::uint8_t kStillLooks = 16;  // a peer that is silent altogether is lost after 8

SessionOneSided& of(Session& session) {
    if (session.one_sided == nullptr) {
        session.one_sided = std::make_unique<SessionOneSided>();
    }
    return *session.one_sided;
}

}  // namespace

// mutants: copyrpc-one-sided-open
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
    const verbs::Mr& key = *of(*session).opened.emplace_back(std::move(made).value());
    return Place{key.address(), key.rkey(), static_cast<std::uint32_t>(memory.size())};
}

bool OneSided::close(SessionId id, const Place& place) noexcept {
    Session* const session = sessions_.find(id);
    return session != nullptr && session->one_sided != nullptr &&
           std::erase_if(session->one_sided->opened,
                         [&place](const std::unique_ptr<verbs::Mr>& key) { return key->rkey() == place.rkey; }) != 0;
}

// mutants: copyrpc-one-sided-post
rpc::PostVerdict OneSided::post(SessionId id, const OneSidedWork& work, verbs::WorkOpcode opcode, Instant now) {
    Session* const session = sessions_.find(id);
    if (session == nullptr || !session->is_open() || ended_) {
        return rpc::PostVerdict::NoSuchSession;
    }
    if (work.memory.empty() || work.memory.size() > work.place.bytes) {
        return rpc::PostVerdict::TooLong;
    }
    SessionOneSided& own = of(*session);
    if (own.pending.size() == kMostPending) {
        return rpc::PostVerdict::Full;
    }
    (opcode == verbs::WorkOpcode::RdmaRead ? statistics_.one_sided_reads : statistics_.one_sided_writes) += 1;
    own.pending.push_back({work, opcode, nullptr, 0, 0, now});
    sessions_.list(*session);
    return rpc::PostVerdict::Posted;
}

// Only what is under way has a key: a worker has so many of them.
bool OneSided::give_key(Session& session, SessionOneSided::Pending& work) {
    const bool reads = work.opcode == verbs::WorkOpcode::RdmaRead;
    const verbs::Rights rights = reads ? verbs::Rights{verbs::Right::LocalWrite} : verbs::Rights{};
    auto key = device_.register_memory(*session.pd, work.work.memory, rights, 0);
    work.key = key.ok() ? std::move(key).value() : nullptr;
    return work.key != nullptr;
}

// mutants: copyrpc-one-sided-serve
bool OneSided::serve(Session& session) noexcept {
    if (session.one_sided == nullptr) {
        return true;
    }
    SessionOneSided& own = *session.one_sided;
    for (SessionOneSided::Pending& each : own.pending) {
        const auto bytes = static_cast<std::uint32_t>(each.work.memory.size());
        while (each.posted != bytes) {
            if (own.pieces == pieces_most_) {
                return true;  // the next one that is done goes on
            }
            if (each.key == nullptr && !give_key(session, each)) {
                return false;
            }
            const std::uint32_t piece = std::min(bytes - each.posted, kPieceBytes);
            const std::array<verbs::Sge, 1> pieces{each.key->sge(each.posted, piece)};
            verbs::SendRequest request;
            request.opcode = each.opcode;
            request.wr_id = kOneSidedWork;
            request.fence = each.opcode == verbs::WorkOpcode::RdmaWrite;  // else a READ before it would read it
            request.sges = pieces;
            request.remote_address = each.work.place.address + each.posted;
            request.rkey = each.work.place.rkey;
            if (session.qp->post_send(request) != verbs::PostVerdict::Posted) {
                return false;
            }
            each.posted += piece;
            ++own.pieces;
        }
    }
    return true;
}

// mutants: copyrpc-one-sided-on-done
void OneSided::on_done(Session& session, Instant now) noexcept {
    SessionOneSided& own = *session.one_sided;
    --own.pieces;
    own.still_looks = 0;
    SessionOneSided::Pending& oldest = own.pending.front();
    const auto bytes = static_cast<std::uint32_t>(oldest.work.memory.size());
    oldest.done += std::min(bytes - oldest.done, kPieceBytes);
    if (oldest.done != bytes) {
        return;
    }
    SessionOneSided::Pending done = std::move(oldest);
    own.pending.pop_front();
    done.key.reset();
    if (done.work.completion != nullptr) {
        done.work.completion(done.work.context, {CallStatus::Ok, done.work.memory, now - done.began, done.work.tag});
    }
}

// The memory is its owner's again before he learns of it.
// mutants: copyrpc-one-sided-fail
bool OneSided::fail(Session& session, rpc::CallStatus status) noexcept {
    if (session.one_sided == nullptr) {
        return false;
    }
    const bool opened = !session.one_sided->opened.empty();
    session.one_sided->opened.clear();
    session.one_sided->pieces = 0;
    while (!session.one_sided->pending.empty()) {
        SessionOneSided::Pending ended = std::move(session.one_sided->pending.front());
        session.one_sided->pending.pop_front();
        ended.key.reset();
        if (ended.work.completion != nullptr) {
            ended.work.completion(ended.work.context, {status, {}, {}, ended.work.tag});
        }
    }
    return opened;
}

// mutants: copyrpc-one-sided-end-awaited
void OneSided::end_awaited() noexcept {
    ended_ = true;
    sessions_.for_each([](Session& session) {
        if (session.one_sided == nullptr) {
            return;
        }
        std::deque<SessionOneSided::Pending>& pending = session.one_sided->pending;
        while (!pending.empty()) {
            SessionOneSided::Pending ended = std::move(pending.front());
            pending.pop_front();
            ended.key.reset();
            if (ended.work.ends_with_endpoint && ended.work.completion != nullptr) {
                ended.work.completion(ended.work.context, {CallStatus::Disconnected, {}, {}, ended.work.tag});
            }
        }
        session.one_sided->opened.clear();
    });
}

bool OneSided::is_stuck(Session& session) noexcept {
    return session.one_sided != nullptr && session.one_sided->pieces != 0 &&
           ++session.one_sided->still_looks >= kStillLooks;
}

}  // namespace cairn::copyrpc
