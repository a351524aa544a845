// Checks eRPC's promises in a simulated world.
#include <algorithm>

#include "rpc/erpc/limits.hpp"
#include "rpc/sim/erpc_scenario.hpp"

namespace cairn::sim {

namespace {

// Several longest retransmission timeouts: a request that finds no background job waits for the next one.
constexpr Duration kAnsweredIn = erpc::kRtoMax * 20;
// For worlds in which every turn of a node is slow, and a session has one credit, so that each turn brings one packet.
constexpr Duration kAnsweredSlowlyIn = kAnsweredIn * 5;

}  // namespace

void ErpcScenario::check(bool condition, const char* promise, const ErpcNode* node) {
    world_.check(condition, promise, node != nullptr ? node->host : nullptr);
}

bool ErpcScenario::begin(ErpcNode& node, std::span<const std::uint8_t> payload, CallTag& tag) {
    check(payload.size() >= sizeof(CallTag), "a request arrives whole", &node);
    if (world_.broken()) {
        return false;
    }
    tag = CallTag::read(payload);
    const bool whole = holds(payload, sizeof(CallTag), tag, Part::Request);
    if (tag.serial == kInnerCall) {
        check(whole && tag.client >= clients_ && tag.client < nodes_.size(), "an inner request arrives as it was sent",
              &node);
        return !world_.broken();
    }
    const bool known = tag.serial < calls_.size();
    check(known && whole && payload.size() == calls_[tag.serial].request.size() &&
              tag.client == calls_[tag.serial].tag.client &&
              tag.response_bytes == calls_[tag.serial].tag.response_bytes,
          "a request arrives as it was sent", &node);
    if (world_.broken()) {
        return false;
    }
    CallRecord& call = calls_[tag.serial];
    ++call.executions;
    check(call.executions == 1, "a request is executed at most once, by whatever process", &node);
    return !world_.broken();
}

// Checks the order of requests. Jobs overtake each other, so it does not apply to them.
void ErpcScenario::check_order(ErpcNode& node, SessionId session, const CallTag& tag) {
    // If there is a credit for each slot, requests do not overtake each other: slots are filled in the order of
    // posting.
    if (in_order_ && tag.serial != kInnerCall && nodes_[tag.client]->credits >= erpc::kSlotsPerSession) {
        const auto [last, first] = node.last_serial.try_emplace(session, tag.serial);
        check(first || last->second < tag.serial, "a session's calls leave in the order of their posting", &node);
        last->second = tag.serial;
    }
}

void ErpcScenario::check_result(ErpcNode& node, const CallRecord& call, const erpc::CallResult& result) {
    check(call.completions == 1, "a call completes once", &node);
    check(!call.abandoned, "a call of a restarted client does not complete", &node);
    if (call.odd) {
        ++counters_.odd_calls;
        return;
    }
    switch (result.status) {
        case erpc::CallStatus::Ok:
            ++counters_.calls_ok;
            check(call.executions == 1, "an answered call was executed once", &node);
            check(result.response.size() == call.tag.response_bytes, "the response is the request's, by its size",
                  &node);
            check(is_response(result.response, written_of(call.tag), call.tag),
                  "the response is the request's, by its content", &node);
            check(!call.response.valid() || result.response.data() == call.response.data,
                  "a response lies in the caller's buffer if there is one", &node);
            break;
        case erpc::CallStatus::ResponseTooLong:
            ++counters_.too_long;
            check(call.response.valid() && call.tag.response_bytes > call.response.capacity,
                  "only a response that does not fit is too long", &node);
            break;
        case erpc::CallStatus::DeadlinePassed:
            ++counters_.deadlines_passed;
            check(call.deadline <= node.now(), "a deadline that passes was there", &node);
            break;
        case erpc::CallStatus::Cancelled:
            ++counters_.cancelled;
            check(!world_.healed(), "only a cancelled call is", &node);
            break;
        case erpc::CallStatus::AnswerLost:
            ++counters_.answers_lost;
            check(call.executions == 1, "a call whose answer is lost was executed once", &node);
            break;
        case erpc::CallStatus::NoHandler:
            check(false, "every type has its handler", &node);
            break;
        case erpc::CallStatus::Disconnected:
        case erpc::CallStatus::PeerLost:
            break;
        case erpc::CallStatus::NotExecuted:
        case erpc::CallStatus::TableFull:
        case erpc::CallStatus::RequestTooLong:
        case erpc::CallStatus::BadResponse:
            check(false, "a call that was posted ends otherwise", &node);
            break;
    }
}

// Checks, after a turn, that everything is decided that depends only on time before the turn began. A clock may leap
// during the turn. Each scan is at most one interval old, and the wheel of the deadlines turns in slots.
void ErpcScenario::check_bounds(const ErpcNode& node) {
    const Instant looked = node.looked_at_time;
    check(
        node.deadlines.empty() || node.deadlines.begin()->first + erpc::kScanInterval + erpc::Deadlines::kSlot > looked,
        "a call ends by its deadline", &node);
    for (const ClientSession& session : node.sessions) {
        const Instant heard = std::max({session.opened, node.heard[session.peer], node.returned});
        check(looked - heard <= peer_timeout_ + erpc::kControlRetry + erpc::kScanInterval,
              "a silent peer is given up in time", &node);
    }
}

void ErpcScenario::run_until_answered() {
    const auto pending = [](const auto& node) { return node->endpoint->calls_pending() != 0; };
    const Instant limit = world_.now() + (world_.has_slow_node() ? kAnsweredSlowlyIn : kAnsweredIn);
    while (world_.now() < limit && !world_.broken() && std::any_of(nodes_.begin(), nodes_.end(), pending)) {
        world_.run_until(world_.now() + milliseconds(10));
    }
}

// Checks that every call has ended, and that new ones are answered in order, whatever happened before.
void ErpcScenario::check_progress() {
    run_until_answered();
    for (const auto& node : nodes_) {
        check(node->endpoint->calls_pending() == 0, "no call stays pending once the network healed", node.get());
        node->last_serial.clear();
    }
    for (const CallRecord& call : calls_) {
        check(call.completions == 1 || call.abandoned, "every call completes");
    }
    const std::uint64_t before = counters_.calls_ok + counters_.too_long;
    // Within 3 ms a slow node has only one turn.
    const Duration calling_again =
        std::max(plan_.calling_again, world_.has_slow_node() ? milliseconds(20) : Duration{});
    const std::uint64_t lost_before = counters_.answers_lost;
    const std::size_t first = calls_.size();
    calling_ = true;
    in_order_ = !world_.mix().node.scarce_memory && !world_.mix().node.runs_ahead;  // else some are put off
    world_.run_until(world_.now() + calling_again / 2);
    if (world_.mix().node.clock_jump_every.ns != 0) {
        for (auto& node : nodes_) {
            node->host->jump();  // a jump costs no session
        }
    }
    world_.run_until(world_.now() + calling_again / 2);
    calling_ = false;
    run_until_answered();
    in_order_ = false;
    check(calls_.size() > first + 3, "healed clients can post");
    // Where memory is scarce, a long answer may have been dropped for others, if its client read too slowly.
    const std::uint64_t lost = counters_.answers_lost - lost_before;
    check(lost <= (world_.mix().node.scarce_memory ? (calls_.size() - first) / 100 + 1 : 0),
          "answers are kept for who reads them");
    check(counters_.calls_ok + counters_.too_long - before + lost == calls_.size() - first,
          "every call after healing is answered");
    world_.run_until(world_.now() + peer_timeout_ * 3);  // in silence; only pings keep the sessions
}

void ErpcScenario::wind_up() {
    for (auto& node : nodes_) {
        for (const ClientSession& session : std::vector<ClientSession>(node->sessions)) {
            node->host->read_clock();
            node->endpoint->disconnect(session.id, node->now());
        }
    }
    next_intrusion_ = Instant::never();
    world_.run_until(world_.now() + peer_timeout_ * 3);
    check(babbler_.believed() == 0, "a server takes no session with parameters that make no sense");
    for (auto& node : nodes_) {
        check(node->endpoint->sessions_open() == 0, "every session ends", node.get());
        check(node->pool->live() == 0, "without sessions no message buffer is kept", node.get());
    }
}

void ErpcScenario::check_end() {
    std::uint64_t bad_icrcs = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const Node& node = *nodes_[i]->host;
        check(node.drops().of(roce::Drop::BadIcrc) == node.port().counters().bad_icrcs,
              "the engine counts every damaged packet", nodes_[i].get());
        bad_icrcs += node.port().counters().bad_icrcs;
    }
    const std::uint64_t corrupted = world_.network().totals().corrupted;
    check(bad_icrcs <= corrupted &&  // the others are damaged on their way to hostile hosts, or find no buffer
              (bad_icrcs == corrupted || !plan_.alone || world_.mix().port.pool_empty_per_million != 0 ||
               world_.mix().forge_per_million != 0 || world_.mix().babble_every.ns != 0 || intruder_.replayed() != 0),
          "what the network damages is noticed, and nothing else");
}

}  // namespace cairn::sim
