#include "rpc/sim/copyrpc_calling.hpp"

#include <algorithm>
#include <utility>

#include "rpc/copyrpc/format.hpp"
#include "rpc/copyrpc/message.hpp"

namespace cairn::sim {

namespace {

constexpr std::size_t kSessionsPerNode = 3;
constexpr std::uint32_t kBriefMost = 100;
constexpr std::uint64_t kTriesMost = 60;

using copyrpc::Attempt;
using copyrpc::Message;
using copyrpc::SessionEvent;

bool is_end(rpc::CallStatus status) {
    return status == rpc::CallStatus::PeerLost || status == rpc::CallStatus::Disconnected;
}

}  // namespace

void CopyrpcCalling::start(CopyrpcNode& node) {
    node.endpoint->set_session_callback(
        [](void* context, SessionId id, SessionEvent event) {
            auto& self = *static_cast<CopyrpcNode*>(context);
            self.calling->session_changed(self, id, event);
        },
        &node);
    node.endpoint->set_room_callback(
        [](void* context, SessionId id) {
            auto& self = *static_cast<CopyrpcNode*>(context);
            self.calling->on_room(self, id);
        },
        &node);
}

CopyrpcSession* CopyrpcCalling::connect(CopyrpcNode& node, std::size_t host, bool to_stranger) {
    const auto id = node.endpoint->connect(world_.network().address_of(host),
                                           to_stranger ? CopyrpcStranger::kPort : kPort, node.now());
    if (!id.ok()) {
        return nullptr;
    }
    CopyrpcSession& session = node.sessions.emplace_back();
    session.id = id.value();
    session.serial = ++oracle_.counters().sessions;
    session.peer = host;
    session.odd = to_stranger;
    return &session;
}

void CopyrpcCalling::disconnect(CopyrpcNode& node, SessionId id) {
    std::erase_if(node.sessions, [id](const CopyrpcSession& each) { return each.id == id; });
    ++node.ending;
    node.endpoint->disconnect(id, node.now());
    --node.ending;
}

void CopyrpcCalling::act(CopyrpcNode& node) {
    if (node.sessions.size() < kSessionsPerNode && random_.chance(kMillion / 3)) {
        const std::size_t host = (node.host->host() + random_.between(1, world_.hosts() - 1)) % world_.hosts();
        connect(node, host, plan_.has_strangers && random_.chance(kMillion / 8));
    }
    // The end of a session that is ending already is still to be told.
    if (node.ending == 0 && !node.sessions.empty() && random_.chance(kMillion / 80)) {
        disconnect(node, node.sessions[random_.below(node.sessions.size())].id);
    }
    if (random_.chance(kMillion / 20)) {
        cancel_some(node);
    }
    if (node.sessions.empty()) {
        return;
    }
    const CopyrpcSession session = node.sessions[random_.below(node.sessions.size())];
    if (random_.chance(kMillion / 8)) {
        try_some(node, session.id);
    } else {
        post_some(node, session, random_.chance(kMillion / 10) ? random_.between(8, 40) : 1);
    }
}

void CopyrpcCalling::post_some(CopyrpcNode& node, const CopyrpcSession& session, std::uint64_t count) {
    const SessionId id = session.id;
    for (; count > 0; --count) {
        const CopyrpcSession* const live = node.find(id);
        if (live == nullptr || live->serial != session.serial || !post(node, id, plan_call(node, *live))) {
            return;
        }
    }
}

CopyrpcCall* CopyrpcCalling::post_inner(CopyrpcNode& node, SessionId by) {
    CopyrpcCall& call = plan_call(node);
    const CopyrpcSession* const session = node.find(by);
    call.session = session != nullptr ? session->serial : 0;
    call.odd = session != nullptr && session->odd;
    call.handling = random_.chance(kMillion / 2) ? Handling::AtOnce : Handling::Later;
    call.request.resize(sizeof(CallTag) + random_.below(8));
    call.answer_room = node.config.answer_bytes;
    call.tag.response_bytes = std::min<std::uint32_t>(16, call.answer_room);
    fill_request(call.request, call.tag);
    return post(node, by, call) ? &call : nullptr;
}

CopyrpcCall& CopyrpcCalling::plan_call(CopyrpcNode& node) {
    return oracle_.add(node);
}

CopyrpcCall& CopyrpcCalling::plan_call(CopyrpcNode& node, const CopyrpcSession& session) {
    CopyrpcCall& call = plan_call(node);
    call.session = session.serial;
    call.odd = session.odd;
    call.handling = static_cast<Handling>(random_.between(1, static_cast<std::uint64_t>(Handling::Nested)));
    if (random_.chance(kMillion / 16)) {
        call.handling = random_.chance(kMillion / 2) ? Handling::Refused : Handling::Nobody;
    }
    // A request that waits for another call must not be waited for by that call, however long queues are.
    if (call.handling == Handling::Nested && session.peer < node.host->host()) {
        call.handling = Handling::AtOnce;
    }
    plan_sizes(node, call);
    if (!world_.healed() && random_.chance(kMillion / 8)) {
        call.deadline = node.now() + random_.between(microseconds(10), milliseconds(10));
    }
    call.ends_with_endpoint = random_.chance(kMillion / 8);
    return call;
}

// Most are short; some are as long as a ring takes them, or longer.
void CopyrpcCalling::plan_sizes(CopyrpcNode& node, CopyrpcCall& call) {
    const copyrpc::RingShape ring = random_.chance(kMillion / 2) ? plan_.least_ring() : plan_.most_ring();
    const std::uint32_t longest = ring.message_max() * copyrpc::kBlockBytes;
    const copyrpc::RingShape own(node.config.ring_bytes / copyrpc::kBlockBytes);
    const std::uint32_t longest_answer = Message::answer_max(own.charge_max());
    const bool brief = random_.chance(kMillion * 8 / 10);
    std::uint64_t bytes = brief ? random_.below(kBriefMost) : random_.below(longest);
    if (!brief && random_.chance(kMillion / 4)) {
        bytes = longest - random_.below(60) - sizeof(CallTag);
    }
    call.request.resize(sizeof(CallTag) + bytes);
    call.answer_room = node.config.answer_bytes;
    if (random_.chance(kMillion / 4)) {
        const std::uint64_t room = brief ? random_.below(kBriefMost) : random_.below(longest_answer + 40);
        call.response = node.pool->allocate(static_cast<std::uint32_t>(room));
        call.answer_room = call.response.valid() ? call.response.capacity : call.answer_room;
    }
    const std::uint32_t beyond = random_.chance(kMillion / 20) ? 100 : 1;
    call.tag.response_bytes = static_cast<std::uint32_t>(random_.below(call.answer_room + beyond));
    fill_request(call.request, call.tag);
}

rpc::Call CopyrpcCalling::call_of(CopyrpcNode& node, CopyrpcCall& call) {
    rpc::Call posted;
    posted.type = static_cast<std::uint8_t>(call.handling);
    posted.request = call.request;
    posted.response = call.response.valid() ? &call.response : nullptr;
    posted.tag = call.tag.serial;
    posted.deadline = call.deadline;
    posted.ends_with_endpoint = call.ends_with_endpoint;
    posted.context = &node;
    posted.completion = [](void* context, const rpc::CallResult& result) {
        auto& self = *static_cast<CopyrpcNode*>(context);
        self.calling->complete(self, result);
    };
    return posted;
}

// Before it is posted: a full ring may end it at once.
void CopyrpcCalling::begin(CopyrpcNode& node, CopyrpcCall& call) {
    node.pending.insert(call.tag.serial);
    if (call.deadline < Instant::never()) {
        node.deadlines.emplace(call.deadline, call.tag.serial);
    }
}

void CopyrpcCalling::abandon(CopyrpcNode& node, CopyrpcCall& call) {
    call.abandoned = true;
    node.pending.erase(call.tag.serial);
    node.deadlines.erase({call.deadline, call.tag.serial});
    node.pool->release(call.response);
}

bool CopyrpcCalling::post(CopyrpcNode& node, SessionId session, CopyrpcCall& call) {
    begin(node, call);
    const rpc::Posted posted = node.endpoint->post(session, call_of(node, call), node.now());
    call.id = posted.id;
    switch (posted.verdict) {
        case rpc::PostVerdict::Posted:
            return true;
        case rpc::PostVerdict::NoSuchSession:
            oracle_.check(node.ending != 0, "a live session takes calls", &node);
            break;
        case rpc::PostVerdict::Full:
            ++oracle_.counters().full_tables;
            oracle_.check(node.endpoint->calls_pending() == node.config.calls_max,
                          "an endpoint takes calls until its table is full", &node);
            break;
        case rpc::PostVerdict::TooLong:
            ++oracle_.counters().too_long;
            oracle_.check(oracle_.may_be_too_long(node, call), "a call that fits into every ring is taken", &node);
            abandon(node, call);
            return true;  // others may be taken
    }
    abandon(node, call);
    return false;
}

Attempt CopyrpcCalling::try_one(CopyrpcNode& node, SessionId session, CopyrpcCall& call) {
    begin(node, call);
    const copyrpc::Tried tried = node.endpoint->try_post(session, call_of(node, call), node.now());
    call.id = tried.id;
    const bool in_vain = tried.attempt == Attempt::RingFull || tried.attempt == Attempt::InsufficientCredit;
    const bool too_long = tried.attempt == Attempt::TooLong;
    oracle_.check(!too_long || oracle_.may_be_too_long(node, call), "a call that fits into every ring is taken", &node);
    oracle_.check(too_long || !(tried.attempt == Attempt::Posted || in_vain) || !oracle_.must_be_too_long(node, call),
                  "a call that fits into no ring is not taken", &node);
    if (CopyrpcSession* const tries = node.find(session); tries != nullptr && in_vain) {
        ++oracle_.counters().tried_in_vain;
        tries->wanted = copyrpc::Wanted{static_cast<std::uint32_t>(call.request.size()), call.answer_room,
                                        call.deadline < Instant::never()};
    }
    if (tried.attempt != Attempt::Posted) {
        abandon(node, call);
    }
    return tried.attempt;
}

void CopyrpcCalling::try_some(CopyrpcNode& node, SessionId id) {
    for (std::uint64_t left = random_.between(1, kTriesMost); left > 0; --left) {
        const CopyrpcSession* const session = node.find(id);
        if (session == nullptr) {
            return;
        }
        const bool is_open = session->open;
        const Attempt attempt = try_one(node, id, plan_call(node, *session));
        oracle_.check((attempt == Attempt::NotOpen) == !is_open || node.ending != 0,
                      "an open session can be tried, and no other", &node);
        oracle_.check(attempt != Attempt::NoSuchSession || node.ending != 0, "a live session can be tried", &node);
        if (attempt != Attempt::Posted && attempt != Attempt::TooLong) {
            return;
        }
    }
}

void CopyrpcCalling::cancel_some(CopyrpcNode& node) {
    if (node.pending.empty()) {
        return;
    }
    CopyrpcCall& call =
        oracle_.call(*std::next(node.pending.begin(), static_cast<std::ptrdiff_t>(random_.below(node.pending.size()))));
    if (call.id == 0) {
        return;  // another one's completion runs while it is posted
    }
    call.cancelled = true;
    oracle_.check(node.endpoint->cancel(call.id, node.now()), "a call under way can be cancelled", &node);
    oracle_.check(call.completions == 1, "a cancelled call completes at once", &node);
    oracle_.check(!node.endpoint->cancel(call.id, node.now()), "a call that has ended cannot be cancelled", &node);
}

void CopyrpcCalling::complete(CopyrpcNode& node, const rpc::CallResult& result) {
    CopyrpcCall& call = oracle_.call(static_cast<std::uint32_t>(result.tag));
    const bool answered = result.status == rpc::CallStatus::Ok && !call.odd && !call.echoed;
    oracle_.end(node, call, result);
    if (const auto inner = node.nested.find(call.tag.serial); inner != node.nested.end()) {
        node.kept.push_back(inner->second);  // however the inner call ended, the outer one gets its answer
        node.nested.erase(inner);
    }
    if (!calm_ && node.endpoint != nullptr && random_.chance(kMillion / 32)) {
        const int ends = is_end(result.status) ? 1 : 0;
        node.ending += ends;
        act(node);
        node.ending -= ends;
        oracle_.check(!answered || holds(result.response, 0, call.tag, Part::Response),
                      "an answer stays until its callback returns", &node);
    }
    node.pool->release(call.response);
}

void CopyrpcCalling::session_changed(CopyrpcNode& node, SessionId id, SessionEvent event) {
    CopyrpcSession* const session = node.find(id);
    oracle_.check(session != nullptr, "only a session of the endpoint's own is told of", &node);
    if (session == nullptr) {
        return;
    }
    if (event == SessionEvent::Connected) {
        oracle_.check(!session->open, "a session opens once", &node);
        session->open = true;
        return;
    }
    oracle_.counters().sessions_refused += event == SessionEvent::Refused ? 1 : 0;
    oracle_.counters().peers_lost += event == SessionEvent::PeerLost ? 1 : 0;
    oracle_.check(!settled_, "a session of two live peers stays", &node);
    std::erase_if(node.sessions, [id](const CopyrpcSession& each) { return each.id == id; });
}

// A call of the same size has room.
void CopyrpcCalling::on_room(CopyrpcNode& node, SessionId id) {
    CopyrpcSession* const session = node.find(id);
    oracle_.check(session != nullptr && session->wanted, "only who asked is told of room", &node);
    if (world_.broken()) {
        return;
    }
    ++oracle_.counters().told_of_room;
    const copyrpc::Wanted wanted = *std::exchange(session->wanted, std::nullopt);
    if (calm_ || wanted.answer_bytes != node.config.answer_bytes) {
        return;  // nobody has a buffer of this size by now
    }
    CopyrpcCall& call = plan_call(node, *session);
    node.pool->release(call.response);
    call.answer_room = wanted.answer_bytes;
    call.tag.response_bytes = std::min(call.tag.response_bytes, wanted.answer_bytes);
    call.request.resize(wanted.request_bytes);
    fill_request(call.request, call.tag);
    call.deadline = wanted.extras != 0 ? node.now() + milliseconds(1) : Instant::never();
    const Attempt attempt = try_one(node, id, call);
    oracle_.check(attempt == Attempt::Posted || attempt == Attempt::Full, "who is told of room has room", &node);
    if (random_.chance(kMillion / 4)) {
        try_some(node, id);
    }
}

}  // namespace cairn::sim
