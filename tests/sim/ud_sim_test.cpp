// Histories of datagram queue pairs from seeds: each arriving datagram is delivered as it was sent, or counted as
// dropped for the right reason. SIM_RUNS of them (300), beginning with SIM_SEED.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "lib/sim/ud/ud_scenario.hpp"
#include "tests/sim/swarm.hpp"

namespace cairn::sim {
namespace {

TEST(UdSwarm, EveryDatagramIsDeliveredAsItWasSentOrCounted) {
    live_through_all<UdWorld>("ud", test::histories(300));
}

TEST(UdSwarm, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        UdWorld once(seed);
        UdWorld twice(seed);
        EXPECT_EQ(once.run(), twice.run());
        EXPECT_EQ(once.network().trace_hash(), twice.network().trace_hash());
        UdWorld other(seed + 100);
        (void)other.run();
        EXPECT_NE(once.network().trace_hash(), other.network().trace_hash());
    }
}

TEST(UdSwarm, TheFaultsReallyHappen) {
    UdCounters sum;
    NodeTotals nodes;
    LinkCounters links;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        UdWorld world(seed);
        (void)world.run();
        const UdCounters& each = world.counters();
        for (const auto field :
             {&UdCounters::posted, &UdCounters::delivered, &UdCounters::delivered_to_groups, &UdCounters::looped_back,
              &UdCounters::forged, &UdCounters::overruns, &UdCounters::failures, &UdCounters::foreign_memory,
              &UdCounters::flushed, &UdCounters::forgotten}) {
            sum.*field += each.*field;
        }
        nodes += world.node_totals();
        links += world.network().totals();
    }
    std::map<std::string, std::uint64_t> counts{
        {"posted", sum.posted},
        {"delivered", sum.delivered},
        {"delivered to groups", sum.delivered_to_groups},
        {"looped back by the service", sum.looped_back},
        {"forged", sum.forged},
        {"restarts", nodes.restarts},
        {"completion queues overrun", sum.overruns},
        {"failed send requests", sum.failures},
        {"receive requests of foreign memory", sum.foreign_memory},
        {"flushed", sum.flushed},
        {"completions forgotten by RESET", sum.forgotten},
        {"refused by a full ring", nodes.refused},
        {"frames without a buffer", nodes.unheard},
        {"lost", links.lost},
        {"lost in bursts", links.burst_lost},
        {"lost to partitions", links.partitioned},
        {"lost to full queues", links.tail_dropped},
        {"doubled", links.duplicated},
        {"late", links.late_copies},
        {"damaged", links.corrupted},
        {"marked", links.marked},
    };
    for (const roce::Drop reason :
         {roce::Drop::BadIcrc, roce::Drop::TooShort, roce::Drop::BadVersion, roce::Drop::BadOpcode,
          roce::Drop::UnknownQpn, roce::Drop::BadPkey, roce::Drop::BadQkey, roce::Drop::BadLength,
          roce::Drop::WrongState, roce::Drop::NoReceive, roce::Drop::ReceiveTooShort}) {
        counts.emplace(counter_texts(reason)[static_cast<std::size_t>(reason)].name, nodes.drops.of(reason));
    }
    for (const auto& [what, count] : counts) {
        std::printf("%8llu %s\n", static_cast<unsigned long long>(count), what.c_str());
        EXPECT_GT(count, 5U) << what;
    }
}

}  // namespace
}  // namespace cairn::sim
