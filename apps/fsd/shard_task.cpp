#include "apps/fsd/shard_task.hpp"

#include "lib/base/secret.hpp"
#include "lib/base/secret_numbers.hpp"
#include "lib/port/qpn_owners.hpp"

namespace cairn::fsd {

Result<std::unique_ptr<ShardTask>> ShardTask::create(std::unique_ptr<port::Port> port, const Place& place,
                                                     Instant now) {
    std::unique_ptr<ShardTask> task(new ShardTask(std::move(port), place));
    auto worker = worker::Worker::create(*task->port_,
                                         {.max_queue_pairs = place.has_peers ? fs::PeerNetwork::kQueuePairs : 1,
                                          .max_regions = place.has_peers ? fs::PeerNetwork::kRegions : 1,
                                          .owner_bits = port::QpnOwners(place.workers).bits(),
                                          .owner = place.number,
                                          .seed = derive_key(draw_secret(), Purpose::EngineNumbers)},
                                         now);
    if (!worker.ok()) {
        return worker.error();
    }
    task->worker_ = std::move(worker).value();
    return task;
}

Status ShardTask::connect(std::shared_ptr<connections::Agent> agent, fs::PeerLinkConfig links,
                          std::uint32_t path_mtu_bytes) {
    auto memory = mem::Region::map(fs::PeerNetwork::bytes_for(links.cluster));
    if (!memory.ok()) {
        return memory.error();
    }
    memory_.emplace(std::move(memory).value());
    auto network =
        fs::PeerNetwork::create(std::move(agent), *worker_, {std::move(links), path_mtu_bytes, memory_->bytes()});
    if (!network.ok()) {
        return network.error();
    }
    network_ = std::move(network).value();
    return Nothing{};
}

void ShardTask::host(fs::NewsBox& news, fs::Store& store, const fs::ClusterFacts& facts, fs::ShardNumber number,
                     Instant now) {
    shard_ = std::make_unique<fs::ShardTenant>(*worker_, news, store, facts, number, draw_secret()[0], now);
    if (network_ != nullptr) {
        shard_->set_network(*network_);
    }
}

}  // namespace cairn::fsd
