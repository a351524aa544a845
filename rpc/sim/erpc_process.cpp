// The processes of a simulated eRPC world: how they begin, and what their ends leave.
#include <algorithm>

#include "rpc/sim/erpc_scenario.hpp"

namespace cairn::sim {

void ErpcScenario::start(Node& host) {
    ErpcNode& node = *nodes_[host.host()];
    node.looked_at_time = node.returned = node.now();
    node.heard.assign(world_.network().nodes(), Instant{});
    start_threads(node);
    const std::size_t part = world_.mix().node.scarce_memory && !node.is_client ? plan_.scarce_part : 1;
    node.pool.emplace(node.memory.span().first(plan_.pool_bytes() / part));
    node.credits = static_cast<std::uint16_t>(random_.between(1, 16));
    erpc::EndpointConfig config;
    config.qp.qpn = plan_.qpn;
    config.qp.qkey = kErpcQkey;
    config.qp.path_mtu_bytes = plan_.path_mtu_bytes;
    config.max_message_bytes = plan_.message_bytes_max;
    config.selective = random_.chance(kMillion * 7 / 10);
    config.transfers_max = plan_.sessions_max;
    config.congestion = congestion_;
    config.sessions_max = plan_.sessions_max;
    config.calls_max = plan_.sessions_max * 8U;
    config.credits = node.credits;
    config.seed = {random_.next(), 0};
    config.peer_timeout = peer_timeout_;
    config.background = node.background.get();
    config.short_path = plan_.short_path;
    node.endpoint = erpc::Endpoint::create(config, host.worker(), *node.pool).value();
    node.endpoint->set_session_callback(
        [](void* context, SessionId id, erpc::SessionEvent event, erpc::RefuseReason) {
            auto& self = *static_cast<ErpcNode*>(context);
            self.scenario->session_changed(self, id, event);
        },
        &node);
    set_handlers(node);
}

// Makes the threads. Some end their jobs in the order of arrival, and some wake the worker.
void ErpcScenario::start_threads(ErpcNode& node) {
    erpc::BackgroundConfig config;
    config.threads = static_cast<std::uint32_t>(random_.between(1, 3));
    config.stepped = true;
    config.jobs_max = static_cast<std::uint32_t>(random_.between(4, 32));
    config.jobs_per_thread = static_cast<std::uint32_t>(random_.between(1, 2));
    if (random_.chance(kMillion / 2)) {
        config.wake = [](void* context) { static_cast<ErpcNode*>(context)->host->wake(); };
        config.wake_context = &node;
    }
    node.background = erpc::BackgroundPool::create(config).value();
    node.job_ends.assign(config.threads, Instant::never());
}

void ErpcScenario::set_handlers(ErpcNode& node) {
    for (const std::uint8_t type : {kAtOnce, kLater, kNested}) {  // the other types ask for room when they answer
        const std::uint32_t room = type == kAtOnce ? plan_.message_bytes_max : 0;
        const Status set = node.endpoint->set_handler(
            type,
            [](void* context, const erpc::Request& request) {
                auto& self = *static_cast<ErpcNode*>(context);
                self.scenario->execute(self, request);
            },
            &node, room);
        CAIRN_ASSERT(set.ok());
    }
    node.endpoint->set_handler(kRelayed, erpc::coroutine_handler<&ErpcScenario::relay>, &node);
    for (const std::uint8_t type : {kBackground, kBrief}) {
        const Status set = node.endpoint->set_background_handler(
            type,
            [](void* context, erpc::BackgroundRequest& request) {
                auto& self = *static_cast<ErpcNode*>(context);
                self.scenario->work(self, request);
            },
            &node, type == kBrief ? kBriefMost : plan_.message_bytes_max);
        CAIRN_ASSERT(set.ok());
    }
    node.endpoint->set_handler(
        Babbler::kType,
        [](void* context, const erpc::Request& request) {
            auto& self = *static_cast<ErpcNode*>(context);
            self.scenario->answer_babble(self, request);
        },
        &node);
    const Status set = node.endpoint->set_background_handler(
        Babbler::kBackgroundType,
        [](void* context, erpc::BackgroundRequest& request) {
            auto& self = *static_cast<ErpcNode*>(context);
            const std::size_t bytes = std::min<std::size_t>(request.payload().size(), kBriefMost);
            const std::span<std::uint8_t> room = request.reserve(static_cast<std::uint32_t>(bytes));
            self.scenario->check(is_clean(room) && !has_content(request.payload()),
                                 "a stranger sees no bytes of others", &self);
            std::copy_n(request.payload().end() - static_cast<std::ptrdiff_t>(bytes), bytes, room.begin());
        },
        &node, kBriefMost);
    CAIRN_ASSERT(set.ok());
}

// Ends the process. Its operations are forgotten, and every buffer must be free again.
void ErpcScenario::stop(Node& host) {
    ErpcNode& node = *nodes_[host.host()];
    node.drops += node.endpoint->statistics().drops.snapshot();
    node.endpoint.reset();
    check(node.frames == 0, "no coroutine outlives its endpoint", &node);
    node.background.reset();
    node.job_ends.clear();
    node.sessions.clear();
    node.odd_sessions.clear();
    node.late.clear();
    node.nested.clear();
    node.nested_requests.clear();
    node.deadlines.clear();
    node.last_serial.clear();
    for (CallRecord& call : calls_) {
        if (call.tag.client == node.index && call.completions == 0) {
            call.abandoned = true;
            node.pool->release(call.response);
        }
    }
    check(node.pool->live() == 0, "an endpoint that ends gives its message buffers back", &node);
}

}  // namespace cairn::sim
