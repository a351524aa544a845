#include "rpc/sim/copyrpc_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rpc/copyrpc/format.hpp"
#include "rpc/copyrpc/message.hpp"
#include "rpc/sim/copyrpc_stranger.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint16_t kRingsMost = 6;
constexpr std::size_t kLongMessages = 8;  // long messages for which there is memory, where it is scarce
constexpr std::size_t kRingsPoolBytes = std::size_t{kRingsMost} * 4 * 65536 + (1U << 20U);
constexpr std::uint64_t kTriesMost = 60;
constexpr std::uint32_t kThreads = 2;
constexpr std::uint64_t kJobsMost = 8;
constexpr std::uint32_t kJobAnswerMost = 400;  // every ring takes it
constexpr std::uint32_t kExtrasMost = 1;       // in a request: a deadline

using copyrpc::Attempt;
using copyrpc::Message;

}  // namespace

std::size_t CopyrpcSystem::memory_most() const {
    return kRingsPoolBytes;
}

void CopyrpcSystem::start(LinkedNode& node, connections::Home& home) {
    Part& part = part_of(node);
    copyrpc::EndpointConfig& config = part.config;
    const bool large = plan_.most_ring_bytes / plan_.least_ring_bytes > 1 && random_.chance(kMillion / 2);
    config.ring_bytes = large ? plan_.most_ring_bytes : plan_.least_ring_bytes;
    config.peer_ring_bytes_max = plan_.most_ring_bytes;
    config.receives = static_cast<std::uint16_t>(4U << random_.below(4));
    config.sessions_max = node.limits.sessions_max = static_cast<std::uint16_t>(random_.between(1, kRingsMost));
    config.calls_max = static_cast<std::uint32_t>(random_.chance(kMillion / 4) ? random_.between(1, 16) : 256);
    node.limits.calls_max = config.calls_max;
    node.limits.job_answer_bytes = kJobAnswerMost;
    part.threads = std::make_unique<JobThreads>(kThreads, static_cast<std::uint32_t>(random_.between(1, kJobsMost)));
    config.background = &part.threads->pool();
    config.message_bytes_max = plan_.longest_bytes;
    config.flow = plan_.flow;
    config.hold.messages = plan_.hold_messages;
    config.answer_bytes = static_cast<std::uint32_t>(random_.below(400));
    config.peer_timeout = plan_.users.peer_timeout;
    config.path_mtu_bytes = plan_.users.path_mtu_bytes;
    // Where memory is scarce, the pool has room for few sessions, but at least one, and for some long messages.
    std::size_t bytes = kRingsPoolBytes;
    if (world_.mix().node.scarce_memory) {
        const std::size_t session =
            rpc::MsgPool::bytes_for(config.ring_bytes) + rpc::MsgPool::bytes_for(plan_.most_ring_bytes);
        const auto sessions = static_cast<std::uint16_t>(random_.between(2, 5));
        bytes = std::min(bytes, session * sessions);
        if (plan_.longest_bytes != 0) {
            bytes += kLongMessages * rpc::MsgPool::bytes_for(plan_.longest_bytes);
            config.sessions_max = node.limits.sessions_max = std::min(config.sessions_max, sessions);
        }
    }
    config.host_sessions_max = config.sessions_max;
    node.pool.emplace(node.memory.span().first(bytes));
    auto endpoint = std::make_unique<LinkedEndpointOf<copyrpc::Endpoint>>(
        copyrpc::Endpoint::create(config, *node.device, home, *node.pool).value());
    part.system = this;
    part.node = &node;
    part.endpoint = &endpoint->own();
    one_sided_.start(node, *part.endpoint);
    part.endpoint->set_room_callback(
        [](void* context, SessionId id) {
            const Part& self = *static_cast<Part*>(context);
            self.system->on_room(*self.node, id);
        },
        &part);
    const Status set = part.endpoint->set_background_handler(
        static_cast<std::uint8_t>(Handling::Background),
        [](void* context, rpc::BackgroundRequest& request) {
            const Part& self = *static_cast<Part*>(context);
            self.node->oracle->run_job(*self.node, request, self.threads->runs_since());
        },
        &part, kJobAnswerMost);
    CAIRN_ASSERT(set.ok());
    node.endpoint = std::move(endpoint);
}

void CopyrpcSystem::stop(LinkedNode& node) {
    one_sided_.stop(node);
    part_of(node) = {};
}

std::unique_ptr<LinkedStranger> CopyrpcSystem::make_stranger(LinkedNode& node, connections::Home& home) {
    return std::make_unique<CopyrpcStranger>(world_, *node.host, home, plan_.users.path_mtu_bytes, plan_.flow);
}

