// Histories of two queue pairs from seeds: exactly once, in order, memory equal, atomics right; then the link heals and
// all must end. RC_SEED=n runs one of them, RC_SEEDS=n that many.
#include <cstdio>
#include <cstdlib>

#include "tests/unit/rc/rc_world.hpp"

namespace cairn::roce::rc {
namespace {

constexpr std::uint64_t kSeeds = 2000;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(RcPair, EveryHistoryIsExactlyOnceInOrderAndEnds) {
    const std::uint64_t one = number_of("RC_SEED", 0);
    const std::uint64_t first = one != 0 ? one : 1;
    const std::uint64_t last = one != 0 ? one : number_of("RC_SEEDS", kSeeds);
    std::uint64_t again = 0;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        SCOPED_TRACE("RC_SEED=" + std::to_string(seed));
        RcWorld world(seed);
        world.run();
        again += world.retransmissions();
        if (testing::Test::HasFailure()) {
            return;
        }
    }
    std::printf("%llu duplicate requests came and did nothing\n", static_cast<unsigned long long>(again));
    EXPECT_TRUE(one != 0 || again > last);
}

TEST(RcPair, OneSeedIsOneHistory) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        RcWorld once(seed);
        once.run();
        RcWorld twice(seed);
        twice.run();
        EXPECT_EQ(once.history(), twice.history());
    }
}

}  // namespace
}  // namespace cairn::roce::rc
