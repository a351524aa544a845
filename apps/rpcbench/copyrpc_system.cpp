#include "apps/rpcbench/copyrpc_system.hpp"

#include <algorithm>

#include "rpc/copyrpc/peers.hpp"
#include "rpc/copyrpc/ring_choice.hpp"

namespace cairn::rpcbench {

copyrpc::EndpointConfig CopyrpcSystem::config_of(const Options& options) {
    const std::uint32_t calls = options.peer.empty() ? 1 : (options.window + options.sessions - 1) / options.sessions;
    copyrpc::EndpointConfig config;
    config.sessions_max = places_of(options).all;
    config.own_sessions = places_of(options).own;
    config.host_sessions_max = places_of(options).of_host;
    config.ring_bytes =
        options.copyrpc.ring_bytes != 0
            ? options.copyrpc.ring_bytes
            : copyrpc::ring_bytes_for({options.sessions, calls, options.request_bytes, options.response_bytes});
    // A server does not know how many calls its clients make, and their rings have room for as many answers. Of longer
    // rings this much is used.
    config.peer_ring_bytes_max = std::max(config.ring_bytes, copyrpc::ring_bytes_for({options.sessions, 1, 0, 0}) * 4);
    config.receives = static_cast<std::uint16_t>(options.copyrpc.receives);
    config.flow = options.copyrpc.flow;
    config.hold.messages = options.copyrpc.hold_messages;
    config.calls_max = std::max(config.calls_max, options.window);
    config.answer_bytes = options.response_bytes;
    config.peer_timeout = milliseconds(options.peer_timeout_ms);
    config.path_mtu_bytes = options.ports.path_mtu_bytes;
    return config;
}

Result<std::unique_ptr<System>> CopyrpcSystem::create(const Stage& stage) {
    std::unique_ptr<CopyrpcSystem> system(new CopyrpcSystem(stage));
    copyrpc::EndpointConfig config = config_of(stage.options);
    config.watch = stage.watch;
    const Status opened = system->open(config);
    return opened.ok() ? Result<std::unique_ptr<System>>(std::move(system)) : opened.error();
}

SystemFigures CopyrpcSystem::figures() const {
    const copyrpc::Statistics& counted = endpoint().statistics();
    SystemFigures figures;
    count_packets(figures);
    figures.handled = counted.requests_handled;
    figures.sessions_lost = counted.links.peers_lost;
    figures.batches_sent = counted.batches_sent;
    std::copy(counted.batch_sizes.batches.begin(), counted.batch_sizes.batches.end(), figures.batches_by_size.begin());
    const copyrpc::EndpointConfig config = config_of(options_);
    figures.bytes_of_session = copyrpc::bytes_of_session(config);
    figures.bytes_beside_pool = sessions_open() * (figures.bytes_of_session - 2 * std::size_t{config.ring_bytes});
    return figures;
}

}  // namespace cairn::rpcbench
