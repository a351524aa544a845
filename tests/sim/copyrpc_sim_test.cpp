// Endpoints of copyrpc under a swarm of faults: SIM_RUNS histories (80), each from one seed, beginning with SIM_SEED
// (1). With SIM_TEXT each prints its events.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "rpc/sim/copyrpc_scenario.hpp"
#include "tests/sim/swarm.hpp"

namespace cairn::sim {
namespace {

TEST(CopyrpcSwarm, HoldsItsPromises) {
    live_through_all<CopyrpcWorld>("copyrpc", test::histories(80, 160));
}

// The frames are not compared, since they contain the addresses of rings.
TEST(CopyrpcSwarm, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1000; seed < 1005; ++seed) {
        CopyrpcWorld once(seed);
        CopyrpcWorld twice(seed);
        EXPECT_EQ(once.run(), twice.run());
        EXPECT_EQ(once.text(), twice.text());
        EXPECT_EQ(once.users().counters(), twice.users().counters());
        EXPECT_EQ(once.users().own_counters(), twice.users().own_counters());
        EXPECT_EQ(once.users().one_sided_counters(), twice.users().one_sided_counters());
        EXPECT_EQ(once.node_totals(), twice.node_totals());
    }
}

TEST(CopyrpcSwarm, EverythingReallyHappens) {
    std::map<std::string, std::uint64_t> counts;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        CopyrpcWorld world(seed);
        (void)world.run();
        const LinkedCounters& each = world.users().counters();
        const CopyrpcCounters& own = world.users().own_counters();
        counts["calls answered"] += each.calls_ok;
        counts["too long"] += each.too_long;
        counts["deadlines passed"] += each.deadlines_passed;
        counts["executed in time"] += each.executed_in_time;
        counts["cancelled"] += each.cancelled;
        counts["disconnected"] += each.disconnected;
        counts["lost with their peer"] += each.calls_lost;
        counts["answers refused"] += each.answers_refused;
        counts["in the background"] += each.in_background;
        counts["nested"] += each.nested;
        counts["retained"] += each.retained;
        counts["answered by a part of the request"] += each.echoed;
        counts["answers to sessions that ended"] += each.stale;
        counts["tried in vain"] += own.tried_in_vain;
        counts["told of room"] += own.told_of_room;
        counts["sessions"] += each.sessions;
        counts["sessions refused"] += each.sessions_refused;
        counts["peers lost"] += each.peers_lost;
        counts["full tables"] += each.full_tables;
        counts["requests of strangers"] += each.ends.strange;
        counts["late answers"] += own.late_answers;
        counts["batches"] += own.batches;
        counts["long requests"] += own.fetched;
        counts["long answers"] += own.written;
        counts["consumer words"] += own.words;
        counts["breaches"] += each.ends.breaches;
        const OneSidedCounters& one_sided = world.users().one_sided_counters();
        counts["places opened"] += one_sided.opened;
        counts["READs of places"] += one_sided.reads;
        counts["WRITEs to places"] += one_sided.writes;
        counts["READs and WRITEs that ended with their session"] += one_sided.ended;
        counts["connections of strangers"] += each.ends.strangers_connected;
        counts["batches of strangers"] += each.ends.strangers_writes;
        counts["restarts"] += world.node_totals().restarts;
        counts["refused by rings"] += world.node_totals().refused;
        counts["starved by pools"] += world.node_totals().starved;
        counts["lost"] += world.network().totals().lost;
        counts["doubled"] += world.network().totals().duplicated;
        counts["damaged"] += world.network().totals().corrupted;
    }
    for (const auto& [what, count] : counts) {
        std::printf("%8llu %s\n", static_cast<unsigned long long>(count), what.c_str());
        EXPECT_GT(count, 3U) << what;
    }
}

}  // namespace
}  // namespace cairn::sim
