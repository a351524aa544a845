#include "apps/rpcbench/copyrpc_system.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rpc/copyrpc/ring_choice.hpp"

namespace cairn::rpcbench {

namespace {

constexpr std::uint32_t kReceivesOfAll = 32768;  // of all sessions of an endpoint, unless --receives says otherwise
constexpr std::uint32_t kLeastReceives = 8;
constexpr std::uint32_t kUsualReceives = 64;

constexpr const char* kNeverOpen =
    "did not open; is the server running, with this --service, and does it take so many --sessions, and such a --ring?";
constexpr const char* kLost = "ended: the peer is gone; is the server running?";

}  // namespace

copyrpc::EndpointConfig CopyrpcSystem::config_of(const Options& options) {
    const std::uint32_t calls = options.peer.empty() ? 1 : (options.window + options.sessions - 1) / options.sessions;
    copyrpc::EndpointConfig config;
    const std::uint32_t both = options.server && !options.peer.empty() ? 2 : 1;  // ours, and the peer's
    config.sessions_max = static_cast<std::uint16_t>(both * options.sessions);
    config.ring_bytes =
        options.copyrpc.ring_bytes != 0
            ? options.copyrpc.ring_bytes
            : copyrpc::ring_bytes_for({options.sessions, calls, options.request_bytes, options.response_bytes});
    // A server does not know how many calls its clients make, for whose answers their rings have room.
    config.peer_ring_bytes_max = std::max(config.ring_bytes, copyrpc::ring_bytes_for({options.sessions, 1, 0, 0}) * 4);
    config.receives =
        static_cast<std::uint16_t>(options.copyrpc.receives != 0 ? options.copyrpc.receives
                                                                 : std::clamp(kReceivesOfAll / config.sessions_max,
                                                                              kLeastReceives, kUsualReceives));
    config.calls_max = std::max(config.calls_max, options.window);
    config.answer_bytes = options.response_bytes;
    config.peer_timeout = milliseconds(options.peer_timeout_ms);
    config.path_mtu_bytes = options.carrier.path_mtu_bytes;
    return config;
}

Result<std::unique_ptr<System>> CopyrpcSystem::create(const Stage& stage) {
    std::unique_ptr<CopyrpcSystem> system(new CopyrpcSystem(stage));
    const Status opened = system->open();
    return opened.ok() ? Result<std::unique_ptr<System>>(std::move(system)) : opened.error();
}

CopyrpcSystem::~CopyrpcSystem() {
    drop_endpoint();  // before its device
}

Status CopyrpcSystem::open() {
    connections::HomeConfig connections;
    connections.udp_source_port = static_cast<std::uint16_t>(connections.udp_source_port + stage_.number);
    auto home = connections::Home::create(stage_.crew.agent, stage_.worker, connections);
    if (!home.ok()) {
        return home.error();
    }
    home_ = std::move(home).value();
    device_ = std::make_unique<verbs::Device>(stage_.worker);
    auto made = copyrpc::Endpoint::create(config_of(options_), *device_, *home_, stage_.pool);
    if (!made.ok()) {
        return made.error();
    }
    made.value()->set_session_callback(session_changed, this);
    const Status ready = take(std::move(made).value(), stage_);
    if (!ready.ok() || !options_.server) {
        return ready;
    }
    return endpoint().listen(options_.service);
}

void CopyrpcSystem::look(Instant now) {
    while (stage_.peer.has_value() && sessions_.size() < options_.sessions && failure().empty()) {
        const Result<SessionId> session = endpoint().connect(*stage_.peer, options_.service, now);
        if (!session.ok()) {
            fail(session.error().text());
            return;
        }
        sessions_.push_back(session.value());
    }
}

void CopyrpcSystem::session_changed(void* context, SessionId session, copyrpc::SessionEvent event) {
    auto& self = *static_cast<CopyrpcSystem*>(context);
    if (event == copyrpc::SessionEvent::Connected) {
        ++self.connected_;
    } else if (!self.closing_) {
        self.fail(fmt::format("session {} {}", session.value, self.is_connected() ? kLost : kNeverOpen));
    }
}

SystemFigures CopyrpcSystem::figures() const {
    const copyrpc::Statistics& counted = endpoint().statistics();
    const auto& engine = stage_.worker.engine().counters();
    SystemFigures figures;
    figures.handled = counted.requests_handled;
    figures.resent = engine.of(roce::EngineCounter::PacketsResent);
    figures.sessions_lost = counted.peers_lost;
    figures.batches_sent = counted.batches_sent;
    figures.packets_sent = engine.of(roce::EngineCounter::PacketsSent);
    figures.bytes_of_session = 2 * std::size_t{config_of(options_).ring_bytes};
    return figures;
}

std::string CopyrpcSystem::counters_text() const {
    return home_->counters_text() + telemetry::text_of(endpoint().statistics().breaches.snapshot());
}

}  // namespace cairn::rpcbench
