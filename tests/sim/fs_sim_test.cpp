// Histories of the simulated file system: each client finds the data that it wrote, and all shards together are
// consistent. SIM_RUNS of them (150), beginning with SIM_SEED.
#include <gtest/gtest.h>

#include "fs/sim/world.hpp"
#include "tests/sim/swarm.hpp"

namespace cairn::fs {
namespace {

TEST(FsSim, HoldsItsPromises) {
    for (const std::uint64_t seed : sim::regressions_of("fs")) {
        for (const std::string& fault : FsWorld(seed).run().faults) {
            ADD_FAILURE() << fault << "\n  " << sim::replay_of("fs", seed);
        }
    }
    ASSERT_FALSE(HasFailure());
    const std::uint64_t first = test::first_seed();
    const std::uint64_t histories = test::histories(150);
    FsWorldResult all;
    std::uint64_t full = 0;
    for (std::uint64_t seed = first; seed < first + histories; ++seed) {
        const FsWorldResult result = FsWorld(seed).run();
        for (const std::string& fault : result.faults) {
            ADD_FAILURE() << "seed " << seed << ": " << fault;
        }
        ASSERT_FALSE(HasFailure()) << sim::replay_of("fs", seed);
        all.deaths += result.deaths;
        all.failures += result.failures;
        all.clients += result.clients;
        all.counts.operations += result.counts.operations;
        all.counts.unknown += result.counts.unknown;
        all.resent += result.resent;
        all.counts.looked += result.counts.looked;
        full += result.was_full ? 1 : 0;
        all.counts.refusals.add(result.counts.refusals);
    }
    RecordProperty("operations", std::to_string(all.counts.operations));
    if (histories < 100) {
        return;  // the rest needs many histories
    }
    // The histories are of use only if all of this happens in them.
    EXPECT_GT(all.deaths, histories);
    EXPECT_GT(all.failures, histories);
    EXPECT_GT(all.clients, histories);
    EXPECT_GT(all.counts.operations, 100 * histories);
    EXPECT_GT(all.counts.unknown, histories / 4);
    EXPECT_GT(all.resent, histories / 4);
    EXPECT_GT(all.counts.looked, 10 * histories);
    EXPECT_GE(full, histories / 3);
    for (const char* const operation : {"create", "write", "mkdir", "rename", "link", "symlink", "truncate"}) {
        EXPECT_GT(all.counts.refusals.of(operation), histories / 4) << operation << ", for want of room";
    }
}

}  // namespace
}  // namespace cairn::fs
