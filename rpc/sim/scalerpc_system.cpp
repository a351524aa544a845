#include "rpc/sim/scalerpc_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "rpc/sim/scalerpc_stranger.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint16_t kGuestsLeast = 2;
constexpr std::uint16_t kGuestsMost = 14;
constexpr std::size_t kGuestsPoolBytes = 8U << 20U;
constexpr std::uint64_t kBatchMost = 12;

constexpr std::array<Handling, 6> kUsual{Handling::AtOnce, Handling::AtOnce,     Handling::Later,
                                         Handling::Nested, Handling::Background, Handling::Legacy};

// Returns a call whose answer is kept until it is collected, or nullptr if there is no memory for that.
LinkedCall* plan_batched(LinkedNode& node, const LinkedSession& session, Instant deadline) {
    LinkedCall& call = node.calling->plan_call(node, session);
    call.ends_with_endpoint = false;
    call.deadline = std::min(call.deadline, deadline);
    if (!call.response.valid()) {
        call.response = node.pool->allocate(call.answer_room);
    }
    LinkedCalling::begin(node, call);
    if (!call.response.valid()) {
        LinkedCalling::abandon(node, call);
        return nullptr;
    }
    return &call;
}

rpc::Call call_of_batch(LinkedNode& node, LinkedCall& call) {
    rpc::Call posted = LinkedCalling::call_of(node, call);
    posted.completion = nullptr;
    posted.context = nullptr;
    return posted;
}

// Notifies the node of the end of a call.
void complete(LinkedNode& node, const scalerpc::Completed& ended) {
    const bool answered = ended.status == rpc::CallStatus::Ok;
    node.calling->complete(node, {ended.status, answered ? ended.response->span() : std::span<const std::uint8_t>{},
                                  ended.latency, ended.tag});
}

}  // namespace

std::size_t ScalerpcSystem::memory_most() const {
    return kGuestsPoolBytes;
}

void ScalerpcSystem::make_config(LinkedNode& node) {
    Part& part = part_of(node);
    part.threads = std::make_unique<JobThreads>(kThreads, static_cast<std::uint32_t>(random_.between(1, 8)));
    scalerpc::EndpointConfig& config = part.config;
    config.shape = plan_.shape;
    config.features = plan_.features;
    config.groups = plan_.groups;
    config.notice_timeout = plan_.notice_timeout;
    config.sessions_max = static_cast<std::uint16_t>(random_.between(kGuestsLeast, kGuestsMost));
    config.host_sessions_max = config.sessions_max;
    config.calls_max = static_cast<std::uint32_t>(random_.chance(kMillion / 4) ? random_.between(1, 16) : 256);
    // 0 would mean as many as clients wait for, for which there is no room.
    config.long_answers =
        static_cast<std::uint32_t>(random_.chance(kMillion / 4) ? std::max<std::uint64_t>(random_.below(3), 1) : 32);
    config.peer_timeout = plan_.users.peer_timeout;
    config.path_mtu_bytes = plan_.users.path_mtu_bytes;
    config.background = &part.threads->pool();
    node.limits.sessions_max = config.sessions_max;
    node.limits.calls_max = config.calls_max;
    node.limits.job_answer_bytes = plan_.shape.message_max();
}

// Makes the pool. Where memory is scarce, it has room for the endpoint and few sessions.
void ScalerpcSystem::make_pool(LinkedNode& node) {
    const scalerpc::EndpointConfig& config = part_of(node).config;
    std::size_t bytes = kGuestsPoolBytes;
    if (world_.mix().node.scarce_memory) {
        const std::size_t session = rpc::MsgPool::bytes_for(scalerpc::memory_of_caller(config));
        bytes = std::bit_ceil(scalerpc::Endpoint::memory_for(config)) * 2 + session * random_.between(2, 5);
    }
    CAIRN_ASSERT(bytes <= kGuestsPoolBytes);
    node.pool.emplace(node.memory.span().first(bytes));
}

