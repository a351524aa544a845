// Incast of reliable connections: control must keep the queue short and the link busy, and all transfers must end.
#include "lib/sim/rc/rc_incast_world.hpp"

#include <gtest/gtest.h>

#include <string>

namespace cairn::sim {
namespace {

using roce::ConnectionControl;
using roce::rc::RcCounter;

struct RcIncastCase {
    std::size_t clients;
    std::uint16_t path_mtu_bytes;
};

RcIncastPlan plan_of(const RcIncastCase& each, ConnectionControl control) {
    RcIncastPlan plan;
    plan.clients = each.clients;
    plan.path_mtu_bytes = each.path_mtu_bytes;
    plan.control = control;
    plan.warm_up = milliseconds(12);
    plan.measured = milliseconds(12);
    return plan;
}

class RcIncast : public testing::TestWithParam<RcIncastCase> {};

TEST_P(RcIncast, ControlKeepsTheQueueShortAndTheLinkBusyAndAllEnd) {
    RcIncastWorld free(plan_of(GetParam(), ConnectionControl::None));
    const IncastResult without = free.run();
    EXPECT_TRUE(free.finished());
    EXPECT_EQ(free.count(RcCounter::CnpSent) + free.count(RcCounter::PacedTurns), 0U);
    RcIncastWorld held(plan_of(GetParam(), ConnectionControl::Dcqcn));
    const IncastResult with = held.run();
    EXPECT_TRUE(held.finished());
    EXPECT_TRUE(held.contents_right());
    EXPECT_EQ(with.calls_failed, 0U);
    EXPECT_GE(with.goodput_of_link, 0.8);
    EXPECT_LE(with.rtt_p50.ns, without.rtt_p50.ns / 3);
    EXPECT_GT(with.fairness, 0.9);
    EXPECT_EQ(with.dropped + with.retransmits, 0U);
    EXPECT_EQ(held.count(RcCounter::Timeout) + held.count(RcCounter::EarlyTimeout), 0U);
    EXPECT_GT(held.count(RcCounter::CnpReceived), 0U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RcIncast,
                         testing::Values(RcIncastCase{20, 1024}, RcIncastCase{20, 4096}, RcIncastCase{50, 4096}),
                         [](const testing::TestParamInfo<RcIncastCase>& each) {
                             return std::to_string(each.param.clients) + "Way" +
                                    std::to_string(each.param.path_mtu_bytes);
                         });

TEST(RcIncastWorld, ASeedIsAHistory) {
    RcIncastPlan plan = plan_of({5, 1024}, ConnectionControl::Dcqcn);
    plan.warm_up = {};
    plan.measured = milliseconds(4);
    const IncastResult first = RcIncastWorld(plan).run();
    const IncastResult again = RcIncastWorld(plan).run();
    EXPECT_EQ(first.frames, again.frames);
    EXPECT_EQ(first.marked, again.marked);
    EXPECT_EQ(first.rtt_p99, again.rtt_p99);
    EXPECT_GT(first.marked, 0U);
}

}  // namespace
}  // namespace cairn::sim
