#include "apps/rpcbench/ud_system.hpp"

#include <algorithm>

namespace cairn::rpcbench {

UdConfig UdSystem::config_of(const Options& options) {
    const std::uint32_t both = options.server && !options.peer.empty() ? 2 : 1;  // ours, and the peer's
    UdConfig config;
    config.message_bytes = std::max(options.request_bytes, options.response_bytes);
    config.sessions_max = static_cast<std::uint16_t>(both * options.sessions);
    config.calls_max = std::max(config.calls_max, options.window);
    config.peer_timeout = milliseconds(options.peer_timeout_ms);
    return config;
}

Result<std::unique_ptr<System>> UdSystem::create(const Stage& stage) {
    std::unique_ptr<UdSystem> system(new UdSystem(stage));
    UdConfig config = config_of(stage.options);
    config.udp_source_port = static_cast<std::uint16_t>(config.udp_source_port + stage.number);
    config.seed = stage.seed;
    const Status opened = system->open(config);
    return opened.ok() ? Result<std::unique_ptr<System>>(std::move(system)) : opened.error();
}

SystemFigures UdSystem::figures() const {
    const UdStatistics& counted = endpoint().statistics();
    SystemFigures figures;
    figures.handled = counted.requests_handled;
    figures.packets_sent = counted.datagrams_sent;
    figures.sessions_lost = counted.peers_lost;
    figures.bytes_of_session = sizeof(UdSession) + sizeof(verbs::Ah);
    figures.bytes_beside_pool = sessions_open() * figures.bytes_of_session;
    return figures;
}

}  // namespace cairn::rpcbench