void ScalerpcSystem::start(LinkedNode& node, connections::Home& home) {
    make_config(node);
    make_pool(node);
    Part& part = part_of(node);
    auto endpoint = std::make_unique<LinkedEndpointOf<scalerpc::Endpoint>>(
        scalerpc::Endpoint::create(part.config, *node.device, home, *node.pool).value());
    part.node = &node;
    part.endpoint = &endpoint->own();
    part.batches = std::make_unique<scalerpc::BatchCalls>(*part.endpoint, node.host->worker());
    const std::uint32_t room = node.limits.job_answer_bytes;
    const auto background = static_cast<std::uint8_t>(Handling::Background);
    const auto legacy = static_cast<std::uint8_t>(Handling::Legacy);
    const bool set = part.endpoint->set_background_handler(background, work, &part, room).ok() &&
                     part.endpoint->set_legacy_handler(legacy, work, &part, room).ok();
    CAIRN_ASSERT(set);
    node.endpoint = std::move(endpoint);
}

void ScalerpcSystem::stop(LinkedNode& node) {
    part_of(node) = {};
}

std::unique_ptr<LinkedStranger> ScalerpcSystem::make_stranger(LinkedNode& node, connections::Home& home) {
    return std::make_unique<ScalerpcStranger>(world_, *node.host, home, plan_.users.path_mtu_bytes, plan_.shape);
}

void ScalerpcSystem::count(LinkedNode& node) {
    part_of(node).batches.reset();  // calls that have not ended are not reported
    const scalerpc::Endpoint& endpoint = *part_of(node).endpoint;
    const scalerpc::Statistics& said = endpoint.statistics();
    counters_.switches += said.switches;
    counters_.notices_alone += said.notices_alone;
    counters_.keys_ended += said.keys_ended;
    counters_.fetches += said.fetches;
    counters_.requests_fetched += said.requests_fetched;
    counters_.requests_expired += said.requests_expired;
    counters_.late_answers += said.late_answers;
    counters_.displaced += said.links.displaced;
    counters_.splits += endpoint.slices().groups().splits();
    counters_.merges += endpoint.slices().groups().merges();
    counters_.regroupings += endpoint.slices().groups().regroupings();
}

void ScalerpcSystem::plan_sizes(LinkedNode& node, LinkedCall& call) {
    const std::uint32_t longest = plan_.shape.message_max();
    const bool brief = random_.chance(kMillion * 8 / 10);
    std::uint64_t bytes = sizeof(CallTag) + random_.below(longest - sizeof(CallTag) + 1);
    if (brief) {
        bytes = std::min<std::uint64_t>(bytes, sizeof(CallTag) + random_.below(kBriefMost));
    } else if (random_.chance(kMillion / 4)) {
        bytes = longest - random_.below(2) + random_.below(2);
    }
    call.request.resize(bytes);
    call.answer_room = longest;
    if (random_.chance(kMillion / 4)) {
        const std::uint64_t room = random_.below(brief ? kBriefMost : longest + 40);
        call.response = node.pool->allocate(static_cast<std::uint32_t>(room));
        call.answer_room = call.response.valid() ? std::min(call.response.capacity, longest) : longest;
    }
}

void ScalerpcSystem::plan_brief(LinkedNode&, LinkedCall& call) {
    call.request.resize(sizeof(CallTag) + random_.below(8));
    call.answer_room = plan_.shape.message_max();
}

// Where memory is scarce, sessions may hold all of it, and a request for a thread would wait for it without end.
Handling ScalerpcSystem::draw_handling() {
    const Handling drawn = kUsual[random_.below(kUsual.size())];
    const bool takes_memory = drawn == Handling::Background || drawn == Handling::Legacy;
    return takes_memory && world_.mix().node.scarce_memory ? Handling::AtOnce : drawn;
}

bool ScalerpcSystem::may_be_too_long(const LinkedNode&, const LinkedCall& call) const {
    return call.request.size() > plan_.shape.message_max();
}

// Posts a batch of calls to any sessions of the node, and collects them one by one.
bool ScalerpcSystem::act(LinkedNode& node, const LinkedSession&) {
    Part& part = part_of(node);
    std::vector<LinkedCall*> calls;
    std::vector<scalerpc::BatchCall> batch;
    for (std::uint64_t left = random_.between(1, kBatchMost); left > 0; --left) {
        const LinkedSession& session = node.sessions[random_.below(node.sessions.size())];
        LinkedCall* const call = plan_batched(node, session, Instant::never());
        if (call == nullptr) {
            break;
        }
        calls.push_back(call);
        batch.push_back({session.id, call_of_batch(node, *call)});
    }
    const std::size_t posted = part.batches->async_call(batch, node.now());
    part.batched += posted;
    for (std::size_t i = posted; i < calls.size(); ++i) {
        LinkedCalling::abandon(node, *calls[i]);
    }
    node.oracle->check(posted == calls.size() || node.ending != 0 || may_be_too_long(node, *calls[posted]) ||
                           part.endpoint->calls_pending() == node.limits.calls_max,
                       "a batch is posted until a call is too long or the table is full", &node);
    return true;
}

