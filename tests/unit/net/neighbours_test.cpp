// The neighbour table at exact virtual times.
#include "lib/net/neighbours.hpp"

#include <gtest/gtest.h>

namespace cairn::net {
namespace {

constexpr MacAddress kMac{{2, 0, 0, 0, 0, 9}};
constexpr MacAddress kOther{{2, 0, 0, 0, 0, 10}};
constexpr IpAddress kPeer = IpAddress::from_v4(0x0a010002);

struct Asked {
    Instant when;
    bool unicast;
    friend bool operator==(const Asked&, const Asked&) = default;
};

// Lets time pass in steps of 10 ms. Returns the questions and their times.
std::vector<Asked> run(NeighbourTable& table, Instant& now, Duration span) {
    std::vector<Asked> asked;
    for (const Instant end = now + span; now < end; now = now + milliseconds(10)) {
        while (const auto question = table.poll_question(now)) {
            asked.push_back({now, question->to.has_value()});
        }
    }
    return asked;
}

Instant at_ms(std::int64_t ms) {
    return Instant{} + milliseconds(ms);
}

TEST(NeighbourTable, AsksAtOnceThenLessAndLessOftenThenGivesUpUntilWantedAgain) {
    NeighbourTable table;
    Instant now{};
    EXPECT_EQ(table.resolve(kPeer, now), std::nullopt);
    const std::vector<Asked> asked = run(table, now, seconds(20));
    ASSERT_EQ(asked.size(), kAskTries);
    EXPECT_EQ(asked[0], (Asked{at_ms(0), false}));
    EXPECT_EQ(asked[1], (Asked{at_ms(100), false}));
    EXPECT_EQ(asked[2], (Asked{at_ms(300), false}));
    EXPECT_EQ(asked[3], (Asked{at_ms(700), false}));
    EXPECT_EQ(asked[9].when - asked[8].when, kAskLongest);
    EXPECT_EQ(table.next_deadline(), Instant::never());
    EXPECT_EQ(table.resolve(kPeer, now), std::nullopt);
    EXPECT_EQ(run(table, now, milliseconds(20)).size(), 1U);
}

TEST(NeighbourTable, AnAnswerEndsTheAskingAndIsReportedOnce) {
    NeighbourTable table;
    Instant now{};
    (void)table.resolve(kPeer, now);
    run(table, now, milliseconds(50));
    EXPECT_EQ(table.learn(kPeer, kMac, now), NeighbourTable::Learnt::Changed);
    EXPECT_EQ(table.resolve(kPeer, now), kMac);
    const auto change = table.poll_change();
    ASSERT_TRUE(change.has_value());
    EXPECT_EQ(change->mac, kMac);
    EXPECT_FALSE(table.poll_change().has_value());
    EXPECT_TRUE(run(table, now, kNeighbourFresh - milliseconds(100)).empty());
}

TEST(NeighbourTable, AnOldEntryIsAskedByItsOwnMacAndStaysInUseMeanwhile) {
    NeighbourTable table;
    Instant now{};
    (void)table.resolve(kPeer, now);
    table.learn(kPeer, kMac, now);
    (void)table.poll_change();
    const std::vector<Asked> asked = run(table, now, kNeighbourFresh + milliseconds(60));
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0], (Asked{Instant{} + kNeighbourFresh, true}));
    EXPECT_EQ(table.resolve(kPeer, now), kMac);
    EXPECT_EQ(table.learn(kPeer, kMac, now), NeighbourTable::Learnt::Confirmed);
    EXPECT_TRUE(run(table, now, seconds(20)).empty());
    EXPECT_FALSE(table.poll_change().has_value());
}

TEST(NeighbourTable, OneThatNoLongerAnswersIsReportedAsGoneAndAskedForAsAStranger) {
    NeighbourTable table;
    Instant now{};
    (void)table.resolve(kPeer, now);
    table.learn(kPeer, kMac, now);
    (void)table.poll_change();
    const std::vector<Asked> asked = run(table, now, kNeighbourFresh + seconds(1));
    ASSERT_GT(asked.size(), std::size_t{kConfirmTries});
    for (std::size_t i = 0; i < asked.size(); ++i) {
        EXPECT_EQ(asked[i].unicast, i < kConfirmTries) << i;
    }
    EXPECT_EQ(table.resolve(kPeer, now), std::nullopt);
    const auto change = table.poll_change();
    ASSERT_TRUE(change.has_value());
    EXPECT_EQ(change->mac, std::nullopt);
}

TEST(NeighbourTable, StrangersGetNoEntryAndAMacThatChangesTooOftenIsRefused) {
    NeighbourTable table;
    Instant now{};
    EXPECT_EQ(table.learn(kPeer, kMac, now), NeighbourTable::Learnt::NotWanted);
    EXPECT_EQ(table.size(), 0U);
    (void)table.resolve(kPeer, now);
    table.learn(kPeer, kMac, now);
    EXPECT_EQ(table.learn(kPeer, kOther, now + milliseconds(999)), NeighbourTable::Learnt::TooFrequent);
    EXPECT_EQ(table.resolve(kPeer, now), kMac);
    EXPECT_EQ(table.learn(kPeer, kOther, now + kChangeLeast), NeighbourTable::Learnt::Changed);
    EXPECT_EQ(table.resolve(kPeer, now), kOther);
}

