// The swarm of each simulated world: it runs histories, and says how to repeat one that broke a promise.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/environment.hpp"

namespace cairn::sim {

// Returns the command that shows the history again. `world` is a line of regressions.txt without its seed.
inline std::string replay_of(std::string_view world, std::uint64_t seed) {
    const std::string chosen = world == "small" ? "--small" : "--world " + std::string(world);
    return "replay: build/apps/cairn-sim " + chosen + " --seed " + std::to_string(seed) + " --trace";
}

// Returns the seeds that once broke a promise of the world. A line of the file has a world and a seed.
inline std::vector<std::uint64_t> regressions_of(std::string_view world) {
    constexpr std::array<std::string_view, 10> kWorlds{"erpc",  "small",   "rc",       "cm",    "ud",
                                                       "verbs", "copyrpc", "scalerpc", "mixed", "fs"};
    std::ifstream file(CAIRN_REGRESSIONS);
    EXPECT_TRUE(file.is_open());
    std::vector<std::uint64_t> seeds;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.front() == '#') {
            continue;
        }
        std::istringstream words(line);
        std::string name;
        std::uint64_t seed = 0;
        words >> name >> seed;
        EXPECT_TRUE(words && std::find(kWorlds.begin(), kWorlds.end(), name) != kWorlds.end()) << line;
        if (name == world) {
            seeds.push_back(seed);
        }
    }
    return seeds;
}

// Runs a history. With SIM_TEXT it prints its events.
template <class World>
void live_through(std::string_view name, std::uint64_t seed) {
    World world(seed);
    const std::optional<std::string> broken = world.run();
    if (std::getenv("SIM_TEXT") != nullptr) {
        std::printf("%llu: %s\n", static_cast<unsigned long long>(seed), world.text().c_str());
    }
    if (broken) {
        ADD_FAILURE() << *broken << "\n  " << world.text() << "\n  " << replay_of(name, seed);
    }
}

// Runs the seeds that once broke a promise, then `histories` seeds from SIM_SEED (1) on, until one breaks a promise.
template <class World>
void live_through_all(std::string_view name, std::uint64_t histories) {
    for (const std::uint64_t seed : regressions_of(name)) {
        live_through<World>(name, seed);
    }
    const std::uint64_t first = test::first_seed();
    for (std::uint64_t seed = first; seed < first + histories && !testing::Test::HasFailure(); ++seed) {
        live_through<World>(name, seed);
    }
}

}  // namespace cairn::sim
