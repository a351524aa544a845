#include "apps/fsd/shard_task.hpp"

#include "lib/base/secret.hpp"
#include "lib/base/secret_numbers.hpp"
#include "lib/port/qpn_owners.hpp"

namespace cairn::fsd {

Result<std::unique_ptr<ShardTask>> ShardTask::create(std::unique_ptr<port::Port> port, const Place& place,
                                                     Instant now) {
    std::unique_ptr<ShardTask> task(new ShardTask(std::move(port), place));
    auto worker = worker::Worker::create(*task->port_,
                                         {.max_queue_pairs = 1,
                                          .max_regions = 1,
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

void ShardTask::host(fs::NewsBox& news, fs::Store& store, const fs::ClusterFacts& facts, Instant now) {
    shard_ = std::make_unique<fs::ShardTenant>(*worker_, news, store, facts, place_.number, draw_secret()[0], now);
}

}  // namespace cairn::fsd
