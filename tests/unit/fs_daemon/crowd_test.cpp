// The clients that are admitted, and the clients that have to make room.
#include "fs/daemon/crowd.hpp"

#include <gtest/gtest.h>

#include <array>

namespace cairn::fs {
namespace {

using Verdict = Crowd::Verdict;
constexpr std::uint32_t kOwn = 77;

TEST(CrowdTest, AUserHasItsShare) {
    Crowd crowd(4, 2, kOwn);
    EXPECT_EQ(crowd.judge(1000), Verdict::Welcome);
    crowd.add(1000);
    EXPECT_EQ(crowd.judge(1000), Verdict::Welcome);
    crowd.add(1000);
    EXPECT_EQ(crowd.judge(1000), Verdict::HasShare);
    EXPECT_EQ(crowd.judge(1001), Verdict::Welcome);
    EXPECT_EQ(crowd.count_of(1000), 2U);
    EXPECT_EQ(crowd.count_of(1001), 0U);
    crowd.remove(1000);
    EXPECT_EQ(crowd.judge(1000), Verdict::Welcome);
    EXPECT_EQ(crowd.count(), 1U);
}

TEST(CrowdTest, RootAndTheDaemonsOwnUserHaveAllThatThereIs) {
    for (const std::uint32_t user : {0U, kOwn}) {
        Crowd crowd(4, 2, kOwn);
        for (int i = 0; i != 4; ++i) {
            EXPECT_EQ(crowd.judge(user), Verdict::Welcome);
            crowd.add(user);
        }
        EXPECT_EQ(crowd.judge(user), Verdict::Full);
        EXPECT_EQ(crowd.judge(1000), Verdict::Full);
    }
}

TEST(CrowdTest, TheOldestOfWhoHasTheMostMakesRoom) {
    EXPECT_EQ(place_to_give_up(std::array{5U}), 0U);
    EXPECT_EQ(place_to_give_up(std::array{5U, 6U, 7U}), 0U);
    EXPECT_EQ(place_to_give_up(std::array{5U, 6U, 7U, 6U}), 1U);
    EXPECT_EQ(place_to_give_up(std::array{5U, 6U, 5U, 7U, 7U, 7U}), 3U);
}

}  // namespace
}  // namespace cairn::fs
