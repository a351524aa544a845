// When the helper thread sleeps on the socket, and when it leaves the socket alone.
#include <gtest/gtest.h>

#include "lib/ibverbs/helper_policy.hpp"

namespace cairn::ibverbs {
namespace {

using Mode = HelperPolicy::Mode;
using CallerTurn = HelperPolicy::CallerTurn;

constexpr Instant kLongAgo{-seconds(1).ns};

// Takes naps at whose end packets had waited without a poll.
Instant nap_and_find(HelperPolicy& policy, Instant now, int naps) {
    for (int i = 0; i < naps; ++i) {
        const Instant polled = now;
        EXPECT_EQ(policy.decide(now, polled, false), Mode::Park) << i;
        now = now + HelperPolicy::kNap;
        policy.on_nap_end(now, polled, true);
    }
    return now;
}

TEST(HelperPolicyTest, GuardsWhileCallersAreAway) {
    HelperPolicy policy;
    EXPECT_EQ(policy.decide(Instant{}, kLongAgo, false), Mode::Guard);
    EXPECT_EQ(policy.decide(Instant{}, Instant{} - HelperPolicy::kNap, false), Mode::Guard);
}

TEST(HelperPolicyTest, ParksWhileCallersPoll) {
    HelperPolicy policy;
    Instant now{};
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(policy.decide(now, now - microseconds(1), false), Mode::Park);
        now = now + HelperPolicy::kNap;
        policy.on_nap_end(now, now - microseconds(1), true);
    }
}

TEST(HelperPolicyTest, NapsLongerWhileCallersPollOn) {
    HelperPolicy policy;
    Instant now{};
    EXPECT_EQ(policy.nap(), HelperPolicy::kNap);
    for (Duration nap = HelperPolicy::kNap; nap < HelperPolicy::kLongestNap; nap = nap * 2) {
        EXPECT_EQ(policy.nap(), nap);
        now = now + nap;
        policy.on_nap_end(now, now - microseconds(1), false);
    }
    EXPECT_EQ(policy.nap(), HelperPolicy::kLongestNap);
    policy.on_caller_at_work();
    EXPECT_EQ(policy.nap(), HelperPolicy::kLongestNap);
    policy.on_nap_end(now, now - HelperPolicy::kPolls, false);
    EXPECT_EQ(policy.nap(), HelperPolicy::kNap) << "nobody polls now, packet or not";
    policy.on_caller_at_work();
    EXPECT_EQ(policy.nap(), HelperPolicy::kNap * 2);
}

TEST(HelperPolicyTest, NapsShortWhenItHasGuardedMeanwhile) {
    HelperPolicy policy;
    policy.on_caller_at_work();
    EXPECT_EQ(policy.decide(Instant{}, Instant{}, false), Mode::Park);
    EXPECT_EQ(policy.nap(), HelperPolicy::kNap * 2);
    EXPECT_EQ(policy.decide(Instant{}, Instant{}, true), Mode::Guard);
    EXPECT_EQ(policy.nap(), HelperPolicy::kNap);
}

TEST(HelperPolicyTest, GuardsForWhoIsAboutToSleepWhateverOthersDo) {
    HelperPolicy policy;
    EXPECT_EQ(policy.decide(Instant{}, Instant{}, true), Mode::Guard);
    EXPECT_EQ(policy.decide(Instant{}, Instant{}, false), Mode::Park);
}

TEST(HelperPolicyTest, GuardsBesideACallerThatSpinsOnMemory) {
    HelperPolicy policy;
    const Instant now = nap_and_find(policy, Instant{}, HelperPolicy::kSure);
    EXPECT_EQ(policy.decide(now, now, false), Mode::Guard);
    const Instant later = now + HelperPolicy::kStay;
    EXPECT_EQ(policy.decide(later - nanoseconds(1), later, false), Mode::Guard);
    EXPECT_EQ(policy.decide(later, later, false), Mode::Park);  // it checks whether it still has to
    policy.on_nap_end(later + HelperPolicy::kNap, later, true);
    EXPECT_EQ(policy.decide(later + HelperPolicy::kNap, later + HelperPolicy::kNap, false), Mode::Guard);
}

TEST(HelperPolicyTest, ACallerThatWasPreemptedOnceIsStillOneThatPolls) {
    HelperPolicy policy;
    Instant now = nap_and_find(policy, Instant{}, HelperPolicy::kSure - 1);
    EXPECT_EQ(policy.decide(now, now, false), Mode::Park);
    now = now + HelperPolicy::kNap;
    policy.on_nap_end(now, now - microseconds(1), true);  // the caller polls
    now = nap_and_find(policy, now, HelperPolicy::kSure - 1);
    EXPECT_EQ(policy.decide(now, now, false), Mode::Park);
}

TEST(HelperPolicyTest, NapsWithoutPacketsShowNothing) {
    HelperPolicy policy;
    Instant now{};
    for (int i = 0; i < 10; ++i) {
        const Instant polled = now;
        EXPECT_EQ(policy.decide(now, polled, false), Mode::Park);
        now = now + HelperPolicy::kNap;
        policy.on_nap_end(now, polled, false);
    }
    EXPECT_EQ(policy.decide(now, now, false), Mode::Park);
}

TEST(HelperPolicyTest, ACallerThatPollsAgainSendsTheHelperAway) {
    HelperPolicy policy;
    const Instant now = nap_and_find(policy, Instant{}, HelperPolicy::kSure) + HelperPolicy::kStay;
    EXPECT_EQ(policy.decide(now, now, false), Mode::Park);
    const Instant end = now + HelperPolicy::kNap;
    policy.on_nap_end(end, end - microseconds(1), true);
    EXPECT_EQ(policy.decide(end, end, false), Mode::Park);
}

// Makes the helper guard in addition to a caller, since packets waited.
Instant stay(HelperPolicy& policy) {
    const Instant now = nap_and_find(policy, Instant{}, HelperPolicy::kSure);
    EXPECT_EQ(policy.decide(now, now, false), Mode::Guard);
    return now;
}

TEST(HelperPolicyTest, WakesInVainSendTheHelperAway) {
    HelperPolicy policy;
    const Instant now = stay(policy);
    for (int i = 0; i < HelperPolicy::kVain; ++i) {
        EXPECT_EQ(policy.decide(now, now, false), Mode::Guard) << i;
        policy.on_wake(false);
    }
    EXPECT_EQ(policy.decide(now, now, false), Mode::Park);
}

TEST(HelperPolicyTest, OnePacketThatWasFoundIsReasonEnoughToStay) {
    HelperPolicy policy;
    const Instant now = stay(policy);
    for (int i = 0; i < 2 * HelperPolicy::kVain; ++i) {
        policy.on_wake(i % HelperPolicy::kVain == 0);
    }
    EXPECT_EQ(policy.decide(now, now, false), Mode::Guard);
}

// Polls each 1 us while the helper sleeps for long. Returns how many polls park the helper, at most 100.
int polls_until_parked(HelperPolicy& policy, Instant now, Duration apart, bool any_armed = false) {
    int polls = 0;
    for (Instant last = now - seconds(1); polls < 100; last = now, now = now + apart) {
        ++polls;
        const CallerTurn turn = policy.on_caller_turn(now, last, any_armed);
        EXPECT_NE(turn, CallerTurn::NotTaken);
        if (turn == CallerTurn::WakesHelper) {
            EXPECT_EQ(policy.mode(), Mode::Park);
            return polls;
        }
        EXPECT_EQ(policy.mode(), Mode::Guard);
    }
    return polls;
}

TEST(HelperPolicyTest, CallersThatPollParkAHelperThatNothingWakes) {
    HelperPolicy policy;
    EXPECT_EQ(polls_until_parked(policy, Instant{}, microseconds(1)), HelperPolicy::kMany + 1);
    EXPECT_EQ(policy.on_caller_turn(Instant{}, Instant{}, false), CallerTurn::Taken);  // it is
}

TEST(HelperPolicyTest, InAChildOfForkCallersTakeNoTurns) {
    for (const bool parked : {false, true}) {
        HelperPolicy policy;
        EXPECT_EQ(policy.decide(Instant{}, Instant{}, !parked), parked ? Mode::Park : Mode::Guard);
        policy.on_fork();
        for (int i = 0; i < 2 * HelperPolicy::kMany; ++i) {
            EXPECT_EQ(policy.on_caller_turn(Instant{}, Instant{}, i % 2 == 0), CallerTurn::NotTaken);
        }
    }
}

TEST(HelperPolicyTest, CallersThatPollNowAndThenDoNot) {
    HelperPolicy policy;
    EXPECT_EQ(polls_until_parked(policy, Instant{}, HelperPolicy::kPolls), 100);
}

TEST(HelperPolicyTest, WhoArmsAndIsAboutToSleepKeepsTheHelper) {
    HelperPolicy policy;
    Instant now{};
    for (int round = 0; round < 10; ++round) {
        policy.on_arm();
        for (int polls = 0; polls < HelperPolicy::kMany - 1; ++polls, now = now + microseconds(1)) {
            EXPECT_EQ(policy.on_caller_turn(now, now - microseconds(1), true), CallerTurn::Taken);
            EXPECT_EQ(policy.decide(now, now, true), Mode::Guard);
        }
    }
}

// UCX does this: its own thread sleeps until one queue fires, while another thread polls the others.
TEST(HelperPolicyTest, WhoWakesAParkedHelperEndsItsNaps) {
    HelperPolicy policy;
    EXPECT_EQ(policy.decide(Instant{}, Instant{}, false), Mode::Park);
    policy.on_caller_at_work();
    policy.leave_park();
    EXPECT_EQ(policy.mode(), Mode::Guard);
    EXPECT_EQ(policy.nap(), HelperPolicy::kNap);
    EXPECT_EQ(policy.decide(Instant{}, Instant{}, false), Mode::Park) << "callers poll on";
    policy.on_fork();
    policy.leave_park();
    EXPECT_TRUE(policy.is_gone());
}

TEST(HelperPolicyTest, WhoArmsAndPollsOnAndOnParksTheHelper) {
    HelperPolicy policy;
    policy.on_arm();
    EXPECT_EQ(polls_until_parked(policy, Instant{}, microseconds(1), true), HelperPolicy::kMany + 1);
    EXPECT_EQ(policy.decide(Instant{}, Instant{}, true), Mode::Park);
    policy.on_arm();
    EXPECT_EQ(policy.decide(Instant{}, Instant{}, true), Mode::Guard);
}

TEST(HelperPolicyTest, NobodyParksAHelperThatMemorySpinnersNeed) {
    HelperPolicy policy;
    const Instant now = stay(policy);
    EXPECT_EQ(polls_until_parked(policy, now, microseconds(1)), 100);
}

}  // namespace
}  // namespace cairn::ibverbs
