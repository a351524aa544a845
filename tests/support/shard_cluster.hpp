// Shards of one file system in virtual time.
#pragma once

#include "fs/sim/shard_cluster.hpp"

namespace cairn::test {

using fs::ClusterMail;
using fs::ShardCluster;

}  // namespace cairn::test