void CopyrpcSystem::count(LinkedNode& node) {
    const copyrpc::Statistics& said = part_of(node).endpoint->statistics();
    counters_.late_answers += said.late_answers;
    counters_.displaced += said.links.displaced;
    counters_.batches += said.batches_sent;
    counters_.fetched += said.requests_fetched;
    counters_.written += said.answers_written;
    counters_.words += said.words_read;
    const auto transport = node.host->worker().engine().rc_counters().snapshot();
    node.oracle->check(
        !plan_.users.alone || plan_.users.has_strangers || transport.of(roce::rc::RcCounter::RnrNakSent) == 0,
        "a batch finds a receive request", &node);
}

void CopyrpcSystem::plan_sizes(LinkedNode& node, LinkedCall& call) {
    const copyrpc::EndpointConfig& config = part_of(node).config;
    const copyrpc::RingShape ring = random_.chance(kMillion / 2) ? plan_.least_ring() : plan_.most_ring();
    const std::uint32_t longest = ring.message_max() * copyrpc::kBlockBytes;
    const std::uint32_t longest_answer = Message::answer_max(CopyrpcPlan::shape_of(config.ring_bytes).charge_max());
    const bool brief = random_.chance(kMillion * 8 / 10);
    std::uint64_t bytes = brief ? random_.below(kBriefMost) : random_.below(longest);
    if (!brief && random_.chance(kMillion / 4)) {
        bytes = longest - random_.below(60) - sizeof(CallTag);
    }
    const bool is_long = plan_.longest_bytes != 0 && random_.chance(kMillion / 20);
    // Calls that wait for memory must not hold the buffers for which they wait.
    const bool has_long_room = is_long && !world_.mix().node.scarce_memory;
    if (is_long) {
        bytes = random_.below(plan_.longest_bytes - sizeof(CallTag) + 20);
    }
    call.request.resize(sizeof(CallTag) + bytes);
    call.answer_room = config.answer_bytes;
    if (random_.chance(kMillion / 4)) {
        const std::uint64_t room = has_long_room ? random_.below(plan_.longest_bytes + 20)
                                   : brief       ? random_.below(kBriefMost)
                                                 : random_.below(longest_answer + 40);
        call.response = node.pool->allocate(static_cast<std::uint32_t>(room));
        call.answer_room = call.response.valid() ? call.response.capacity : call.answer_room;
    }
}

void CopyrpcSystem::plan_brief(LinkedNode& node, LinkedCall& call) {
    call.request.resize(sizeof(CallTag) + random_.below(8));
    call.answer_room = part_of(node).config.answer_bytes;
}

// Background jobs take memory. Where memory is scarce, calls that wait for jobs may hold all of it.
Handling CopyrpcSystem::draw_handling() {
    if (!world_.mix().node.scarce_memory && random_.chance(kMillion / 6)) {
        return Handling::Background;
    }
    return static_cast<Handling>(random_.between(1, static_cast<std::uint64_t>(Handling::Nested)));
}

bool CopyrpcSystem::is_too_long(const LinkedCall& call, copyrpc::RingShape own, copyrpc::RingShape peer) const {
    const auto bytes = static_cast<std::uint32_t>(call.request.size());
    return (Message::blocks_of(bytes, call.deadline < Instant::never()) > peer.message_max() &&
            bytes > plan_.longest_bytes) ||
           (Message::charge_for(call.answer_room) > own.charge_max() && call.answer_room > plan_.longest_bytes);
}

// True if some part of a ring of this world is too short for the call.
bool CopyrpcSystem::may_be_too_long(const LinkedNode& /*client*/, const LinkedCall& call) const {
    return call.odd || is_too_long(call, plan_.least_ring(), plan_.least_ring());
}

// True if every ring is too short for the call.
bool CopyrpcSystem::must_be_too_long(const LinkedNode& client, const LinkedCall& call) const {
    const copyrpc::RingShape own = CopyrpcPlan::shape_of(part_of(client).config.ring_bytes);
    return !call.odd && is_too_long(call, own, plan_.most_ring());
}

// True for a call that fits the ring whatever rings it meets. A message that travels by itself may be overtaken.
bool CopyrpcSystem::keeps_order(const LinkedCall& call) const {
    const copyrpc::RingShape ring = plan_.least_ring();
    return plan_.longest_bytes == 0 ||
           (Message::blocks_of(static_cast<std::uint32_t>(call.request.size()), kExtrasMost) <= ring.message_max() &&
            Message::charge_for(call.answer_room) <= ring.charge_max());
}

