// Endpoints of ScaleRPC under a swarm of faults: SIM_RUNS histories (80), each from one seed, beginning with SIM_SEED
// (1). With SIM_TEXT each tells what happened in it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "rpc/sim/scalerpc_scenario.hpp"
#include "tests/sim/swarm.hpp"

namespace cairn::sim {
namespace {

TEST(ScalerpcSwarm, HoldsItsPromises) {
    live_through_all<ScalerpcWorld>("scalerpc", test::histories(80, 160));
}

// Requests waited to be written, and left with the time that they had before.
TEST(ScalerpcSwarm, WhatWaitedIsNotExecutedBehindItsDeadline) {
    ScalerpcWorld world(1903);
    EXPECT_EQ(world.run(), std::nullopt);
}

// The frames are not compared, since they contain the addresses of blocks.
TEST(ScalerpcSwarm, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1000; seed < 1005; ++seed) {
        ScalerpcWorld once(seed);
        ScalerpcWorld twice(seed);
        EXPECT_EQ(once.run(), twice.run());
        EXPECT_EQ(once.text(), twice.text());
        EXPECT_EQ(once.users().counters(), twice.users().counters());
        EXPECT_EQ(once.users().own_counters(), twice.users().own_counters());
        EXPECT_EQ(once.node_totals(), twice.node_totals());
    }
}

void count_users(std::map<std::string, std::uint64_t>& counts, const ScalerpcUsers& users) {
    const LinkedCounters& each = users.counters();
    counts["calls answered"] += each.calls_ok;
    counts["too long"] += each.too_long;
    counts["deadlines passed"] += each.deadlines_passed;
    counts["executed in time"] += each.executed_in_time;
    counts["cancelled"] += each.cancelled;
    counts["disconnected"] += each.disconnected;
    counts["lost with their peer"] += each.calls_lost;
    counts["answers refused"] += each.answers_refused;
    counts["nested"] += each.nested;
    counts["in background"] += each.in_background;
    counts["answers to sessions that ended"] += each.stale;
    counts["sessions"] += each.sessions;
    counts["sessions refused"] += each.sessions_refused;
    counts["peers lost"] += each.peers_lost;
    counts["full tables"] += each.full_tables;
    counts["requests of strangers"] += each.ends.strange;
    counts["breaches"] += each.ends.breaches;
    counts["connections of strangers"] += each.ends.strangers_connected;
    counts["writes of strangers"] += each.ends.strangers_writes;
    const ScalerpcCounters& own = users.own_counters();
    counts["switches"] += own.switches;
    counts["notices alone"] += own.notices_alone;
    counts["keys ended"] += own.keys_ended;
    counts["READs of requests"] += own.fetches;
    counts["expired"] += own.requests_expired;
    counts["late answers"] += own.late_answers;
    counts["splits"] += own.splits;
    counts["merges"] += own.merges;
    counts["regroupings"] += own.regroupings;
    counts["calls of batches collected"] += own.collected;
    counts["calls awaited"] += own.awaited;
}

TEST(ScalerpcSwarm, EverythingReallyHappens) {
    std::map<std::string, std::uint64_t> counts;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        ScalerpcWorld world(seed);
        (void)world.run();
        count_users(counts, world.users());
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
