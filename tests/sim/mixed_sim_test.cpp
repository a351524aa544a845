// eRPC, datagrams, connections, copyrpc and ScaleRPC on the same hosts under a swarm of faults: SIM_RUNS histories
// (50), each from one seed, beginning with SIM_SEED (1). With SIM_TEXT each prints its events.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "rpc/sim/mixed_world.hpp"
#include "tests/sim/swarm.hpp"

namespace cairn::sim {
namespace {

TEST(MixedSwarm, EachScenarioKeepsItsPromisesBesideTheOthers) {
    live_through_all<MixedWorld>("mixed", test::histories(50, 240));
}

TEST(MixedSwarm, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1000; seed < 1005; ++seed) {
        MixedWorld once(seed);
        MixedWorld twice(seed);
        EXPECT_EQ(once.run(), twice.run());
        EXPECT_EQ(once.network().trace_hash(), twice.network().trace_hash()) << seed;
        EXPECT_EQ(once.text(), twice.text());
        EXPECT_EQ(once.node_totals(), twice.node_totals());
    }
}

TEST(MixedSwarm, AllScenariosReallyMeet) {
    std::map<std::string, std::uint64_t> counts{{"worlds of three", 0},
                                                {"calls answered", 0},
                                                {"datagrams", 0},
                                                {"messages", 0},
                                                {"broken", 0},
                                                {"restarts", 0},
                                                {"peers lost", 0},
                                                {"messages by mail", 0},
                                                {"up on other workers", 0},
                                                {"datagrams beside connections", 0},
                                                {"calls over rings", 0},
                                                {"calls in slices", 0},
                                                {"endpoints and datagrams apart", 0}};
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        MixedWorld world(seed);
        (void)world.run();
        const bool all = world.erpc() != nullptr && world.datagrams() != nullptr && world.connections() != nullptr;
        counts["worlds of three"] += all ? 1U : 0U;
        counts["endpoints and datagrams apart"] += world.hosts_apart();
        counts["restarts"] += world.node_totals().restarts;
        if (world.erpc() != nullptr) {
            counts["calls answered"] += world.erpc()->counters().calls_ok;
            counts["peers lost"] += world.erpc()->counters().peers_lost;
        }
        counts["calls over rings"] += world.copyrpc() != nullptr ? world.copyrpc()->counters().calls_ok : 0;
        counts["calls in slices"] += world.scalerpc() != nullptr ? world.scalerpc()->counters().calls_ok : 0;
        if (world.datagrams() != nullptr) {
            counts["datagrams"] += world.datagrams()->counters().delivered;
        }
        if (world.connections() != nullptr) {
            counts["messages"] += world.connections()->counters().messages;
            counts["datagrams beside connections"] += world.connections()->speech().received;
            counts["messages by mail"] += world.connections()->mail().letters;
            counts["up on other workers"] += world.connections()->counters().elsewhere;
            counts["broken"] += world.connections()->counters().broken;
        }
    }
    for (const auto& [what, count] : counts) {
        std::printf("%8llu %s\n", static_cast<unsigned long long>(count), what.c_str());
        EXPECT_GT(count, 3U) << what;
    }
}

}  // namespace
}  // namespace cairn::sim
