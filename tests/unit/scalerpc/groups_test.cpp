// Groups: sizes, priorities, and their order.
#include "rpc/scalerpc/groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace cairn::scalerpc {
namespace {

SessionId id(std::uint32_t number) {
    return SessionId{static_cast<std::uint16_t>(number)};
}

TEST(ScalerpcGroups, ManyMembersAreGroupsOfTheUsualSize) {
    Groups groups({});
    for (std::uint32_t i = 0; i < 400; ++i) {
        groups.add(id(i));
        groups.check();
    }
    EXPECT_GE(groups.size(), 7U);   // when the size is 60
    EXPECT_LE(groups.size(), 20U);  // when the size is 20
    Groups few({});
    for (std::uint32_t i = 0; i < 60; ++i) {
        few.add(id(i));
    }
    EXPECT_EQ(few.size(), 1U);
    few.add(id(60));
    EXPECT_EQ(few.size(), 2U);
}

TEST(ScalerpcGroups, SizesHoldWhateverComesAndGoes) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        Groups groups({.size = 8, .regroup_every = 2});
        std::set<std::uint32_t> members;
        for (int i = 0; i < 3000; ++i) {
            const auto one = static_cast<std::uint32_t>(random() % 100);
            if (random() % 3 != 0 && members.insert(one).second) {
                groups.add(id(one));
            } else if (members.erase(one) != 0) {
                groups.remove(id(one));
            }
            if (groups.size() > 0 && random() % 4 == 0) {
                std::vector<Groups::Share> shares;
                for (const SessionId member : groups[random() % groups.size()].members) {
                    shares.push_back({member, static_cast<std::uint32_t>(random() % 100), random() % 10000});
                }
                groups.end_slice(shares, microseconds(100));
            }
            groups.check();
        }
        std::size_t counted = 0;
        for (std::size_t i = 0; i < groups.size(); ++i) {
            counted += groups[i].members.size();
        }
        EXPECT_EQ(counted, members.size());
        EXPECT_GT(groups.splits() + groups.merges() + groups.regroupings(), 10U);
    }
}

TEST(ScalerpcGroups, TwoGroupsThatAreTooLargeTogetherStayTwo) {
    Groups groups({.size = 8});
    for (std::uint32_t i = 0; i < 24; ++i) {
        groups.add(id(i));
    }
    ASSERT_EQ(groups.size(), 2U);
    const std::vector<SessionId> members = groups[0].members;
    for (std::size_t i = 0; i < 9; ++i) {
        groups.remove(members[i]);
    }
    EXPECT_EQ(groups.merges(), 1U);
    EXPECT_EQ(groups.size(), 2U);
    groups.check();
}

TEST(ScalerpcGroups, ThePriorityIsThroughputOverSize) {
    Groups groups({});
    groups.add(id(1));
    groups.add(id(2));
    const std::vector<Groups::Share> shares{{id(1), 10, 310}, {id(2), 0, 0}, {id(77), 5, 5}};
    groups.end_slice(shares, microseconds(100));
    EXPECT_NEAR(groups.priority_of(id(1)), 10 / 100e-6 / 32, 1);
    EXPECT_EQ(groups.priority_of(id(2)), 0);
    EXPECT_EQ(groups.priority_of(id(77)), 0);
}

// Clients with many small requests are together, in a smaller group with a longer slice.
TEST(ScalerpcGroups, MembersOfLikePriorityComeTogether) {
    Groups groups({.size = 8, .regroup_every = 1});
    for (std::uint32_t i = 0; i < 64; ++i) {
        groups.add(id(i));
    }
    for (int round = 0; round < 20; ++round) {
        std::vector<Groups::Share> shares;
        for (std::uint32_t i = 0; i < 64; ++i) {
            const std::uint32_t requests = i % 8 == 0 ? 400 : i % 2 == 0 ? 40 : 4;
            shares.push_back({id(i), requests, requests * 32U});
        }
        groups.end_slice(shares, microseconds(100));
    }
    EXPECT_GT(groups.regroupings(), 0U);
    groups.check();
    const Groups::Group& first = groups[groups.group_of(id(0))];
    const Groups::Group& last = groups[groups.group_of(id(1))];
    EXPECT_LT(first.members.size(), last.members.size());
    EXPECT_GT(first.slice, last.slice);
    EXPECT_LT(groups.group_of(id(0)), groups.group_of(id(1))) << "the highest first";
    const auto busy = std::count_if(first.members.begin(), first.members.end(),
                                    [](SessionId member) { return member.value % 8 == 0; });
    EXPECT_GE(busy, static_cast<std::ptrdiff_t>(first.members.size()) - 2);
}

TEST(ScalerpcGroups, AClassIsLeftOnlyByMoreThanAHalf) {
    EXPECT_EQ(rank_of(1024, 0), 10);
    EXPECT_EQ(rank_of(2000, 10), 10);
    EXPECT_EQ(rank_of(2100, 10), 10) << "a little above";
    EXPECT_EQ(rank_of(3000, 10), 11);
    EXPECT_EQ(rank_of(1000, 10), 10) << "a little below";
    EXPECT_EQ(rank_of(700, 10), 9);
    EXPECT_LT(rank_of(0, 10), rank_of(0.001, 10));
}

TEST(ScalerpcGroups, TheGroupThatHasWaitedLongestIsNext) {
    Groups groups({.size = 2, .by_priority = false});
    for (std::uint32_t i = 0; i < 12; ++i) {
        groups.add(id(i));
    }
    const auto all = [](const Groups::Group&) { return true; };
    std::vector<int> served(groups.size());
    for (std::size_t i = 0; i < 5 * groups.size(); ++i) {
        const std::size_t next = groups.next(all);
        ++served[next];
        groups.begin_slice(next);
    }
    EXPECT_EQ(*std::min_element(served.begin(), served.end()), 5);
    EXPECT_EQ(groups.next([](const Groups::Group&) { return false; }), groups.size());
    EXPECT_EQ(groups.next([](const Groups::Group& group) { return group.members.front() == SessionId{0}; }),
              groups.group_of(id(0)));
}

TEST(ScalerpcGroups, CohortsStayAsTheirMembersSayAndHaveRoomForAGroup) {
    GroupConfig config;
    config.size = 4;
    config.cohorts = 3;
    Groups groups(config);
    EXPECT_EQ(groups.size(), 3U);
    for (std::uint32_t i = 0; i < 6; ++i) {
        EXPECT_TRUE(groups.add(id(i), 4)) << "modulo the cohorts";
    }
    EXPECT_FALSE(groups.add(id(6), 1)) << "more than a pool has places";
    EXPECT_TRUE(groups.add(id(7), 2));
    for (std::uint32_t i = 0; i < 6; ++i) {
        EXPECT_EQ(groups.group_of(id(i)), 1U);
    }
    for (std::uint32_t i = 0; i < 100; ++i) {
        groups.end_slice(std::vector<Groups::Share>{{id(7), 1000, 1000}, {id(0), 1, 1000}}, microseconds(100));
    }
    for (std::uint32_t i = 1; i < 6; ++i) {
        groups.remove(id(i));
    }
    groups.check();
    EXPECT_EQ(groups.size(), 3U);
    EXPECT_EQ(groups[1].members.size(), 1U);
    EXPECT_EQ(groups.regroupings() + groups.merges() + groups.splits(), 0U);
}

}  // namespace
}  // namespace cairn::scalerpc
