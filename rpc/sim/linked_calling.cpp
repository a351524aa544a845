#include "rpc/sim/linked_calling.hpp"

#include <algorithm>
#include <iterator>

namespace cairn::sim {

namespace {

bool is_end(rpc::CallStatus status) {
    return status == rpc::CallStatus::PeerLost || status == rpc::CallStatus::Disconnected;
}

}  // namespace

LinkedSession* LinkedCalling::connect(LinkedNode& node, std::size_t host, bool to_stranger) {
    const auto id = node.endpoint->connect(world_.network().address_of(host),
                                           to_stranger ? LinkedStranger::kPort : plan_.port, node.now());
    if (!id.ok()) {
        return nullptr;
    }
    LinkedSession& session = node.sessions.emplace_back();
    session.id = id.value();
    session.serial = ++oracle_.counters().sessions;
    session.peer = host;
    session.odd = to_stranger;
    return &session;
}

void LinkedCalling::disconnect(LinkedNode& node, SessionId id) {
    std::erase_if(node.sessions, [id](const LinkedSession& each) { return each.id == id; });
    ++node.ending;
    node.endpoint->disconnect(id, node.now());
    --node.ending;
}

void LinkedCalling::act(LinkedNode& node) {
    if (node.sessions.size() < plan_.sessions_each && random_.chance(kMillion / 3)) {
        const std::size_t host = (node.host->host() + random_.between(1, world_.hosts() - 1)) % world_.hosts();
        connect(node, host, plan_.has_strangers && random_.chance(kMillion / 8));
    }
    // If a session is ending already, its event is still to come.
    if (node.ending == 0 && !node.sessions.empty() && random_.chance(kMillion / 80)) {
        disconnect(node, node.sessions[random_.below(node.sessions.size())].id);
    }
    if (random_.chance(kMillion / 20)) {
        cancel_some(node);
    }
    if (node.sessions.empty()) {
        return;
    }
    const LinkedSession session = node.sessions[random_.below(node.sessions.size())];
    if (!random_.chance(kMillion / 8) || !system_.act(node, session)) {
        post_some(node, session, random_.chance(kMillion / 10) ? random_.between(8, 40) : 1);
    }
}

void LinkedCalling::post_some(LinkedNode& node, const LinkedSession& session, std::uint64_t count) {
    const SessionId id = session.id;
    for (; count > 0; --count) {
        const LinkedSession* const live = node.find(id);
        if (live == nullptr || live->serial != session.serial || !post(node, id, plan_call(node, *live))) {
            return;
        }
    }
}

LinkedCall* LinkedCalling::post_inner(LinkedNode& node, SessionId by) {
    LinkedCall& call = oracle_.add(node);
    const LinkedSession* const session = node.find(by);
    call.session = session != nullptr ? session->serial : 0;
    call.odd = session != nullptr && session->odd;
    call.handling = random_.chance(kMillion / 2) ? Handling::AtOnce : Handling::Later;
    system_.plan_brief(node, call);
    call.tag.response_bytes = std::min<std::uint32_t>(16, call.answer_room);
    fill_request(call.request, call.tag);
    return post(node, by, call) ? &call : nullptr;
}

LinkedCall& LinkedCalling::plan_call(LinkedNode& node, const LinkedSession& session) {
    LinkedCall& call = oracle_.add(node);
    call.session = session.serial;
    call.odd = session.odd;
    call.handling = system_.draw_handling();
    if (random_.chance(kMillion / 16)) {
        call.handling = random_.chance(kMillion / 2) ? Handling::Refused : Handling::Nobody;
    }
    // A call must not wait for a request that waits for it, however long queues are.
    if (call.handling == Handling::Nested && session.peer < node.host->host()) {
        call.handling = Handling::AtOnce;
    }
    system_.plan_sizes(node, call);
    const std::uint32_t beyond = random_.chance(kMillion / 20) ? 100 : 1;
    call.tag.response_bytes = static_cast<std::uint32_t>(random_.below(call.answer_room + beyond));
    if (call.handling == Handling::Background || call.handling == Handling::Legacy) {
        call.tag.response_bytes = std::min(call.tag.response_bytes, node.limits.job_answer_bytes);
    }
    fill_request(call.request, call.tag);
    if (!world_.healed() && random_.chance(kMillion / 8)) {
        call.deadline = node.now() + random_.between(microseconds(10), milliseconds(10));
    }
    call.ends_with_endpoint = random_.chance(kMillion / 8);
    return call;
}

rpc::Call LinkedCalling::call_of(LinkedNode& node, LinkedCall& call) {
    rpc::Call posted;
    posted.type = static_cast<std::uint8_t>(call.handling);
    posted.request = call.request;
    posted.response = call.response.valid() ? &call.response : nullptr;
    posted.tag = call.tag.serial;
    posted.deadline = call.deadline;
    posted.ends_with_endpoint = call.ends_with_endpoint;
    posted.context = &node;
    posted.completion = [](void* context, const rpc::CallResult& result) {
        auto& self = *static_cast<LinkedNode*>(context);
        self.calling->complete(self, result);
    };
    return posted;
}

void LinkedCalling::begin(LinkedNode& node, LinkedCall& call) {
    node.pending.insert(call.tag.serial);
    if (call.deadline < Instant::never()) {
        call.over = node.oracle->now() + (call.deadline - node.now());
        node.deadlines.emplace(call.deadline, call.tag.serial);
    }
}

void LinkedCalling::abandon(LinkedNode& node, LinkedCall& call) {
    call.abandoned = true;
    node.pending.erase(call.tag.serial);
    node.deadlines.erase({call.deadline, call.tag.serial});
    node.pool->release(call.response);
}

bool LinkedCalling::post(LinkedNode& node, SessionId session, LinkedCall& call) {
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
            oracle_.check(node.endpoint->calls_pending() == node.limits.calls_max,
                          "an endpoint takes calls until its table is full", &node);
            break;
        case rpc::PostVerdict::TooLong:
            ++oracle_.counters().too_long;
            oracle_.check(system_.may_be_too_long(node, call), "a call that fits into every ring is taken", &node);
            abandon(node, call);
            return true;  // others may succeed
    }
    abandon(node, call);
    return false;
}

