// eRPC under a swarm of faults: SIM_RUNS histories (300), each from one seed, beginning with SIM_SEED (1). With
// SIM_TEXT each tells what happened in it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/sim/erpc_world.hpp"

namespace cairn::sim {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

ErpcWorld make_world(std::uint64_t seed) {
    return ErpcWorld(seed, 1 + seed % 3, 1 + seed % 2);
}

// One history; on failure its seed, what was wrong, and the last frames as a file for Wireshark.
void live_through(std::uint64_t seed) {
    ErpcWorld world = make_world(seed);
    const std::optional<std::string> broken = world.run();
    if (std::getenv("SIM_TEXT") != nullptr) {
        std::printf("%llu: %s\n", static_cast<unsigned long long>(seed), world.text().c_str());
    }
    if (broken) {
        const std::string file = testing::TempDir() + "erpc_sim_" + std::to_string(seed) + ".pcap";
        const bool written = world.network().capture().write(file);
        ADD_FAILURE() << "SIM_SEED=" << seed << " SIM_RUNS=1: " << *broken << "\n  " << world.text() << "\n  "
                      << (written ? "frames: " + file : "no frames written");
    }
}

TEST(ErpcSwarm, KeepsItsPromisesUnderEverySeed) {
    const std::uint64_t first = number_from("SIM_SEED", 1);
    const std::uint64_t runs = number_from("SIM_RUNS", 300);
    for (std::uint64_t seed = first; seed < first + runs && !testing::Test::HasFailure(); ++seed) {
        live_through(seed);
    }
}

TEST(ErpcSwarm, KeepsItsPromisesUnderTheSeedsThatOnceBrokeThem) {
    std::ifstream file(CAIRN_REGRESSIONS);
    ASSERT_TRUE(file.is_open());
    for (std::string line; std::getline(file, line);) {
        if (!line.empty() && line.front() != '#') {
            live_through(std::stoull(line));
        }
    }
}

TEST(ErpcSwarm, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1000; seed < 1005; ++seed) {
        ErpcWorld first = make_world(seed);
        ErpcWorld second = make_world(seed);
        EXPECT_EQ(first.run(), second.run());
        EXPECT_EQ(first.trace_hash(), second.trace_hash()) << seed;
        EXPECT_EQ(first.calls_ok(), second.calls_ok());
    }
}

TEST(ErpcSwarm, TheFaultsReallyHappen) {
    LinkCounters sum;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        ErpcWorld world = make_world(seed);
        (void)world.run();
        const LinkCounters totals = world.network().totals();
        sum.lost += totals.lost;
        sum.burst_lost += totals.burst_lost;
        sum.duplicated += totals.duplicated;
        sum.corrupted += totals.corrupted;
        sum.partitioned += totals.partitioned;
        sum.tail_dropped += totals.tail_dropped;
    }
    EXPECT_GT(sum.lost, 100U);
    EXPECT_GT(sum.burst_lost, 100U);
    EXPECT_GT(sum.duplicated, 100U);
    EXPECT_GT(sum.corrupted, 100U);
    EXPECT_GT(sum.partitioned, 10U);
}

}  // namespace
}  // namespace cairn::sim
