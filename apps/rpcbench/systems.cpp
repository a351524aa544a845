// Which system the options name.
#include "apps/rpcbench/copyrpc_system.hpp"
#include "apps/rpcbench/erpc_system.hpp"

namespace cairn::rpcbench {

Result<std::unique_ptr<System>> make_system(const Stage& stage, Instant now) {
    return stage.options.system == SystemKind::Copyrpc ? CopyrpcSystem::create(stage) : ErpcSystem::create(stage, now);
}

roce::EngineConfig engine_config(const Options& options) {
    roce::EngineConfig config = roce::kDatagramsOnly;
    if (options.system == SystemKind::Copyrpc) {
        config.max_queue_pairs = CopyrpcSystem::config_of(options).sessions_max + 1U;
        config.max_regions = 2 * config.max_queue_pairs;
    }
    return config;
}

std::size_t session_memory(const Options& options) {
    if (options.system != SystemKind::Copyrpc) {
        return 0;
    }
    const copyrpc::EndpointConfig config = CopyrpcSystem::config_of(options);
    const std::size_t rings =
        std::size_t{rpc::MsgPool::bytes_for(config.ring_bytes)} + rpc::MsgPool::bytes_for(config.peer_ring_bytes_max);
    return rings * config.sessions_max;
}

}  // namespace cairn::rpcbench
