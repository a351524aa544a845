#include "apps/rpcbench/scalerpc_system.hpp"

#include <algorithm>
#include <bit>

#include "lib/base/monotonic_clock.hpp"
#include "pmd_glue/lcores.hpp"

namespace cairn::rpcbench {

scalerpc::EndpointConfig ScalerpcSystem::config_of(const Options& options) {
    const ScalerpcOptions& own = options.scalerpc;
    const std::uint32_t longest = std::max(options.request_bytes, options.response_bytes);
    scalerpc::EndpointConfig config;
    config.shape.bytes = own.block_bytes != 0 ? own.block_bytes
                                              : std::max(std::bit_ceil(longest + scalerpc::kBlockOverhead),
                                                         scalerpc::BlockShape::kLeastBytes);
    config.shape.blocks = own.blocks;
    config.features = options.system == SystemKind::Rawwrite ? scalerpc::kRawWrite : own.features;
    config.groups.size = own.group;
    config.groups.slice = microseconds(own.slice_us);
    config.cohort = static_cast<std::uint8_t>(own.cohort);
    config.sessions_max = places_of(options).all;
    config.own_sessions = places_of(options).own;
    config.host_sessions_max = places_of(options).of_host;
    config.calls_max = std::max(config.calls_max, options.window);
    config.peer_timeout = milliseconds(options.peer_timeout_ms);
    config.path_mtu_bytes = options.ports.path_mtu_bytes;
    return config;
}

Result<std::unique_ptr<System>> ScalerpcSystem::create(const Stage& stage) {
    std::unique_ptr<ScalerpcSystem> system(new ScalerpcSystem(stage));
    const Status opened = system->open(stage);
    return opened.ok() ? Result<std::unique_ptr<System>>(std::move(system)) : opened.error();
}

Status ScalerpcSystem::open(const Stage& stage) {
    const Status ready = open_device();
    if (!ready.ok()) {
        return ready;
    }
    scalerpc::EndpointConfig config = config_of(stage.options);
    config.watch = stage.watch;
    if (stage.options.scalerpc.keeps_time()) {
        auto made = TimeKeeper::create(stage, device(), home());
        if (!made.ok()) {
            return made.error();
        }
        time_ = std::move(made).value();
        config.slice_clock = &time_->clock();
    }
    const std::uint32_t threads = stage.options.scalerpc.legacy_threads;
    if (threads == 0) {
        return open_endpoint(config);
    }
    rpc::BackgroundConfig background;
    background.threads = threads;
    background.cpus = pmd::cpus_beside_lcores();
    auto pool = rpc::BackgroundPool::create(background);
    if (!pool.ok()) {
        return pool.error();
    }
    threads_ = std::move(pool).value();
    config.background = threads_.get();
    config.clock = [] { return read_monotonic(); };
    const Status opened = open_endpoint(config);
    return opened.ok() ? service().open_legacy(endpoint()) : opened;
}

void ScalerpcSystem::look(Instant now) {
    ConnectedSystem::look(now);
    if (time_ != nullptr) {
        time_->look(now);
    }
}

SystemFigures ScalerpcSystem::figures() const {
    const scalerpc::Statistics& counted = endpoint().statistics();
    SystemFigures figures;
    count_packets(figures);
    figures.handled = counted.requests_handled;
    figures.sessions_lost = counted.links.peers_lost;
    figures.slices = {counted.switches, counted.notices_alone, counted.keys_ended,
                      counted.fetches,  counted.polls,         counted.legacy_requests};
    count_memory(figures);
    return figures;
}

// Counts the memory. Clients that share blocks have none of their own.
void ScalerpcSystem::count_memory(SystemFigures& figures) const {
    const scalerpc::EndpointConfig config = config_of(options_);
    const std::size_t caller = scalerpc::bytes_of_caller(config);
    const std::size_t guest = scalerpc::bytes_of_guest(config);
    const std::size_t blocks = config.features.grouping && config.features.sharing ? 0 : config.shape.session_bytes();
    figures.bytes_of_session = options_.peer.empty()
                                   ? guest + scalerpc::kEntryBytes + blocks
                                   : caller + rpc::MsgPool::bytes_for(scalerpc::memory_of_caller(config));
    const std::size_t ours = std::min(sessions().size(), sessions_open());
    figures.bytes_beside_pool = ours * caller + (sessions_open() - ours) * guest;
}

}  // namespace cairn::rpcbench
