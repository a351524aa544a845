// Makes the system that the options name.
#include "apps/rpcbench/copyrpc_system.hpp"
#include "apps/rpcbench/erpc_system.hpp"
#include "apps/rpcbench/scalerpc_system.hpp"
#include "apps/rpcbench/ud_system.hpp"

namespace cairn::rpcbench {

Result<std::unique_ptr<System>> make_system(const Stage& stage, Instant now) {
    switch (stage.options.system) {
        case SystemKind::Erpc:
            break;
        case SystemKind::Copyrpc:
            return CopyrpcSystem::create(stage);
        case SystemKind::Scalerpc:
        case SystemKind::Rawwrite:
            return ScalerpcSystem::create(stage);
        case SystemKind::Ud:
            return UdSystem::create(stage);
    }
    return ErpcSystem::create(stage, now);
}

roce::EngineConfig engine_config(const Options& options) {
    constexpr std::uint32_t kRegionsOfSession = 2;  // or windows
    constexpr std::uint32_t kRegionsOfCall = 2;     // of copyrpc, with a long request and answer
    constexpr std::uint32_t kWordsOfSession = 2;    // with --flow read
    constexpr std::uint32_t kLongOfSession = 8;     // that a server has at a time
    constexpr std::uint32_t kOwnRegions = 8;
    roce::EngineConfig config = roce::kDatagramsOnly;
    config.context_cache = options.context_cache;
    if (options.system == SystemKind::Ud) {
        config.max_regions = kOwnRegions;
    } else if (options.system != SystemKind::Erpc) {
        config.max_queue_pairs =
            places_of(options).all + 1U + (options.scalerpc.keeps_time() ? kTimeSessions + 1U : 0U);
        config.max_regions = kRegionsOfSession * config.max_queue_pairs + kOwnRegions;
        if (options.system == SystemKind::Copyrpc) {
            config.max_regions +=
                kRegionsOfCall * options.window + (kLongOfSession + kWordsOfSession) * config.max_queue_pairs;
        }
    }
    return config;
}

std::size_t session_memory(const Options& options) {
    switch (options.system) {
        case SystemKind::Erpc:
            break;
        case SystemKind::Copyrpc: {
            const copyrpc::EndpointConfig config = CopyrpcSystem::config_of(options);
            const std::size_t rings = std::size_t{rpc::MsgPool::bytes_for(config.ring_bytes)} +
                                      rpc::MsgPool::bytes_for(config.peer_ring_bytes_max);
            return rings * config.sessions_max;
        }
        case SystemKind::Scalerpc:
        case SystemKind::Rawwrite: {
            const scalerpc::EndpointConfig config = ScalerpcSystem::config_of(options);
            const scalerpc::EndpointConfig time = TimeKeeper::config_of(options);
            const std::size_t of_time =
                options.scalerpc.keeps_time()
                    ? scalerpc::Endpoint::memory_for(time) + rpc::MsgPool::bytes_for(scalerpc::memory_of_caller(time))
                    : 0;
            return of_time + scalerpc::Endpoint::memory_for(config) +
                   std::size_t{rpc::MsgPool::bytes_for(scalerpc::memory_of_caller(config))} *
                       (options.peer.empty() ? 0 : options.sessions);
        }
        case SystemKind::Ud:
            return rpc::MsgPool::bytes_for(UdRoad::memory_for(UdSystem::config_of(options).message_bytes));
    }
    return 0;
}

}  // namespace cairn::rpcbench
