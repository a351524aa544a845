// Checks all shards of a file system together, while no change is under way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/sim/shard_cluster.hpp"

namespace cairn::fs {

// Whether chunks beyond a file's end are allowed: a client that died before the file's home learnt of its data may
// leave such chunks.
enum class Strays : std::uint8_t { None, BeyondTheEnd };

// Returns the faults that it finds. Each name must name a file of its kind, and each file must know the number of its
// names. Directories must know their parents, without a loop. Chunks must belong to files, at the right shards. No
// change may be under way. All shards are there (asserted).
[[nodiscard]] std::vector<std::string> faults_of(ShardCluster& cluster, Strays strays = Strays::None);

}  // namespace cairn::fs