TEST(NeighbourTable, AFullTableForgetsTheOneConfirmedLongestAgo) {
    NeighbourTable table(2);
    const IpAddress second = IpAddress::from_v4(2);
    const IpAddress third = IpAddress::from_v4(3);
    (void)table.resolve(kPeer, at_ms(0));
    (void)table.resolve(second, at_ms(1));
    table.learn(second, kMac, at_ms(4));
    table.learn(kPeer, kMac, at_ms(5));
    (void)table.resolve(third, at_ms(6));
    EXPECT_EQ(table.size(), 2U);
    EXPECT_EQ(table.resolve(kPeer, at_ms(7)), kMac);
    EXPECT_EQ(table.learn(second, kMac, at_ms(8)), NeighbourTable::Learnt::NotWanted);
}

TEST(NeighbourTable, AFullTableTakesNoneOfThoseItAsksForSoThatTheQuestionsEnd) {
    constexpr std::uint32_t kPlaces = 8;
    NeighbourTable table(kPlaces);
    Instant now{};
    const auto want_all = [&table](Instant at) {
        for (std::uint32_t i = 1; i <= 5 * kPlaces; ++i) {
            (void)table.resolve(IpAddress::from_v4(i), at);
        }
    };
    std::size_t asked = 0;
    while (now < at_ms(7000)) {  // before the first question for the first ones ends
        want_all(now);
        asked += run(table, now, milliseconds(10)).size();
    }
    EXPECT_EQ(asked, std::size_t{kPlaces} * kAskTries);
    asked += run(table, now, seconds(20)).size();
    EXPECT_EQ(asked, std::size_t{kPlaces} * kAskTries);
    EXPECT_EQ(table.next_deadline(), Instant::never());
    (void)table.resolve(IpAddress::from_v4(5 * kPlaces), now);
    EXPECT_EQ(table.learn(IpAddress::from_v4(5 * kPlaces), kMac, now), NeighbourTable::Learnt::Changed);
}

TEST(NeighbourTable, WithoutTheOverrideFlagAnotherMacIsOnlyAReasonToAsk) {
    NeighbourTable table;
    Instant now{};
    (void)table.resolve(kPeer, now);
    EXPECT_EQ(table.learn(kPeer, kMac, now, Override::No), NeighbourTable::Learnt::Changed) << "none is known yet";
    (void)table.poll_change();
    EXPECT_EQ(table.poll_planned(), now + kNeighbourFresh);
    EXPECT_TRUE(run(table, now, seconds(5)).empty());
    EXPECT_EQ(table.poll_planned(), Instant::never());
    EXPECT_EQ(table.learn(kPeer, kOther, now, Override::No), NeighbourTable::Learnt::Doubted);
    EXPECT_EQ(table.poll_planned(), now);
    EXPECT_EQ(table.resolve(kPeer, now), kMac);
    EXPECT_EQ(run(table, now, milliseconds(50)), (std::vector<Asked>{{at_ms(5000), true}}));
    EXPECT_EQ(table.learn(kPeer, kOther, now, Override::No), NeighbourTable::Learnt::Doubted);
    EXPECT_EQ(table.poll_planned(), Instant::never()) << "it is being asked";
    EXPECT_EQ(table.learn(kPeer, kMac, now, Override::No), NeighbourTable::Learnt::Confirmed);
    EXPECT_TRUE(run(table, now, seconds(5)).empty());
    EXPECT_FALSE(table.poll_change().has_value());
}

TEST(NeighbourTable, WhoWasAskedForInVainIsNobody) {
    NeighbourTable table;
    Instant now{};
    EXPECT_FALSE(table.is_nobody(kPeer)) << "nobody asked";
    (void)table.resolve(kPeer, now);
    (void)run(table, now, seconds(2));
    EXPECT_FALSE(table.is_nobody(kPeer));
    (void)run(table, now, seconds(20));
    EXPECT_TRUE(table.is_nobody(kPeer));
    table.learn(kPeer, kMac, now);
    EXPECT_FALSE(table.is_nobody(kPeer));
}

TEST(NeighbourTable, WhatIsKnownIsToldWithoutAsking) {
    NeighbourTable table;
    EXPECT_EQ(table.known(kPeer), std::nullopt);
    EXPECT_EQ(table.size(), 0U);
    (void)table.resolve(kPeer, Instant{});
    EXPECT_EQ(table.known(kPeer), std::nullopt);
    table.learn(kPeer, kMac, Instant{});
    EXPECT_EQ(table.known(kPeer), kMac);
}

}  // namespace
}  // namespace cairn::net
