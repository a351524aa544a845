// The totals of each host, whichever of its addresses is named.
#include "lib/net/host_totals.hpp"

#include <gtest/gtest.h>

namespace cairn::net {
namespace {

IpAddress at(const char* text) {
    return IpAddress::parse(text).value();
}

TEST(HostTotals, AllAddressesOfAHostCountTogether) {
    HostTotals totals;
    totals.add(at("2001:db8::1"), 3);
    totals.add(at("2001:db8::2"), 4);
    totals.add(at("10.0.0.1"), 5);
    EXPECT_EQ(totals.of(at("2001:db8::3")), 7U);
    EXPECT_EQ(totals.of(at("10.0.0.1")), 5U);
    EXPECT_EQ(totals.of(at("10.0.0.2")), 0U);
    totals.remove(at("2001:db8::9"), 7);
    EXPECT_EQ(totals.of(at("2001:db8::1")), 0U);
    EXPECT_EQ(totals.of(at("10.0.0.1")), 5U);
}

TEST(HostTotals, NothingIsAddedAndRemovedAtWill) {
    HostTotals totals;
    totals.add(at("10.0.0.1"), 0);
    totals.remove(at("10.0.0.1"), 0);
    totals.remove(at("10.0.0.1"), 0);
    EXPECT_EQ(totals.of(at("10.0.0.1")), 0U);
}

TEST(HostTotalsDeathTest, NobodyGivesBackMoreThanItHas) {
    HostTotals totals;
    totals.add(at("10.0.0.1"), 5);
    EXPECT_DEATH(totals.remove(at("10.0.0.1"), 6), "does not hold");
    EXPECT_DEATH(totals.remove(at("10.0.0.2"), 1), "does not hold");
}

}  // namespace
}  // namespace cairn::net
