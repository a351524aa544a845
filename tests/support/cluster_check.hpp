// Checks the invariants of all shards of a file system together while no call is under way.
#pragma once

#include <gtest/gtest.h>

#include "fs/sim/cluster_faults.hpp"

namespace cairn::test {

inline void check_cluster(fs::ShardCluster& cluster) {
    for (const std::string& fault : faults_of(cluster)) {
        ADD_FAILURE() << fault;
    }
}

}  // namespace cairn::test
