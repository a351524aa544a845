#include "rpc/sim/sync_world.hpp"

#include <algorithm>
#include <array>

namespace cairn::sim {

namespace {

constexpr std::uint16_t kService = 7474;
constexpr std::uint16_t kTime = 7475;
constexpr std::uint8_t kAsk = 1;
constexpr std::size_t kBuffersOfNode = 2048;
constexpr std::size_t kPoolBytes = 8U << 20U;
constexpr std::uint32_t kRequestBytes = 32;

constexpr std::array<std::uint8_t, kRequestBytes> kRequest{};

}  // namespace

std::string_view text_of(Synchronisation how) noexcept {
    switch (how) {
        case Synchronisation::None:
            return "none";
        case Synchronisation::Apart:
            return "apart";
        case Synchronisation::Full:
            return "full";
    }
    return "";
}

Instant SyncWorld::HostClock::local(Instant now) const noexcept {
    return now + offset + Duration{now.ns / 1'000'000 * drift_ppm};
}

// Returns a time at or before the one at which the clock shows `at`.
Instant SyncWorld::HostClock::global(Instant at) const noexcept {
    if (at == Instant::never()) {
        return at;
    }
    const Instant guess = at - offset;
    return guess - Duration{guess.ns / 1'000'000 * drift_ppm};
}

SyncWorld::SyncWorld(const SyncPlan& plan)
    : plan_(plan), network_(plan.servers + plan.clients, plan.seed), wakes_(plan.servers + plan.clients) {
    LinkShape shape;
    shape.delay = microseconds(2);
    LinkFaults faults;
    faults.jitter = microseconds(1);
    network_.set_faults(faults, shape);
    Random random(plan.seed);
    for (std::size_t i = 0; i < plan.servers + plan.clients; ++i) {
        nodes_.push_back(std::make_unique<Node>());
        Node& node = *nodes_.back();
        node.world = this;
        node.index = i;
        node.time.offset = random.between(Duration{}, milliseconds(50));
        const auto most = static_cast<std::uint64_t>(plan.drift_ppm_most);
        node.time.drift_ppm = static_cast<std::int64_t>(random.between(0, 2 * most)) - plan.drift_ppm_most;
        node.time.phase = random.between(Duration{}, plan.slice * std::int64_t{plan.cohorts});
        start(node);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (i >= plan.servers) {
            connect(*nodes_[i]);
        } else if (i != 0 && plan.how == Synchronisation::Full) {
            follow(*nodes_[i]);
        }
    }
}

// Endpoints end before the objects of their calls' completions.
SyncWorld::~SyncWorld() {
    for (const auto& node : nodes_) {
        node->calls.reset();
        node->endpoint.reset();
        node->time_endpoint.reset();
    }
}

scalerpc::EndpointConfig SyncWorld::config_of(const Node& node) const {
    const bool serves = node.index < plan_.servers;
    scalerpc::EndpointConfig config;
    config.shape = {256, 8};
    config.sessions_max = static_cast<std::uint16_t>(serves ? plan_.clients : plan_.servers);
    config.groups.size = static_cast<std::uint32_t>(plan_.clients / plan_.cohorts);
    config.groups.slice = plan_.slice;
    if (!serves) {
        config.cohort = static_cast<std::uint8_t>(node.index % plan_.cohorts);
        config.watches_stalls = true;
    }
    return config;
}

void SyncWorld::start(Node& node) {
    const Instant local = node.time.local(now_);
    node.port = std::make_unique<SimPort>(network_, node.index, kBuffersOfNode, plan_.seed + node.index);
    node.memory = AlignedMemory(kPoolBytes);
    node.pool.emplace(node.memory.span());
    roce::EngineConfig engine;
    engine.seed = {plan_.seed, node.index};
    node.worker = worker::Worker::create(*node.port, engine, local).value();
    node.home = connections::Home::create(connections::Agent::create(), *node.worker, {}).value();
    node.device = std::make_unique<verbs::Device>(*node.worker);
    scalerpc::EndpointConfig config = config_of(node);
    if (node.index >= plan_.servers) {
        node.endpoint = scalerpc::Endpoint::create(config, *node.device, *node.home, *node.pool).value();
        node.calls.emplace(*node.endpoint, *node.worker);
        return;
    }
    if (plan_.how != Synchronisation::None) {
        node.clock.emplace(scalerpc::SliceClockConfig{plan_.slice, plan_.cohorts, plan_.period},
                           local - node.time.phase);
        config.slice_clock = &*node.clock;
    }
    node.endpoint = scalerpc::Endpoint::create(config, *node.device, *node.home, *node.pool).value();
    node.endpoint->set_handler(
        kAsk,
        [](void*, const scalerpc::RequestOf& request) {
            (void)request.endpoint.answer(request.handle, request.payload, request.now);
        },
        nullptr);
    scalerpc::EndpointConfig time_endpoint;
    time_endpoint.features = {false, false, false, false, false, false};
    time_endpoint.shape = {256, 4};
    time_endpoint.sessions_max = static_cast<std::uint16_t>(plan_.servers);
    node.time_endpoint = scalerpc::Endpoint::create(time_endpoint, *node.device, *node.home, *node.pool).value();
    if (node.clock) {
        const Status serves = scalerpc::serve_time(*node.time_endpoint, kAsk, *node.clock);
        CAIRN_ASSERT(serves.ok());
    }
    const bool listening = node.endpoint->listen(kService).ok() && node.time_endpoint->listen(kTime).ok();
    CAIRN_ASSERT(listening);
}

void SyncWorld::connect(Node& client) {
    for (std::size_t i = 0; i < plan_.servers; ++i) {
        const auto session = client.endpoint->connect(network_.address_of(i), kService, client.time.local(now_));
        client.sessions.push_back(session.value());
    }
    for (std::size_t i = 0; i < plan_.servers * plan_.batch; ++i) {
        client.answers.push_back(client.pool->allocate(kRequestBytes));
    }
}

void SyncWorld::follow(Node& server) {
    const auto session = server.time_endpoint->connect(network_.address_of(0), kTime, server.time.local(now_));
    server.follower =
        std::make_unique<Follower>(*server.worker, *server.time_endpoint, session.value(), kAsk, *server.clock);
}

void SyncWorld::post_batch(Node& client, Instant now) {
    std::vector<scalerpc::BatchCall> batch;
    for (std::size_t i = 0; i < client.answers.size(); ++i) {
        scalerpc::BatchCall one;
        one.session = client.sessions[i % client.sessions.size()];
        one.call.type = kAsk;
        one.call.request = kRequest;
        one.call.response = &client.answers[i];
        batch.push_back(one);
    }
    const std::size_t posted = client.calls->async_call(batch, now);
    client.failed += batch.size() - posted;
}

void SyncWorld::act(Node& client, Instant now) {
    while (const std::optional<scalerpc::Completed> completed = client.calls->poll_completion()) {
        client.failed += completed->status == rpc::CallStatus::Ok ? 0U : 1U;
    }
    if (client.calls->under_way() == 0) {
        ++client.batches;
        post_batch(client, now);
    }
}

void SyncWorld::note_switch(Node& server) {
    const std::uint64_t number = server.endpoint->slices().slice().number;
    if (number == server.slice) {
        return;
    }
    server.slice = number;
    const std::uint64_t slot = server.endpoint->slices().slice().slot;
    if (!measures_ || plan_.how == Synchronisation::None) {
        first_slot_ = std::max(first_slot_, slot + 2);
        return;
    }
    if (slot < first_slot_) {
        return;
    }
    slots_.resize(std::max<std::size_t>(slots_.size(), slot - first_slot_ + 1));
    Seen& seen = slots_[slot - first_slot_];
    seen.first = seen.servers == 0 ? now_ : seen.first;
    if (++seen.servers == plan_.servers) {
        apart_.push_back(now_ - seen.first);
    }
}

void SyncWorld::turn(Node& node) {
    const Instant local = node.time.local(now_);
    node.port->set_clock_ahead(local - now_);
    while (node.worker->turn(local)) {
    }
    if (node.calls) {
        act(node, local);
        (void)node.worker->turn(local);
    } else {
        note_switch(node);
    }
    wakes_[node.index] = node.time.global(node.worker->next_deadline());
}

void SyncWorld::run_until(Instant end) {
    constexpr Duration kLeastStep = nanoseconds(100);
    while (now_ < end) {
        network_.advance(now_);
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (wakes_[i] <= now_ || network_.next_arrival(i) <= now_) {
                turn(*nodes_[i]);
            }
        }
        const Instant wake = *std::min_element(wakes_.begin(), wakes_.end());
        now_ = std::min(end, std::max(std::min(wake, network_.next_arrival()), now_ + kLeastStep));
    }
}

