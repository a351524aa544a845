// The decisions of the broker of an address, step by step: who gets which slot, which programs are refused, where
// datagrams go.
#include "tests/unit/broker/hub_fixture.hpp"

namespace cairn::broker {
namespace {

TEST_F(HubTest, ProgramsGetSlotsOneBehindTheOtherAndAllSocketsSoFar) {
    EXPECT_EQ(join(1), 1U);
    EXPECT_EQ(lendings.back().second.sockets, 2U);
    EXPECT_EQ(join(2), 2U);
    EXPECT_EQ(lendings.back().second.sockets, 3U);
    EXPECT_EQ(copied, (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(drained, (std::vector<unsigned>{1, 2}));  // before any program reads there
    EXPECT_EQ(count(Counter::Lent), 2U);
}

TEST_F(HubTest, ASlotRestsBeforeItIsLentAgain) {
    EXPECT_EQ(join(1), 1U);
    hub.on_lost(ClientId{1}, now);
    EXPECT_EQ(join(2), 2U);
    pass(config.rest - nanoseconds(1));
    EXPECT_EQ(join(3), 3U);
    pass(nanoseconds(1));
    EXPECT_EQ(join(4), 1U);
    EXPECT_EQ(sockets, 4U);
    EXPECT_EQ(drained, (std::vector<unsigned>{1, 2, 3, 1}));
}

TEST_F(HubTest, OfSeveralThatRestedTheOneThatIsFreeForLongestIsLent) {
    for (const std::uint64_t id : {1U, 2U, 3U}) {
        join(id);
    }
    say(2, Leave{});
    pass(milliseconds(1));
    say(1, Leave{});
    say(3, Leave{});
    pass(config.rest);
    EXPECT_EQ(join(4), 2U);
}

TEST_F(HubTest, WithAllSlotsThereNobodyRests) {
    for (std::uint64_t id = 1; id < kMostSockets; ++id) {
        ASSERT_EQ(join(id), id);
    }
    EXPECT_EQ(join(1000), 0U);
    EXPECT_EQ(refusals.back(), (std::pair<std::uint64_t, Refusal>{1000, Refusal::Full}));
    EXPECT_EQ(ended.back(), 1000U);
    hub.on_lost(ClientId{77}, now);
    EXPECT_EQ(join(1001), 77U);
}

TEST_F(HubTest, WithoutFurtherSocketsOneThatDidNotRestIsBetterThanNone) {
    EXPECT_EQ(join(1), 1U);
    say(1, Leave{});
    growth = Growth::Refused;
    EXPECT_EQ(join(2), 1U);
    EXPECT_EQ(join(3), 0U);
    EXPECT_EQ(refusals.back().second, Refusal::NoResources);
}

TEST_F(HubTest, WhoFindsThePortTakenWaitsForOthersToComeBack) {
    taken = true;
    EXPECT_EQ(join(1), 0U);
    EXPECT_TRUE(refusals.empty());
    EXPECT_EQ(hub.next_deadline(), now + config.again);
    brought = 5;
    connect(2);
    say(2, Rejoin{Slot{3}, 5});
    say(2, Sockets{4});
    EXPECT_TRUE(lendings.empty());
    say(2, Sockets{1});
    ASSERT_EQ(lendings.size(), 1U);
    EXPECT_EQ(lendings.back(), (std::pair<std::uint64_t, Lent>{2, {Slot{3}, 0}}));
    pass(config.again);
    ASSERT_EQ(lendings.size(), 2U);
    EXPECT_EQ(lendings.back(), (std::pair<std::uint64_t, Lent>{1, {Slot{5}, 6}}));  // the others may belong to other
                                                                                    // programs
    EXPECT_EQ(count(Counter::Rejoined), 1U);
}

TEST_F(HubTest, WhoWaitsInVainIsTold) {
    taken = true;
    join(1);
    pass(config.patience - nanoseconds(1));
    EXPECT_TRUE(refusals.empty());
    pass(config.again);
    ASSERT_EQ(refusals.size(), 1U);
    EXPECT_EQ(refusals.back().second, Refusal::PortTaken);
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{1}));
}

TEST_F(HubTest, WhoWaitsIsLookedAtWhenItIsDue) {
    taken = true;
    join(1);
    pass(config.again / 2);
    join(2);
    EXPECT_EQ(openings, 2);
    pass(config.again / 2);
    EXPECT_EQ(openings, 3);
    pass(config.again / 2);
    EXPECT_EQ(openings, 4);
}

// Looking for them takes long, and other programs are served meanwhile.
TEST_F(HubTest, HiddenSocketsAreLookedForOnceForAllThatWait) {
    brought = 2;
    connect(1);
    say(1, Rejoin{Slot{1}, 2});
    say(1, Sockets{2});
    growth = Growth::Hidden;
    probing = milliseconds(100);
    for (const std::uint64_t id : {2U, 3U, 4U}) {
        join(id);
    }
    EXPECT_EQ(growths, 1);
    EXPECT_EQ(hub.next_deadline(), now + config.again);
    pass(config.again);
    EXPECT_EQ(growths, 2);
    EXPECT_EQ(hub.next_deadline(), now + config.again);
    EXPECT_TRUE(refusals.empty());
    brought = 3;  // the program with the missing one comes back
    growth = Growth::Grown;
    connect(5);
    say(5, Rejoin{Slot{2}, 3});
    say(5, Sockets{3});
    EXPECT_EQ(join(6), 3U);
    pass(config.again);
    EXPECT_EQ(lendings.size(), 6U);
}

TEST_F(HubTest, SocketsThatNobodySpeaksForAreNotLentBehind) {
    brought = 2;
    connect(1);
    say(1, Rejoin{Slot{1}, 2});
    say(1, Sockets{2});
    growth = Growth::Hidden;
    join(2);
    EXPECT_EQ(lendings.size(), 1U);
    EXPECT_EQ(count(Counter::Hidden), 1U);
    pass(config.patience);
    EXPECT_EQ(refusals.back(), (std::pair<std::uint64_t, Refusal>{2, Refusal::NoAnswer}));
    growth = Growth::Grown;
    pass(config.again);
    EXPECT_EQ(join(3), 2U);
}

TEST_F(HubTest, NobodyComesBackToASlotOfAnother) {
    brought = 3;
    EXPECT_EQ(join(1), 1U);
    connect(2);
    say(2, Rejoin{Slot{1}, 2});
    say(2, Sockets{2});
    EXPECT_EQ(lendings.size(), 1U);
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{2}));
    EXPECT_EQ(count(Counter::Garbage), 1U);
    brought.reset();
    connect(3);
    say(3, Rejoin{Slot{2}, 3});
    say(3, Sockets{3});
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{2, 3}));
}