void LinkedCalling::cancel_some(LinkedNode& node) {
    if (node.pending.empty()) {
        return;
    }
    LinkedCall& call =
        oracle_.call(*std::next(node.pending.begin(), static_cast<std::ptrdiff_t>(random_.below(node.pending.size()))));
    if (call.id == 0) {
        return;  // the post runs a completion of another call
    }
    call.cancelled = true;
    oracle_.check(node.endpoint->cancel(call.id, node.now()), "a call under way can be cancelled", &node);
    oracle_.check(call.completions == 1, "a cancelled call completes at once", &node);
    oracle_.check(!node.endpoint->cancel(call.id, node.now()), "a call that has ended cannot be cancelled", &node);
}

void LinkedCalling::complete(LinkedNode& node, const rpc::CallResult& result) {
    LinkedCall& call = oracle_.call(static_cast<std::uint32_t>(result.tag));
    const bool answered = result.status == rpc::CallStatus::Ok && !call.odd && !call.echoed;
    oracle_.end(node, call, result);
    if (const auto inner = node.nested.find(call.tag.serial); inner != node.nested.end()) {
        node.kept.push_back(std::move(inner->second));  // the outer call gets its answer however the inner one ended
        node.nested.erase(inner);
    }
    if (!calm_ && node.endpoint != nullptr && random_.chance(kMillion / 32)) {
        const int ends = is_end(result.status) ? 1 : 0;
        node.ending += ends;
        act(node);
        node.ending -= ends;
        oracle_.check(!answered || oracle_.is_answer(call, result.response),
                      "an answer stays until its callback returns", &node);
    }
    node.pool->release(call.response);
}

void LinkedCalling::session_changed(LinkedNode& node, SessionId id, rpc::LinkEvent event) {
    LinkedSession* const session = node.find(id);
    oracle_.check(session != nullptr, "only a session of the endpoint's own is told of", &node);
    if (session == nullptr) {
        return;
    }
    if (event == rpc::LinkEvent::Connected) {
        oracle_.check(!session->open, "a session opens once", &node);
        session->open = true;
        return;
    }
    oracle_.counters().sessions_refused += event == rpc::LinkEvent::Refused ? 1 : 0;
    oracle_.counters().peers_lost += event == rpc::LinkEvent::PeerLost ? 1 : 0;
    oracle_.check(!settled_, "a session of two live peers stays", &node);
    std::erase_if(node.sessions, [id](const LinkedSession& each) { return each.id == id; });
}

}  // namespace cairn::sim
