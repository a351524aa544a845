// Passes of cairn-perf's server: each is valid for its host and for some time.
#include "apps/perf/passes.hpp"

#include <gtest/gtest.h>

namespace cairn::perf {
namespace {

TEST(PerfPasses, APassIsGoodForItsHostAndForAWhile) {
    const Passes passes({1, 2});
    const net::IpAddress host = net::IpAddress::from_v4(0x0a000001);
    const Instant given{Passes::kLife.ns * 7 - 1};
    const std::uint64_t pass = passes.pass_of(host, given);
    EXPECT_TRUE(passes.is_good(pass, host, given));
    EXPECT_TRUE(passes.is_good(pass, host, given + Passes::kLife));
    EXPECT_FALSE(passes.is_good(pass, host, given + Passes::kLife + nanoseconds(1)));
    // Workers have their own clocks: the judge's clock may be late.
    EXPECT_TRUE(passes.is_good(pass, host, given - Passes::kLife));
    EXPECT_FALSE(passes.is_good(pass, host, given - Passes::kLife - Passes::kLife));
    EXPECT_FALSE(passes.is_good(pass, net::IpAddress::from_v4(0x0a000002), given));
    EXPECT_FALSE(passes.is_good(pass, net::IpAddress::parse("2001:db8::1").value(), given));
    EXPECT_FALSE(Passes({1, 3}).is_good(pass, host, given));
    EXPECT_FALSE(passes.is_good(0, host, given));
}

}  // namespace
}  // namespace cairn::perf
