#include "rpc/sim/linked_serving.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace cairn::sim {

namespace {

constexpr Duration kUsuallyWithin = milliseconds(1);
constexpr Duration kSometimesWithin = milliseconds(12);

}  // namespace

void LinkedServing::start(LinkedNode& node) {
    node.endpoint->set_callbacks(
        [](void* context, SessionId id, rpc::LinkEvent event) {
            auto& self = *static_cast<LinkedNode*>(context);
            self.calling->session_changed(self, id, event);
        },
        [](void* context, const LinkedRequest& request) {
            auto& self = *static_cast<LinkedNode*>(context);
            self.serving->execute(self, request);
        },
        &node);
    for (const Handling each : {Handling::AtOnce, Handling::Later, Handling::Retained, Handling::Nested,
                                Handling::Refused, Handling::Legacy}) {
        node.endpoint->serve(static_cast<std::uint8_t>(each));
    }
}

void LinkedServing::execute(LinkedNode& node, const LinkedRequest& request) {
    LinkedCall* const call = oracle_.begin(node, request.payload, world_.now());
    if (call == nullptr) {
        execute_strange(node, request);
        return;
    }
    oracle_.check(call->handling == static_cast<Handling>(request.type), "a request has its type", &node);
    system_.on_request(node, request, *call);
    switch (call->handling) {
        case Handling::Later:
        case Handling::Legacy:
            keep(node, request, *call, false);
            break;
        case Handling::Retained:
            ++oracle_.counters().retained;
            oracle_.check(node.endpoint->retain(request.handle), "a request in its handler can be retained", &node);
            keep(node, request, *call, true);
            break;
        case Handling::Refused:
            call->refused = true;
            refuse(node, request);
            break;
        case Handling::Nested:
            if (call_another(node, request, *call)) {
                break;
            }
            [[fallthrough]];
        case Handling::AtOnce:
        case Handling::Background:
        case Handling::Nobody:
            oracle_.check(answer(node, {world_.now(), request.handle, call->tag.serial, request.payload, {}}),
                          "a request in its handler can be answered", &node);
    }
    if (!calm_ && random_.chance(kMillion / 300)) {
        calling_.disconnect(node, request.handle.session);  // while its batch is read
    }
}

// Refuses a request: explicitly, or by forgetting it at once or later.
void LinkedServing::refuse(LinkedNode& node, const LinkedRequest& request) {
    const std::uint64_t choice = random_.below(3);
    if (choice == 0) {
        oracle_.check(node.endpoint->refuse(request.handle, node.now()), "a request can be refused", &node);
    } else if (choice == 1) {
        node.kept.push_back({world_.now() + kUsuallyWithin, request.handle, 0, {}, request.keep(), true});
    }
}

// Answers a hostile peer's request in any way, or never.
void LinkedServing::execute_strange(LinkedNode& node, const LinkedRequest& request) {
    const std::uint64_t choice = random_.below(4);
    if (choice == 0) {
        (void)node.endpoint->answer(request.handle, request.payload, node.now());
    } else if (choice == 1) {
        (void)node.endpoint->refuse(request.handle, node.now());
    } else if (choice == 2) {
        const rpc::KeptRequest forgotten = request.keep();
        (void)node.endpoint->retain(request.handle);
    }
}

void LinkedServing::keep(LinkedNode& node, const LinkedRequest& request, const LinkedCall& call, bool with_payload) {
    const bool much = !world_.healed() && random_.chance(kMillion / 20);
    const Duration after = random_.between(Duration{}, much ? kSometimesWithin : kUsuallyWithin);
    node.kept.push_back({world_.now() + after, request.handle, call.tag.serial,
                         with_payload ? request.payload : std::span<const std::uint8_t>{}, request.keep()});
}

// Makes a call over a session of its own, or over that of the request. Returns false if no session takes a call.
bool LinkedServing::call_another(LinkedNode& node, const LinkedRequest& request, const LinkedCall& call) {
    const bool back = system_.calls_back() && random_.chance(kMillion / 2);
    if (!back && node.sessions.empty()) {
        return false;
    }
    const SessionId by = back ? request.handle.session : node.sessions[random_.below(node.sessions.size())].id;
    const LinkedCall* const inner = calling_.post_inner(node, by);
    if (inner == nullptr || inner->abandoned) {
        return false;
    }
    ++oracle_.counters().nested;
    node.nested[inner->tag.serial] = {world_.now(), request.handle, call.tag.serial, {}, request.keep()};
    return true;
}

void LinkedServing::answer_kept(LinkedNode& node) {
    const auto due = std::stable_partition(node.kept.begin(), node.kept.end(),
                                           [this](const KeptRequest& each) { return each.due > world_.now(); });
    const std::vector<KeptRequest> answered(std::make_move_iterator(due), std::make_move_iterator(node.kept.end()));
    node.kept.erase(due, node.kept.end());
    for (const KeptRequest& each : answered) {
        if (!each.forgotten && !answer(node, each)) {
            ++oracle_.counters().stale;
        }
    }
}

bool LinkedServing::answer(LinkedNode& node, const KeptRequest& request) {
    LinkedEndpoint& endpoint = *node.endpoint;
    LinkedCall& call = oracle_.call(request.serial);
    const CallTag tag = call.tag;
    bool answered = false;
    if (request.payload.size() >= tag.response_bytes && random_.chance(kMillion / 2)) {
        ++oracle_.counters().echoed;
        call.echoed = true;
        answered = endpoint.answer(request.handle, request.payload.first(tag.response_bytes), node.now());
    } else {
        std::vector<std::uint8_t> message(tag.response_bytes);
        fill_response(message, tag);
        call.written = tag.response_bytes;
        answered = random_.chance(kMillion / 2) ? endpoint.answer(request.handle, message, node.now())
                                                : answer_by_hand(node, request, message);
    }
    oracle_.check(!endpoint.answer(request.handle, {}, node.now()) && !endpoint.retain(request.handle),
                  "a request is answered once", &node);
    return answered;
}

// Answers in a room or with a copy. A pool without memory has no room, but a copy needs none.
bool LinkedServing::answer_by_hand(LinkedNode& node, const KeptRequest& request,
                                   std::span<const std::uint8_t> message) {
    LinkedEndpoint& endpoint = *node.endpoint;
    const auto bytes = static_cast<std::uint32_t>(message.size());
    if (random_.chance(kMillion / 4)) {
        (void)endpoint.reserve(request.handle, bytes / 2);
    }
    const std::span<std::uint8_t> room = endpoint.reserve(request.handle, bytes);
    if (room.data() == nullptr) {
        return endpoint.answer(request.handle, message, node.now());
    }
    oracle_.write_answer(node, room, oracle_.call(request.serial));
    return endpoint.respond(request.handle, node.now());
}

}  // namespace cairn::sim
