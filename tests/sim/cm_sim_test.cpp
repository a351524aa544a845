// Connection managers under a swarm of faults: SIM_RUNS histories (2000), each from one seed, beginning with SIM_SEED.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "lib/sim/cm/cm_world.hpp"
#include "tests/sim/swarm.hpp"

namespace cairn::sim {
namespace {

TEST(CmSwarm, KeepsItsPromisesUnderEverySeed) {
    live_through_all<CmWorld>("cm", test::histories(2000));
}

TEST(CmSwarm, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1000; seed < 1005; ++seed) {
        CmWorld first(seed);
        CmWorld second(seed);
        EXPECT_EQ(first.run(), second.run());
        EXPECT_EQ(first.history(), second.history()) << seed;
        CmWorld other(seed + 100);
        (void)other.run();
        EXPECT_NE(first.history(), other.history());
    }
}

TEST(CmSwarm, TheFaultsReallyHappen) {
    CmWorldCounters sum;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        CmWorld world(seed);
        (void)world.run();
        const CmWorldCounters& each = world.counters();
        sum.lost += each.lost;
        sum.doubled += each.doubled;
        sum.restarts += each.restarts;
        sum.established += each.established;
        sum.rejected += each.rejected;
        sum.unreachable += each.unreachable;
        sum.resolved += each.resolved;
        sum.forged += each.forged;
        sum.manager += each.manager;
    }
    const std::map<std::string, std::uint64_t> counts{
        {"lost", sum.lost},
        {"doubled", sum.doubled},
        {"restarts", sum.restarts},
        {"established", sum.established},
        {"rejected", sum.rejected},
        {"unreachable", sum.unreachable},
        {"resolved", sum.resolved},
        {"forged requests", sum.forged},
        {"sent again", sum.manager.of(cm::Counter::Retransmitted)},
        {"given up", sum.manager.of(cm::Counter::GivenUp)},
        {"come again", sum.manager.of(cm::Counter::Duplicate)},
        {"unexpected", sum.manager.of(cm::Counter::Unexpected)},
        {"for unknown connections", sum.manager.of(cm::Counter::UnknownConnection)},
        {"bad requests", sum.manager.of(cm::Counter::BadRequest)},
        {"stale", sum.manager.of(cm::Counter::Stale)},
        {"not looked at", sum.manager.of(cm::Counter::BacklogFull)},
        {"given way", sum.manager.of(cm::Counter::GaveWay)},
        {"asked for time", sum.manager.of(cm::Counter::WasAskedForTime)},
    };
    for (const auto& [what, count] : counts) {
        std::printf("%8llu %s\n", static_cast<unsigned long long>(count), what.c_str());
        EXPECT_GT(count, 5U) << what;
    }
}

}  // namespace
}  // namespace cairn::sim
