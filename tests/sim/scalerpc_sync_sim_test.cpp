// Clients of several ScaleRPC servers, whose slices are synchronised or not.
#include <gtest/gtest.h>

#include "rpc/sim/sync_world.hpp"

namespace cairn::sim {
namespace {

SyncPlan small(Synchronisation how, std::uint64_t seed) {
    SyncPlan plan;
    plan.how = how;
    plan.seed = seed;
    plan.clients = 6;
    plan.period = milliseconds(10);
    plan.warm_up = milliseconds(40);
    plan.measured = milliseconds(30);
    return plan;
}

TEST(ScalerpcSyncWorld, SynchronisedServersSwitchTogetherAndClientsStallLess) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const SyncResult apart = SyncWorld(small(Synchronisation::Apart, seed)).run();
        const SyncResult full = SyncWorld(small(Synchronisation::Full, seed)).run();
        EXPECT_EQ(apart.failed + full.failed, 0U);
        EXPECT_GT(full.batches, 500U);
        EXPECT_GT(full.batches, apart.batches);
        EXPECT_LT(full.stall_fraction, apart.stall_fraction / 2);
        EXPECT_LT(full.apart_p50, microseconds(20)) << "a fifth of a slice";
    }
}

TEST(ScalerpcSyncWorld, OneSeedIsOneResult) {
    const SyncResult once = SyncWorld(small(Synchronisation::Full, 7)).run();
    const SyncResult twice = SyncWorld(small(Synchronisation::Full, 7)).run();
    EXPECT_EQ(once.batches, twice.batches);
    EXPECT_EQ(once.switches, twice.switches);
    EXPECT_EQ(once.stall_fraction, twice.stall_fraction);
    EXPECT_EQ(once.apart_most, twice.apart_most);
}

TEST(ScalerpcSyncWorld, ServersThatSwitchAsTheyLikeServeAll) {
    const SyncResult none = SyncWorld(small(Synchronisation::None, 1)).run();
    EXPECT_EQ(none.failed, 0U);
    EXPECT_GT(none.batches, 100U);
}

}  // namespace
}  // namespace cairn::sim