TEST_F(HubTest, DatagramsGoToWhoHasTheirQueuePair) {
    join(1);
    join(2);
    hub.on_stray(stray_for(0xabcd02));
    EXPECT_EQ(strays, (std::vector<std::uint64_t>{2}));
    say(1, stray_for(0x1102));
    EXPECT_EQ(strays, (std::vector<std::uint64_t>{2, 2}));
    EXPECT_EQ(count(Counter::Forwarded), 2U);
    say(2, stray_for(0x1102));  // it knows its own queue pairs
    hub.on_stray(stray_for(0x1103));
    hub.on_stray(stray_for(0));
    Stray shorter = stray_for(0x1102);
    shorter.bytes = shorter.bytes.first(11);
    hub.on_stray(shorter);
    EXPECT_EQ(count(Counter::NoOwner), 4U);
    EXPECT_EQ(strays.size(), 2U);
    full = true;
    hub.on_stray(stray_for(0xabcd02));
    EXPECT_EQ(count(Counter::NoRoom), 1U);
    hub.on_lost(ClientId{2}, now);
    full = false;
    hub.on_stray(stray_for(0xabcd02));
    EXPECT_EQ(strays.size(), 2U);
}

TEST_F(HubTest, NonsenseEndsItsConnection) {
    join(1);
    say(1, Join{});
    connect(2);
    say(2, stray_for(0x101));
    connect(3);
    say(3, Sockets{1});
    connect(4);
    say(4, Rejoin{Slot{1}, 2});
    say(4, Sockets{3});
    connect(5);
    say(5, Lent{Slot{1}, 2});
    connect(6);
    say(6, Refused{});
    connect(7);
    hub.on_message(ClientId{7}, std::nullopt, now);
    connect(8);
    say(8, Rejoin{Slot{1}, 2});
    say(8, Rejoin{Slot{1}, 2});
    connect(9);
    say(9, Rejoin{Slot{1}, 2});
    say(9, Look{});
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(count(Counter::Garbage), 9U);
    EXPECT_EQ(hub.clients(), 0U);
    say(8, Join{});  // its remaining messages belong to no program
    EXPECT_EQ(lendings.size(), 1U);
}

TEST_F(HubTest, WhoIsSilentMakesRoom) {
    for (std::uint64_t id = 1; id <= config.strangers; ++id) {
        connect(id);
    }
    connect(1000);
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{1000}));
    EXPECT_EQ(count(Counter::Crowded), 1U);
    say(1, Join{});  // messages of members do not count
    connect(1001);
    EXPECT_EQ(hub.clients(), config.strangers + 1U);
    say(2, Rejoin{Slot{1}, 2});
    pass(config.silence);
    EXPECT_EQ(count(Counter::Silent), static_cast<std::uint64_t>(config.strangers));
    EXPECT_EQ(hub.clients(), 1U);
    EXPECT_EQ(hub.next_deadline(), Instant::never());
}

TEST_F(HubTest, WhoCannotBeToldHasNoSlot) {
    full = true;
    connect(1);
    say(1, Join{});
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{1}));
    EXPECT_EQ(hub.slots().state(Slot{1}), Slots::State::Free);
}

TEST_F(HubTest, WithoutProgramsItIsOverAfterAWhile) {
    EXPECT_FALSE(hub.is_over(now));
    EXPECT_EQ(hub.next_deadline(), now + config.idle);
    join(1);
    pass(config.idle * 3);
    EXPECT_FALSE(hub.is_over(now));
    hub.on_lost(ClientId{1}, now);
    EXPECT_FALSE(hub.is_over(now + config.idle - nanoseconds(1)));
    EXPECT_TRUE(hub.is_over(now + config.idle));
}

TEST_F(HubTest, WhoOnlyLooksDoesNotKeepItAlive) {
    join(1);
    hub.on_lost(ClientId{1}, now);
    const Instant over = now + config.idle;
    for (std::uint64_t monitor = 2; now < over; ++monitor) {
        EXPECT_EQ(hub.next_deadline(), over);
        connect(monitor);
        say(monitor, Look{});
        pass(config.idle / 4);
    }
    connect(100);  // has not sent anything yet
    EXPECT_TRUE(hub.is_over(now));
}

}  // namespace
}  // namespace cairn::broker
