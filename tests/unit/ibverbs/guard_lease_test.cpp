// The thread that sleeps on the socket: one at a time, and not for ever if it has gone away.
#include "lib/ibverbs/guard_lease.hpp"

#include <gtest/gtest.h>

namespace cairn::ibverbs {
namespace {

constexpr Instant kBegin{1'000'000'000};

TEST(GuardLease, OneThreadHasIt) {
    GuardLease lease;
    EXPECT_FALSE(lease.is_held(kBegin));
    EXPECT_TRUE(lease.take(kBegin));
    EXPECT_TRUE(lease.is_held(kBegin));
    EXPECT_FALSE(lease.take(kBegin + microseconds(1)));
    lease.give_back(kBegin + microseconds(2));
    EXPECT_TRUE(lease.take(kBegin + microseconds(2)));
}

TEST(GuardLease, EndsIfItIsNotRenewed) {
    GuardLease lease;
    EXPECT_TRUE(lease.take(kBegin));
    EXPECT_EQ(lease.until(), kBegin + GuardLease::kLease);
    EXPECT_TRUE(lease.is_held(lease.until() - nanoseconds(1)));
    EXPECT_FALSE(lease.is_held(lease.until()));
    EXPECT_TRUE(lease.take(lease.until()));
    EXPECT_LT(GuardLease::kRenew, GuardLease::kLease);
    lease.renew(kBegin + GuardLease::kLease + GuardLease::kRenew);
    EXPECT_TRUE(lease.is_held(kBegin + GuardLease::kLease + GuardLease::kLease));
}

TEST(GuardLease, IsLikelyToBeTakenAgainForAMoment) {
    GuardLease lease;
    EXPECT_FALSE(lease.was_lately(Instant{}));
    EXPECT_TRUE(lease.take(kBegin));
    lease.give_back(kBegin);
    EXPECT_TRUE(lease.was_lately(kBegin + GuardLease::kLately - nanoseconds(1)));
    EXPECT_FALSE(lease.was_lately(kBegin + GuardLease::kLately));
}

}  // namespace
}  // namespace cairn::ibverbs
