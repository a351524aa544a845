// The requests of the clients of a simulated eRPC world, and the actions of its handlers.
#include <algorithm>
#include <utility>

#include "lib/port/path.hpp"
#include "rpc/sim/erpc_scenario.hpp"

namespace cairn::sim {

namespace {

constexpr std::size_t kSessionsPerClient = 4;
constexpr std::uint32_t kAttempts = 50;

void begin_conversation(erpc::Task<> task) {
    start(std::move(task));
}

}  // namespace

void ErpcScenario::connect(ErpcNode& node, std::size_t server, std::vector<ClientSession>& sessions) {
    const port::PathKey key{world_.network().address_of(node.index), world_.network().address_of(server),
                            port::kFirstUdpSourcePort, 0};
    const roce::UdAddress peer{node.host->port().open_path(key, node.now()), plan_.qpn, kErpcQkey};
    if (const auto session = node.endpoint->connect(peer, node.now()); session.ok()) {
        sessions.push_back({session.value(), server, node.now()});
    }
}

// Makes one step of a client. Sometimes it connects, ends a session or cancels; mostly it calls.
void ErpcScenario::act(ErpcNode& node) {
    if (node.sessions.size() < kSessionsPerClient && node.endpoint->sessions_open() < 16) {
        connect(node, clients_ + random_.below(nodes_.size() - clients_), node.sessions);
    }
    if (!world_.healed() && random_.chance(3'000) && !node.sessions.empty()) {
        const auto at = static_cast<std::ptrdiff_t>(random_.below(node.sessions.size()));
        const SessionId session = node.sessions[static_cast<std::size_t>(at)].id;
        node.sessions.erase(node.sessions.begin() + at);
        node.endpoint->disconnect(session, node.now());
    }
    if (!world_.healed() && random_.chance(30'000) &&
        !calls_.empty()) {  // harmless if the call is over or belongs to another client
        const std::size_t recent = std::min<std::size_t>(calls_.size(), 64);
        node.endpoint->cancel(calls_[calls_.size() - 1 - random_.below(recent)].id, node.now());
    }
    if (!world_.healed() && world_.mix().babble_every.ns != 0 && random_.chance(100'000)) {
        call_babbler(node);
    }
    if (node.sessions.empty()) {
        return;
    }
    const SessionId session = node.sessions[random_.below(node.sessions.size())].id;
    if (random_.chance(50'000)) {
        begin_conversation(converse(node, session, random_.between(1, 10)));
    }
    for (std::uint64_t calls = random_.chance(30'000) ? random_.between(8, 40) : 1; calls > 0; --calls) {
        post(node, session, plan_call(node));
    }
}

// Calls the host that sends invalid packets. Any outcome is allowed.
void ErpcScenario::call_babbler(ErpcNode& node) {
    if (node.odd_sessions.size() < 2) {
        connect(node, babbler_.node(), node.odd_sessions);
    }
    if (!node.odd_sessions.empty()) {
        const SessionId session = node.odd_sessions[random_.below(node.odd_sessions.size())].id;
        CallRecord& record = plan_call(node);
        record.odd = true;
        post(node, session, record);
    }
}

// Answers such a request with anything, or not at all. Sometimes leaves the room as it is.
void ErpcScenario::answer_babble(ErpcNode& node, const erpc::Request& request) {
    if (random_.chance(100'000)) {
        return;
    }
    const auto bytes = static_cast<std::uint32_t>(random_.below(node.endpoint->max_message_bytes() + 1));
    const std::span<std::uint8_t> room = request.endpoint.reserve(request.handle, bytes);
    check(is_clean(room) && !has_content(request.payload), "a stranger sees no bytes of others", &node);
    if (request.payload.size() % 2 == 0) {
        const auto copied = static_cast<std::ptrdiff_t>(std::min(room.size(), request.payload.size()));
        std::copy_n(request.payload.begin(), copied, room.begin());
    }
    request.endpoint.respond(request.handle, node.now());
}

// Makes a call. post() sets its completion.
CallRecord& ErpcScenario::plan_call(ErpcNode& node) {
    const std::uint32_t most = node.endpoint->max_message_bytes();
    const bool small = in_order_ || random_.chance(800'000);  // large ones take credits and time

    CallRecord& record = calls_.emplace_back();
    record.type = static_cast<std::uint8_t>(random_.between(kAtOnce, kBrief));
    const std::uint32_t response_most = small || record.type == kBrief ? kBriefMost : most;
    record.tag = {static_cast<std::uint32_t>(node.index), static_cast<std::uint32_t>(calls_.size() - 1),
                  static_cast<std::uint32_t>(random_.below(response_most + 1))};
    record.request.resize(sizeof(CallTag) + random_.below(small ? 100 : most - sizeof(CallTag) + 1));
    fill_request(record.request, record.tag);
    if (!world_.healed() && random_.chance(100'000)) {
        record.deadline = node.now() + random_.between(microseconds(10), milliseconds(20));
    }
    if (random_.chance(200'000)) {  // mostly large enough
        record.response = node.pool->allocate(random_.chance(900'000) ? most : record.tag.response_bytes / 2);
    }
    if (record.deadline < Instant::never()) {
        node.deadlines.emplace(record.deadline, record.tag.serial);
    }
    return record;
}

erpc::Call ErpcScenario::call_of(CallRecord& record) {
    erpc::Call call;
    call.type = record.type;
    call.request = record.request;
    call.response = record.response.valid() ? &record.response : nullptr;
    call.tag = record.tag.serial;
    call.deadline = record.deadline;
    return call;
}

void ErpcScenario::post(ErpcNode& node, SessionId session, CallRecord& record) {
    erpc::Call call = call_of(record);
    call.completion = [](void* context, const erpc::CallResult& result) {
        auto& self = *static_cast<ErpcNode*>(context);
        self.scenario->complete(self, result);
    };
    call.context = &node;
    const erpc::Posted posted = node.endpoint->post(session, call, node.now());
    record.id = posted.id;
    if (posted.verdict != erpc::PostVerdict::Posted) {
        check(posted.verdict == erpc::PostVerdict::Full ||
                  (posted.verdict == erpc::PostVerdict::NoSuchSession && node.ending),
              "a live session takes calls until the table is full", &node);
        abandon(node, record);
    }
}

// Forgets a call that was not posted.
void ErpcScenario::abandon(ErpcNode& node, CallRecord& record) {
    record.abandoned = true;
    node.deadlines.erase({record.deadline, record.tag.serial});
    node.pool->release(record.response);
}

void ErpcScenario::complete(ErpcNode& node, const erpc::CallResult& result) {
    CallRecord& call = calls_[result.tag];
    end_record(node, call, result);
    if (calling_ && node.endpoint != nullptr &&
        random_.chance(30'000)) {  // a completion may post, cancel, disconnect, connect
        const bool outer = node.ending;
        node.ending =
            outer || result.status == erpc::CallStatus::PeerLost || result.status == erpc::CallStatus::Disconnected;
        act(node);
        node.ending = outer;
        if (result.status == erpc::CallStatus::Ok) {
            check(call.odd || is_response(result.response, written_of(call.tag), call.tag),
                  "a response stays until its callback returns", &node);
        }
    }
    node.pool->release(call.response);
}

void ErpcScenario::end_record(ErpcNode& node, CallRecord& call, const erpc::CallResult& result) {
    ++call.completions;
    check_result(node, call, result);
    node.deadlines.erase({call.deadline, call.tag.serial});
    // The caller may use the request's memory again, so from now on it may hold anything.
    std::fill(call.request.begin(), call.request.end(), kOverwritten);
}

void ErpcScenario::execute(ErpcNode& node, const erpc::Request& request) {
    CallTag tag;
    if (!begin(node, request.payload, tag)) {
        return;
    }
    check_order(node, request.handle.session, tag);
    if (request.type == kLater) {
        const bool much = !world_.healed() && random_.chance(50'000);
        node.late.push_back({world_.now() + random_.between(Duration{}, milliseconds(much ? 150 : 2)), request.handle,
                             tag, 0, request.keep()});
    } else if (request.type != kNested || !call_another(node, request, tag)) {
        if (LateAnswer late{world_.now(), request.handle, tag}; !answer(node, request.endpoint, late)) {
            late.kept = request.keep();
            node.late.push_back(std::move(late));
        }
    }
}

// Returns a session to another server or to this node, or nullptr if there is none.
const ClientSession* ErpcScenario::session_for_handlers(ErpcNode& node) {
    if (node.sessions.empty() && node.endpoint != nullptr) {
        connect(node, clients_ + (node.index - clients_ + 1) % (nodes_.size() - clients_), node.sessions);
    }
    return node.sessions.empty() ? nullptr : &node.sessions.front();
}

// Answers after a call to another server. Returns false if that server takes no call now.
bool ErpcScenario::call_another(ErpcNode& node, const erpc::Request& request, const CallTag& tag) {
    const ClientSession* const next = session_for_handlers(node);
    if (next == nullptr) {
        return false;
    }
    std::vector<std::uint8_t>& bytes = node.nested_requests.emplace_back(sizeof(CallTag));
    fill_request(bytes, {static_cast<std::uint32_t>(node.index), kInnerCall, 16});
    erpc::Call call;
    call.type = kAtOnce;
    call.request = bytes;
    call.tag = node.nested_requests.size() - 1;
    call.context = &node;
    call.completion = [](void* context, const erpc::CallResult& result) {
        auto& self = *static_cast<ErpcNode*>(context);
        const auto found = self.nested.find(result.tag);
        self.scenario->check(found != self.nested.end(), "a nested call completes once", &self);
        if (found != self.nested.end()) {  // the outer call gets its answer however the inner one ended
            self.late.push_back(std::move(found->second));
            self.nested.erase(found);
        }
    };
    if (node.endpoint->post(next->id, call, node.now()).verdict != erpc::PostVerdict::Posted) {
        return false;
    }
    ++counters_.nested;
    node.nested[call.tag] = {world_.now(), request.handle, tag, 0, request.keep()};
    return true;
}

// Answers a kept request. Without a buffer it must be tried again for a while; after that it is refused. The handle may
// also have become stale. Returns false if it must be tried again.
bool ErpcScenario::answer(ErpcNode& node, erpc::Endpoint& endpoint, LateAnswer& answer) {
    const std::span<std::uint8_t> room = endpoint.reserve(answer.handle, answer.tag.response_bytes);
    if (room.data() == nullptr) {
        if (world_.healed() || answer.attempts < kAttempts) {
            answer.due = world_.now() + milliseconds(1);
            ++answer.attempts;
            return false;
        }
        endpoint.refuse(answer.handle, node.now());
        return true;
    }
    check(write_response(room, answer.tag), "a handler gets the room it asks for, all 0", &node);
    endpoint.respond(answer.handle, node.now());
    return true;
}

void ErpcScenario::answer_late(ErpcNode& node) {
    std::vector<LateAnswer> due;
    for (std::size_t i = 0; i < node.late.size();) {
        if (node.late[i].due <= world_.now()) {
            due.push_back(std::move(node.late[i]));
            node.late.erase(node.late.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            ++i;
        }
    }
    for (LateAnswer& each : due) {
        if (!answer(node, *node.endpoint, each)) {
            node.late.push_back(std::move(each));
        }
    }
}

void ErpcScenario::session_changed(ErpcNode& node, SessionId session, erpc::SessionEvent event) {
    if (event != erpc::SessionEvent::Connected) {
        for (std::vector<ClientSession>* const sessions : {&node.sessions, &node.odd_sessions}) {
            std::erase_if(*sessions, [session](const ClientSession& each) { return each.id == session; });
        }
    }
    counters_.peers_lost += event == erpc::SessionEvent::PeerLost ? 1 : 0;
    check(world_.now() < settled_ || event != erpc::SessionEvent::PeerLost, "a session of two live peers stays", &node);
    check(world_.now() < settled_ || event != erpc::SessionEvent::Refused, "a source that takes all it can leaves room",
          &node);
}

}  // namespace cairn::sim