void ScalerpcSystem::collect(LinkedNode& node) {
    Part& part = part_of(node);
    while (const std::optional<scalerpc::Completed> ended = part.batches->poll_completion()) {
        --part.batched;
        ++counters_.collected;
        complete(node, *ended);
    }
    node.oracle->check(part.awaits || part.batched == part.batches->under_way(),
                       "a batch has the calls that have not ended", &node);
}

// Makes an awaited call, while the world goes on. If the world is broken, only time goes on, so that the call ends.
void ScalerpcSystem::call_and_wait(LinkedNode& node, const LinkedSession& session) {
    Part& part = part_of(node);
    Instant time = node.host->read_clock();
    LinkedCall* const call = plan_batched(node, session, time + plan_.users.longest_end);
    if (call == nullptr) {
        return;
    }
    part.awaits = true;
    ++part.batched;
    // The clock is read once for the post, which is immediate, and once for each turn.
    const auto clock = [&, reads = 0]() mutable {
        if (world_.broken()) {
            time = time + milliseconds(1);
        } else if (reads++ != 0) {
            world_.run_until(world_.now() + random_.between(microseconds(1), microseconds(50)));
            time = node.host->read_clock();
        }
        return time;
    };
    const scalerpc::Completed ended = part.batches->sync_call(session.id, call_of_batch(node, *call), clock);
    --part.batched;
    part.awaits = false;
    ++counters_.awaited;
    if (ended.status == rpc::CallStatus::TableFull) {
        LinkedCalling::abandon(node, *call);
    } else {
        complete(node, ended);
    }
}

std::size_t ScalerpcSystem::uncollected(const LinkedNode& node) const {
    const Part& part = parts_[node.host->index()];
    return part.batched - part.batches->under_way();
}

void ScalerpcSystem::on_turn(LinkedNode& node) {
    Part& part = part_of(node);
    collect(node);
    node.oracle->check(part.threads->end(world_.now()), "a thread keeps its job", &node);
    after_turn(node);
    part.endpoint->slices().groups().check();
}

// Lets a thread begin its job at once, though its worker sleeps.
void ScalerpcSystem::after_turn(LinkedNode& node) {
    part_of(node).threads->begin(world_.now(), [this] {
        const bool much = !world_.healed() && random_.chance(kMillion / 20);
        return random_.between(Duration{}, much ? milliseconds(12) : microseconds(500));
    });
}

Instant ScalerpcSystem::next_turn(const LinkedNode& node) const {
    return parts_[node.host->index()].threads->next_end();
}

void ScalerpcSystem::work(void* context, rpc::BackgroundRequest& request) {
    const Part& part = *static_cast<Part*>(context);
    part.node->oracle->run_job(*part.node, request, part.threads->runs_since());
}

std::string ScalerpcSystem::text() const {
    const scalerpc::Features& has = plan_.features;
    return fmt::format(
        "{} blocks of {} bytes, groups of {}, slices of {} ns, notices wait {} ns, grouping {} sharing {} warmup {} "
        "priority {} packing {} colouring {}; {} switches, {} notices alone, {} keys ended, {} READs of {} requests, "
        "{} "
        "expired, {} late answers, {} splits, {} merges, {} regroupings",
        plan_.shape.blocks, plan_.shape.bytes, plan_.groups.size, plan_.groups.slice.ns, plan_.notice_timeout.ns,
        has.grouping, has.sharing, has.warmup, has.priority, has.packing, has.colouring, counters_.switches,
        counters_.notices_alone, counters_.keys_ended, counters_.fetches, counters_.requests_fetched,
        counters_.requests_expired, counters_.late_answers, counters_.splits, counters_.merges, counters_.regroupings);
}

}  // namespace cairn::sim
