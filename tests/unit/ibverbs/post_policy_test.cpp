// When posted requests leave at once, and when they wait for the caller's next poll.
#include "lib/ibverbs/post_policy.hpp"

#include <gtest/gtest.h>

namespace cairn::ibverbs {
namespace {

class PostPolicyTest : public testing::Test {
protected:
    // Posts a request that leaves at once, and polls `later` after it.
    void post_and_poll(Duration later) {
        pass(microseconds(50));
        EXPECT_TRUE(post(8));
        policy.on_sent(now);
        pass(later);
        policy.on_poll(now);
    }
    void gain_trust() {
        for (int i = 0; i < PostPolicy::kSure; ++i) {
            post_and_poll(nanoseconds(500));
        }
        pass(microseconds(50));
    }
    bool post(std::uint64_t bytes, bool bounded = true) { return policy.on_post(bytes, now, bounded); }
    void pass(Duration time) { now = now + time; }

    PostPolicy policy;
    Instant now{1'000'000};
};

TEST_F(PostPolicyTest, AFirstPostLeavesAtOnce) {
    EXPECT_TRUE(post(8));
}

TEST_F(PostPolicyTest, WhoPollsSoonBehindEachPostSendsWithThePoll) {
    gain_trust();
    EXPECT_FALSE(post(8));
    EXPECT_TRUE(policy.any_waiting());
    pass(microseconds(1));
    policy.on_poll(now);
    EXPECT_FALSE(policy.any_waiting());
    EXPECT_FALSE(post(8));
}

TEST_F(PostPolicyTest, OnePollLessIsNotEnough) {
    for (int i = 0; i + 1 < PostPolicy::kSure; ++i) {
        post_and_poll(nanoseconds(500));
    }
    EXPECT_TRUE(post(8));
}

TEST_F(PostPolicyTest, ManyPollsBehindOnePostTeachOnce) {
    post_and_poll(nanoseconds(500));
    for (int i = 0; i < PostPolicy::kSure; ++i) {
        policy.on_poll(now);
    }
    EXPECT_TRUE(post(8));
}

TEST_F(PostPolicyTest, PostsInARowWaitForEachOther) {
    for (int i = 0; i < PostPolicy::kSure; ++i) {
        EXPECT_TRUE(post(8));
        policy.on_sent(now);
        pass(nanoseconds(500));
    }
    EXPECT_FALSE(post(8));
}

TEST_F(PostPolicyTest, LatePollsTeachNothing) {
    for (int i = 0; i < 2 * PostPolicy::kSure; ++i) {
        post_and_poll(PostPolicy::kSoon);
    }
    EXPECT_TRUE(post(8));
}

TEST_F(PostPolicyTest, WhatWaitedForLongCostsTheTrust) {
    gain_trust();
    EXPECT_FALSE(post(8));
    pass(PostPolicy::kLate);
    policy.on_poll(now);
    EXPECT_TRUE(post(8));
}

TEST_F(PostPolicyTest, WhatTheHelperSentCostsTheTrustIfItWaitedForLong) {
    gain_trust();
    EXPECT_FALSE(post(8));
    pass(PostPolicy::kLate - nanoseconds(1));
    policy.on_sent_by_other(now);
    EXPECT_FALSE(policy.any_waiting());
    EXPECT_FALSE(post(8));
    pass(PostPolicy::kLate);
    policy.on_sent_by_other(now);
    EXPECT_TRUE(post(8));
}

TEST_F(PostPolicyTest, NothingWaitsWhereNobodyWouldSendIt) {
    gain_trust();
    EXPECT_TRUE(post(8, false));
}

TEST_F(PostPolicyTest, WhatWaitsIsBounded) {
    gain_trust();
    for (int i = 1; i < PostPolicy::kMostPosts; ++i) {
        EXPECT_FALSE(post(8)) << i;
    }
    EXPECT_TRUE(post(8));
    policy.on_sent(now);
    pass(microseconds(50));
    EXPECT_FALSE(post(PostPolicy::kMostBytes - 1));
    EXPECT_TRUE(post(1));
}

}  // namespace
}  // namespace cairn::ibverbs
