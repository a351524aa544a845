#include "rpc/sim/linked_oracle.hpp"

#include <algorithm>

#include "rpc/common/deadlines.hpp"
#include "rpc/sim/true_source.hpp"

namespace cairn::sim {

LinkedCall& LinkedOracle::add(const LinkedNode& client) {
    LinkedCall& call = calls_.emplace_back();
    call.tag.client = static_cast<std::uint32_t>(client.host->index());
    call.tag.serial = static_cast<std::uint32_t>(calls_.size() - 1);
    ++counters_.calls;
    return call;
}

namespace {

constexpr Duration kRounded = microseconds(1);  // unit of the time that is left

}  // namespace

LinkedCall* LinkedOracle::begin(LinkedNode& server, std::span<const std::uint8_t> payload, Instant began) {
    const CallTag tag = payload.size() >= sizeof(CallTag) ? CallTag::read(payload) : CallTag{};
    const bool known = payload.size() >= sizeof(CallTag) && tag.serial < calls_.size() &&
                       payload.size() == calls_[tag.serial].request.size() &&
                       tag.client == calls_[tag.serial].tag.client &&
                       tag.response_bytes == calls_[tag.serial].tag.response_bytes &&
                       holds(payload, sizeof(CallTag), tag, Part::Request);
    if (!known) {
        check(plan_.has_strangers, "a request arrives as it was sent", &server);
        for_each_owner(payload, [&](const Owner& owner) {
            check(is_sent_to_strangers(owner), "a stranger's request holds no bytes of others", &server);
        });
        ++counters_.ends.strange;
        return nullptr;
    }
    LinkedCall& call = calls_[tag.serial];
    ++call.executions;
    check(call.executions == 1, "a request is executed at most once, by whatever process", &server);
    check(!call.odd, "a request is executed by the peer that it was sent to", &server);
    check_in_time(server, call, began);
    if (call.session != 0 && call.handling != Handling::Background && call.handling != Handling::Legacy &&
        system_.keeps_order(call)) {
        const auto [last, first] = server.last_executed.try_emplace(call.session, tag.serial);
        check(first || last->second < tag.serial, "a session's calls are executed in the order of their posting",
              &server);
        last->second = tag.serial;
    }
    return world_.broken() ? nullptr : &call;
}

void LinkedOracle::run_job(LinkedNode& server, rpc::BackgroundRequest& request, Instant began) {
    LinkedCall* const call = begin(server, request.payload(), began);
    ++counters_.in_background;
    if (call == nullptr) {
        return;  // from a hostile peer
    }
    check(call->handling == static_cast<Handling>(request.type()), "a request has its type", &server);
    const std::span<std::uint8_t> room = request.reserve(call->tag.response_bytes);
    write_answer(server, room, *call);
}

void LinkedOracle::write_answer(LinkedNode& server, std::span<std::uint8_t> room, LinkedCall& call) {
    check(write_response(room, call.tag), "a handler gets the room it asks for, all 0", &server);
    call.written = written_of(call.tag);
}

bool LinkedOracle::is_answer(const LinkedCall& call, std::span<const std::uint8_t> answer) {
    return call.echoed ? std::equal(answer.begin(), answer.end(), call.request.begin())
                       : is_response(answer, call.written, call.tag);
}

// Checks a frame. Clients are workers. A response belongs to one of them; of a request only the host is known.
void LinkedOracle::check_frame(std::size_t to, const Frame& frame) {
    const std::size_t from = world_.network().node_of(frame.source());
    const auto workers = to < world_.hosts() ? world_.workers_of(to) : std::span<const std::unique_ptr<Node>>{};
    for_each_owner(frame.udp_bytes(), [&](const Owner& owner) {
        const std::size_t host = owner.client < world_.nodes() ? world_.node(owner.client).host() : world_.hosts();
        const bool is_receivers =
            host == to && !workers.empty() &&
            (owner.part == Part::Request ||
             world_.node(owner.client).number() ==
                 port::QpnOwners(static_cast<std::uint32_t>(workers.size())).of(frame.dest_qpn()));
        check(is_receivers || (host == from && owner.part == Part::Request) || is_sent_to_strangers(owner) ||
                  from >= world_.hosts() || !is_from_its_source(world_.network(), frame),
              "a frame holds no bytes of others");
    });
}

void LinkedOracle::check_stranger(const LinkedNode& node) {
    for_each_owner(node.stranger->memory(), [&](const Owner& owner) {
        check(is_sent_to_strangers(owner), "a stranger has no bytes of others", &node);
    });
}

bool LinkedOracle::is_sent_to_strangers(const Owner& owner) const {
    return owner.part == Part::Request && owner.serial < calls_.size() && calls_[owner.serial].odd &&
           calls_[owner.serial].tag.client == owner.client;
}

// Checks deadlines. If something may delay a request on its way, its lateness is unknown.
void LinkedOracle::check_in_time(const LinkedNode& server, const LinkedCall& call, Instant began) {
    if (call.over == Instant::never() || !world_.mix().is_prompt()) {
        return;
    }
    ++counters_.executed_in_time;
    const Duration late_most = world_.mix().shape.delay * system_.ways_of_request() + kRounded;
    check(began <= call.over + late_most, "nothing is executed behind its deadline", &server);
}

void LinkedOracle::end(LinkedNode& client, LinkedCall& call, const rpc::CallResult& result) {
    ++call.completions;
    check(call.completions == 1, "a call completes once", &client);
    check(!call.abandoned, "a call of a restarted client does not complete", &client);
    client.pending.erase(call.tag.serial);
    client.deadlines.erase({call.deadline, call.tag.serial});
    if (!call.odd) {
        check_result(client, call, result);
    }
    // The caller may use the request's memory again, so from now on it may hold anything.
    std::fill(call.request.begin(), call.request.end(), kOverwritten);
}

// True if a server whose clock has leapt may take a request that waits for a thread for expired.
bool LinkedOracle::may_expire_early(const LinkedCall& call) const {
    const bool waits = system_.stages_requests() || call.handling == Handling::Background ||
                       call.handling == Handling::Legacy || !system_.keeps_order(call);
    return waits && call.executions == 0 && call.deadline < Instant::never() &&
           world_.mix().node.clock_jump_every.ns != 0;
}

void LinkedOracle::check_answer(LinkedNode& client, const LinkedCall& call, std::span<const std::uint8_t> answer) {
    check(call.executions == 1 && !call.refused, "an answered call was executed once", &client);
    check(answer.size() == call.tag.response_bytes, "the answer is the request's, by its size", &client);
    check(!call.response.valid() || answer.data() == call.response.data,
          "an answer lies in the caller's buffer if there is one", &client);
    check(is_answer(call, answer), "the answer is the request's, by its content", &client);
}

void LinkedOracle::check_result(LinkedNode& client, const LinkedCall& call, const rpc::CallResult& result) {
    switch (result.status) {
        case rpc::CallStatus::Ok:
            ++counters_.calls_ok;
            check_answer(client, call, result.response);
            break;
        case rpc::CallStatus::ResponseTooLong:
            ++counters_.too_long;
            check(call.executions == 1 && call.tag.response_bytes > call.answer_room,
                  "only an answer that does not fit is too long", &client);
            break;
        case rpc::CallStatus::RequestTooLong:
            ++counters_.too_long;
            check(call.executions == 0 && system_.may_be_too_long(client, call),
                  "only a call that does not fit is too long", &client);
            break;
        case rpc::CallStatus::DeadlinePassed:
            ++counters_.deadlines_passed;
            check(call.deadline <= client.now() || may_expire_early(call), "a deadline that passes was there", &client);
            break;
        case rpc::CallStatus::Cancelled:
            ++counters_.cancelled;
            check(call.cancelled, "only a cancelled call is", &client);
            break;
        case rpc::CallStatus::AnswerLost:
            counters_.answers_refused += call.refused ? 1 : 0;
            counters_.answers_given_up += call.refused ? 0 : 1;
            check(call.executions == 1, "a call whose answer is lost was executed once", &client);
            check(call.refused || system_.may_give_up(), "only a refused answer is lost", &client);
            break;
        case rpc::CallStatus::NoHandler:
            check(call.handling == Handling::Nobody, "every type but one has its handler", &client);
            break;
        case rpc::CallStatus::Disconnected:
            ++counters_.disconnected;
            break;
        case rpc::CallStatus::PeerLost:
            ++counters_.calls_lost;
            break;
        case rpc::CallStatus::NotExecuted:
        case rpc::CallStatus::TableFull:
        case rpc::CallStatus::BadResponse:
            check(false, "a call that was posted ends otherwise", &client);
            break;
    }
}

void LinkedOracle::check_kept(LinkedNode& server) {
    for (const KeptRequest& each : server.kept) {
        if (!each.payload.empty() && server.endpoint->retain(each.handle)) {
            const CallTag& tag = calls_[each.serial].tag;
            check(CallTag::read(each.payload).serial == tag.serial &&
                      holds(each.payload, sizeof(CallTag), tag, Part::Request),
                  "a retained request stays as it is until its answer", &server);
        }
    }
}

void LinkedOracle::check_bounds(const LinkedNode& node) {
    check(node.deadlines.empty() || node.deadlines.begin()->first + rpc::Deadlines::kSlot > node.now(),
          "a call ends by its deadline", &node);
    check(node.pending.size() == node.endpoint->calls_pending() + system_.uncollected(node),
          "an endpoint has the calls that have not ended", &node);
    check(plan_.has_strangers || node.endpoint->breaches() == 0, "no honest end breaks a rule", &node);
    check(node.endpoint->sessions_open() <= node.limits.sessions_max, "an endpoint has no more sessions than it may",
          &node);
}

}  // namespace cairn::sim
