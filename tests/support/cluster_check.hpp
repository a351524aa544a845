// What holds of all shards of a file system together, when nothing is under way, as a test expects it.
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
