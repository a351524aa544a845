// Histories of two queue pairs from seeds: exactly once, in order, memory equal, atomics right. Then the link heals and
// all requests must end. SIM_RUNS of them (300), beginning with SIM_SEED.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "lib/sim/rc/rc_world.hpp"
#include "tests/sim/swarm.hpp"

namespace cairn::sim {
namespace {

TEST(RcSwarm, EveryHistoryIsExactlyOnceInOrderAndEnds) {
    live_through_all<RcWorld>("rc", test::histories(300));
}

TEST(RcSwarm, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        RcWorld once(seed);
        RcWorld twice(seed);
        EXPECT_EQ(once.run(), twice.run());
        EXPECT_EQ(once.history(), twice.history());
    }
}

TEST(RcSwarm, TheFaultsReallyHappenAndEveryOperationIsDone) {
    RcWorldCounters sum;
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        RcWorld world(seed);
        (void)world.run();
        const RcWorldCounters& each = world.counters();
        sum.lost += each.lost;
        sum.restarts += each.restarts;
        sum.overruns += each.overruns;
        sum.pauses += each.pauses;
        sum.stale += each.stale;
        sum.unreliable_messages_lost += each.unreliable_messages_lost;
        sum.xrc_messages[0] += each.xrc_messages[0];
        sum.xrc_messages[1] += each.xrc_messages[1];
        sum.transport += each.transport;
        for (std::size_t i = 0; i < sum.done.size(); ++i) {
            sum.done[i] += each.done[i];
        }
    }
    std::map<std::string, std::uint64_t> counts{{"lost", sum.lost},
                                                {"restarts", sum.restarts},
                                                {"overruns", sum.overruns},
                                                {"pauses", sum.pauses},
                                                {"stale", sum.stale},
                                                {"messages to one XRC queue", sum.xrc_messages[0]},
                                                {"messages to the other", sum.xrc_messages[1]},
                                                {"unreliable messages lost", sum.unreliable_messages_lost}};
    for (std::size_t i = 0; i < sum.done.size(); ++i) {
        counts.emplace("operation " + std::to_string(i), sum.done[i]);
    }
    for (const auto& [what, counter] :
         std::map<std::string, rc::RcCounter>{{"duplicates", rc::RcCounter::DuplicateRequest},
                                              {"gaps", rc::RcCounter::OutOfSequence},
                                              {"held", rc::RcCounter::Held},
                                              {"not ready", rc::RcCounter::RnrNakSent},
                                              {"timeouts", rc::RcCounter::Timeout},
                                              {"early timeouts", rc::RcCounter::EarlyTimeout},
                                              {"implied", rc::RcCounter::ImpliedNak},
                                              {"marked", rc::RcCounter::Marked},
                                              {"told of marks", rc::RcCounter::CnpReceived},
                                              {"held back", rc::RcCounter::PacedTurns},
                                              {"cut short", rc::RcCounter::UnreliableCut}}) {
        counts.emplace(what, sum.transport.of(counter));
    }
    for (const auto& [what, count] : counts) {
        std::printf("%s: %llu\n", what.c_str(), static_cast<unsigned long long>(count));
        EXPECT_GT(count, 0U) << what;
    }
}

}  // namespace
}  // namespace cairn::sim
