// What holds of all shards of a file system together, when nothing is under way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fs/sim/shard_cluster.hpp"

namespace cairn::fs {

// A client that died before it told a file's home of data may have left chunks beyond the file's end.
enum class Strays : std::uint8_t { None, BeyondTheEnd };

// Each name names a file of its kind that knows how many names it has; directories know where they are, and no
// directory is in itself; chunks are files', at their shards; no change is under way. Returns what does not hold. All
// shards are there (asserted).
[[nodiscard]] std::vector<std::string> faults_of(ShardCluster& cluster, Strays strays = Strays::None);

}  // namespace cairn::fs