SyncResult SyncWorld::counted() const {
    SyncResult sums;
    for (const auto& node : nodes_) {
        sums.batches += node->batches;
        sums.failed += node->failed;
        sums.switches += node->endpoint->statistics().switches;
    }
    return sums;
}

SyncResult SyncWorld::run() {
    run_until(now_ + plan_.warm_up);
    const SyncResult before = counted();
    std::int64_t stalled = 0;
    std::int64_t served = 0;
    const auto add = [this, &stalled, &served](std::int64_t sign) {
        for (std::size_t i = plan_.servers; i < nodes_.size(); ++i) {
            const scalerpc::Statistics& said = nodes_[i]->endpoint->statistics();
            stalled += sign * static_cast<std::int64_t>(std::uint64_t{said.stalled_ns});
            served += sign * static_cast<std::int64_t>(std::uint64_t{said.in_slice_ns});
        }
    };
    add(-1);
    measures_ = true;
    run_until(now_ + plan_.measured);
    add(1);
    SyncResult result = counted();
    result.batches -= before.batches;
    result.failed -= before.failed;
    result.switches -= before.switches;
    result.stall_fraction = served == 0 ? 0 : static_cast<double>(stalled) / static_cast<double>(served);
    if (!apart_.empty()) {
        std::sort(apart_.begin(), apart_.end());
        result.apart_p50 = apart_[apart_.size() / 2];
        result.apart_most = apart_.back();
    }
    return result;
}

}  // namespace cairn::sim