Attempt CopyrpcSystem::try_one(LinkedNode& node, SessionId id, LinkedCall& call) {
    Part& part = part_of(node);
    LinkedCalling::begin(node, call);
    const copyrpc::Tried tried = part.endpoint->try_post(id, LinkedCalling::call_of(node, call), node.now());
    call.id = tried.id;
    const bool in_vain = tried.attempt == Attempt::RingFull || tried.attempt == Attempt::InsufficientCredit;
    const bool too_long = tried.attempt == Attempt::TooLong;
    node.oracle->check(!too_long || may_be_too_long(node, call), "a call that fits into every ring is taken", &node);
    node.oracle->check(too_long || !(tried.attempt == Attempt::Posted || in_vain) || !must_be_too_long(node, call),
                       "a call that fits into no ring is not taken", &node);
    if (const LinkedSession* const tries = node.find(id); tries != nullptr && in_vain) {
        ++counters_.tried_in_vain;
        part.wanted[tries->serial] = {static_cast<std::uint32_t>(call.request.size()), call.answer_room,
                                      call.deadline < Instant::never()};
    }
    if (tried.attempt != Attempt::Posted) {
        LinkedCalling::abandon(node, call);
    }
    return tried.attempt;
}

// READs and WRITEs, or tries calls until there is no room.
bool CopyrpcSystem::act(LinkedNode& node, const LinkedSession& tried) {
    if (one_sided_.act(node, tried)) {
        return true;
    }
    for (std::uint64_t left = random_.between(1, kTriesMost); left > 0; --left) {
        const LinkedSession* const session = node.find(tried.id);
        if (session == nullptr) {
            break;
        }
        const bool is_open = session->open;
        const Attempt attempt = try_one(node, tried.id, node.calling->plan_call(node, *session));
        node.oracle->check((attempt == Attempt::NotOpen) == !is_open || node.ending != 0,
                           "an open session can be tried, and no other", &node);
        node.oracle->check(attempt != Attempt::NoSuchSession || node.ending != 0, "a live session can be tried", &node);
        if (attempt != Attempt::Posted && attempt != Attempt::TooLong) {
            break;
        }
    }
    return true;
}

// Checks that a call of the same size has room now.
void CopyrpcSystem::on_room(LinkedNode& node, SessionId id) {
    const LinkedSession* const session = node.find(id);
    Part& part = part_of(node);
    const auto found = session != nullptr ? part.wanted.find(session->serial) : part.wanted.end();
    node.oracle->check(found != part.wanted.end(), "only who asked is told of room", &node);
    if (world_.broken()) {
        return;
    }
    ++counters_.told_of_room;
    const copyrpc::Wanted wanted = found->second;
    part.wanted.erase(found);
    if (node.calling->is_calm() || wanted.answer_bytes != part.config.answer_bytes) {
        return;  // no buffer of this size is left
    }
    LinkedCall& call = node.calling->plan_call(node, *session);
    node.pool->release(call.response);
    call.answer_room = wanted.answer_bytes;
    call.tag.response_bytes = std::min(call.tag.response_bytes, wanted.answer_bytes);
    call.request.resize(wanted.request_bytes);
    fill_request(call.request, call.tag);
    call.deadline = wanted.extras != 0 ? node.now() + milliseconds(1) : Instant::never();
    const Attempt attempt = try_one(node, id, call);
    node.oracle->check(attempt == Attempt::Posted || attempt == Attempt::Full, "who is told of room has room", &node);
    if (const LinkedSession* const live = node.find(id); live != nullptr && random_.chance(kMillion / 4)) {
        (void)act(node, *live);
    }
}

void CopyrpcSystem::on_turn(LinkedNode& node) {
    node.oracle->check(part_of(node).threads->end(world_.now()), "a thread keeps its job", &node);
    after_turn(node);
}

void CopyrpcSystem::after_turn(LinkedNode& node) {
    part_of(node).threads->begin(world_.now(), [this] {
        const bool much = !world_.healed() && random_.chance(kMillion / 20);
        return random_.between(Duration{}, much ? milliseconds(12) : microseconds(500));
    });
}

void CopyrpcSystem::check_quiet(LinkedNode& node) {
    one_sided_.check_quiet(node);
    for (const LinkedSession& session : node.sessions) {
        node.oracle->check(!part_of(node).wanted.contains(session.serial), "who waits for room is told of it", &node);
    }
}

std::string CopyrpcSystem::text() const {
    return fmt::format(
        "rings of {} to {} bytes, flow {}, messages of {} bytes, {} tried in vain, {} told of room, {} "
        "batches, {} READ, {} WRITTEN",
        plan_.least_ring_bytes, plan_.most_ring_bytes, plan_.flow == copyrpc::Flow::Read ? "read" : "credit",
        plan_.longest_bytes, counters_.tried_in_vain, counters_.told_of_room, counters_.batches, counters_.fetched,
        counters_.written);
}

}  // namespace cairn::sim
