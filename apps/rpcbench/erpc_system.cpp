#include "apps/rpcbench/erpc_system.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/common/session_end.hpp"

namespace cairn::rpcbench {

namespace {

constexpr std::uint32_t kHeaderRoom = 64;  // of a packet, more than its headers take

erpc::EndpointConfig config_of(const Stage& stage) {
    const Options& options = stage.options;
    erpc::EndpointConfig config;
    config.qp.qpn = Qpn{options.erpc.qpn + stage.number};
    config.qp.qkey = Qkey{options.erpc.qkey};
    config.qp.path_mtu_bytes = options.ports.path_mtu_bytes;
    config.sessions_max = kSessionsMax;
    config.calls_max = std::max(config.calls_max, options.window);
    config.credits = static_cast<std::uint16_t>(options.erpc.credits);
    config.seed = stage.seed;
    config.peer_timeout = milliseconds(options.peer_timeout_ms);
    config.congestion = options.erpc.congestion;
    config.selective = !options.erpc.go_back_n;
    return config;
}

}  // namespace

Result<std::unique_ptr<System>> ErpcSystem::create(const Stage& stage, Instant now) {
    std::unique_ptr<ErpcSystem> system(new ErpcSystem(stage));
    const Status opened = system->open(now);
    return opened.ok() ? Result<std::unique_ptr<System>>(std::move(system)) : opened.error();
}

Status ErpcSystem::open(Instant now) {
    auto made = erpc::Endpoint::create(config_of(stage_), stage_.worker, stage_.pool);
    if (!made.ok()) {
        return made.error();
    }
    made.value()->set_session_callback(session_changed, this);
    const Status ready = take(std::move(made).value(), stage_);
    if (!ready.ok() || stage_.number != 0) {
        return ready;
    }
    return make_directory(now);
}

Status ErpcSystem::make_directory(Instant now) {
    auto home = connections::Home::create(stage_.crew.agent, stage_.worker, {});
    if (!home.ok()) {
        return home.error();
    }
    home_ = std::move(home).value();
    directory_ = std::make_unique<erpc::Directory>(*home_);
    if (stage_.peer.has_value()) {
        const Status asked = directory_->ask(*stage_.peer, options_.service, now);
        if (!asked.ok()) {
            return asked;
        }
    }
    const erpc::ServiceOffer offer{Qpn{options_.erpc.qpn}, Qkey{options_.erpc.qkey}, stage_.workers};
    return options_.server ? directory_->serve(options_.service, offer) : Nothing{};
}

void ErpcSystem::take_answer() {
    const std::optional<erpc::ServiceAnswer> answer = directory_->poll_answer();
    if (!answer) {
        return;
    }
    stage_.crew.offer = answer->offer;
    const bool found = answer->outcome == erpc::ServiceAnswer::Outcome::Found;
    (found ? stage_.crew.known : stage_.crew.failed).store(true, std::memory_order_release);
    if (!found) {
        fail(fmt::format("service {} of {}: {}; is the server running, with this --service?", options_.service,
                         stage_.peer->text(), erpc::text_of(answer->outcome)));
    }
}

void ErpcSystem::look(Instant now) {
    if (directory_ != nullptr) {
        take_answer();
    }
    if (stage_.peer.has_value() && sessions_.empty() && stage_.crew.known.load(std::memory_order_acquire)) {
        const Status connected = connect(now);
        if (!connected.ok()) {
            fail(connected.error().text());
        }
    }
}

Status ErpcSystem::connect(Instant now) {
    const auto source_port = static_cast<std::uint16_t>(port::kFirstUdpSourcePort + stage_.number);
    const erpc::ServiceOffer& offer = stage_.crew.offer;
    port::Port& port = stage_.worker.port();
    sessions_.reserve(options_.sessions);
    for (std::uint32_t i = 0; i < options_.sessions; ++i) {
        roce::UdAddress peer;
        peer.path = port.open_path({port.local_address(), *stage_.peer, source_port, 0}, now);
        peer.qpn = Qpn{offer.qpn.value + (stage_.number * options_.sessions + i) % offer.workers};
        peer.qkey = offer.qkey;
        const Result<SessionId> session = endpoint().connect(peer, now);
        if (!session.ok()) {
            return session.error();
        }
        sessions_.push_back(session.value());
    }
    return Nothing{};
}

void ErpcSystem::session_changed(void* context, SessionId session, erpc::SessionEvent event,
                                 erpc::RefuseReason reason) {
    auto& self = *static_cast<ErpcSystem*>(context);
    if (event == erpc::SessionEvent::Connected) {
        ++self.connected_;
    } else if (!self.closing_) {
        self.fail(fmt::format("session {} ended: {}", session.number(), app::why(reason)));
    }
}

SystemFigures ErpcSystem::figures() const {
    const erpc::Statistics& counted = endpoint().statistics();
    SystemFigures figures;
    figures.handled = counted.requests_handled;
    figures.resent = counted.retransmits;
    figures.responses_resent = counted.responses_resent;
    figures.notified = counted.congestion_notified;
    figures.sessions_lost = counted.peers_lost;
    figures.bytes_of_session = erpc::kIdleSessionBytes;
    figures.bytes_beside_pool = sessions_open() * figures.bytes_of_session;
    if (std::max(options_.request_bytes, options_.response_bytes) + kHeaderRoom <= options_.ports.path_mtu_bytes) {
        figures.packets_sent = counted.requests_sent + counted.requests_handled + counted.retransmits +
                               counted.responses_resent + counted.controls_sent;  // a message is a packet
    }
    return figures;
}

}  // namespace cairn::rpcbench
