// Incast with the numbers of the eRPC paper: congestion control must keep the queue short and the link busy.
#include <gtest/gtest.h>

#include "rpc/sim/incast_world.hpp"

namespace cairn::sim {
namespace {

using erpc::CongestionAlgorithm;

IncastPlan plan_of(std::size_t clients, CongestionAlgorithm algorithm, std::uint16_t path_mtu_bytes) {
    IncastPlan plan;
    plan.clients = clients;
    plan.algorithm = algorithm;
    plan.path_mtu_bytes = path_mtu_bytes;
    plan.warm_up = milliseconds(12);
    plan.measured = milliseconds(12);
    return plan;
}

struct IncastCase {
    std::size_t clients;
    std::uint16_t path_mtu_bytes;
};

class Incast : public testing::TestWithParam<IncastCase> {};

TEST_P(Incast, ControlKeepsTheQueueShortAndTheLinkBusy) {
    const auto [clients, path_mtu_bytes] = GetParam();
    const IncastResult free = IncastWorld(plan_of(clients, CongestionAlgorithm::None, path_mtu_bytes)).run();
    EXPECT_GE(free.goodput_of_link, 0.85);
    EXPECT_EQ(free.calls_failed, 0U);
    for (const CongestionAlgorithm algorithm : {CongestionAlgorithm::Timely, CongestionAlgorithm::Dcqcn}) {
        const IncastResult held = IncastWorld(plan_of(clients, algorithm, path_mtu_bytes)).run();
        EXPECT_GE(held.goodput_of_link, 0.85) << text_of(algorithm);
        EXPECT_LE(held.rtt_p50.ns, free.rtt_p50.ns / 4) << text_of(algorithm);
        EXPECT_GT(held.fairness, 0.9) << text_of(algorithm);
        EXPECT_EQ(held.dropped + held.retransmits + held.calls_failed, 0U) << text_of(algorithm);
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Incast,
                         testing::Values(IncastCase{20, 1024}, IncastCase{50, 1024}, IncastCase{20, 4096},
                                         IncastCase{50, 4096}),
                         [](const testing::TestParamInfo<IncastCase>& each) {
                             return std::to_string(each.param.clients) + "Way" +
                                    std::to_string(each.param.path_mtu_bytes);
                         });

// Its clients wait as long as in a congested network, but the network is not congested.
TEST(IncastWorld, ASlowServerIsNoReasonToPace) {
    IncastPlan plan = plan_of(4, CongestionAlgorithm::None, 1024);
    plan.server_turn = microseconds(10);
    const IncastResult free = IncastWorld(plan).run();
    plan.algorithm = CongestionAlgorithm::Timely;
    const IncastResult held = IncastWorld(plan).run();
    EXPECT_GT(free.rtt_p50, microseconds(60));
    EXPECT_LT(free.goodput_of_link, 0.6);
    EXPECT_GT(held.rtt_p50.ns, free.rtt_p50.ns * 95 / 100);
    EXPECT_GT(held.goodput_of_link, free.goodput_of_link * 0.99);
}

TEST(IncastWorld, ASeedIsAHistory) {
    IncastPlan plan = plan_of(5, CongestionAlgorithm::Dcqcn, 1024);
    plan.warm_up = plan.measured = milliseconds(2);
    const IncastResult first = IncastWorld(plan).run();
    const IncastResult again = IncastWorld(plan).run();
    EXPECT_EQ(first.frames, again.frames);
    EXPECT_EQ(first.marked, again.marked);
    EXPECT_EQ(first.rtt_p99, again.rtt_p99);
    EXPECT_GT(first.marked, 0U);
}

Frame frame_to(const Network& network, std::size_t from, std::size_t to, std::size_t bytes) {
    Frame frame{std::vector<std::uint8_t>(bytes)};
    const port::Path path({network.address_of(from), network.address_of(to), 0xc000, 2});
    path.write_lower_headers(frame.bytes.data() + path.lower_bytes(),
                             static_cast<std::uint16_t>(bytes - path.lower_bytes()));
    return frame;
}

// 1226 bytes plus 24 bytes on the wire take 400 ns at 25 Gbit/s.
TEST(Switch, AllSendersToOneNodeShareItsQueue) {
    Network network(3, 1);
    network.join({.delay = nanoseconds(100), .ecn_low_bytes = 1000, .ecn_high_bytes = 1000}, 1);
    network.send(0, frame_to(network, 0, 2, 1226), Instant{0});
    network.send(1, frame_to(network, 1, 2, 1226), Instant{0});
    EXPECT_EQ(network.next_arrival(), Instant{500});  // both are at the switch
    network.advance(Instant{500});
    EXPECT_EQ(network.next_arrival(2), Instant{1000});
    EXPECT_FALSE(network.receive(2, Instant{999}));
    EXPECT_EQ(network.receive(2, Instant{1000})->ecn(), 2);
    EXPECT_EQ(network.next_arrival(2), Instant{1400});
    EXPECT_EQ(network.receive(2, Instant{1400})->ecn(), port::kCongestionExperienced);
    EXPECT_EQ(network.next_arrival(), Instant::never());
    EXPECT_EQ(network.totals().marked, 1U);
}

TEST(Switch, AQueueGetsItsShareOfTheBuffer) {
    Network network(3, 1);
    network.join({.buffer_bytes = 10'000, .alpha = 1}, 1);
    for (int i = 0; i < 10; ++i) {
        network.send(0, frame_to(network, 0, 2, 1000), Instant{0});
        network.send(1, frame_to(network, 1, 2, 1000), Instant{0});
    }
    network.advance(Instant{1'000'000});
    EXPECT_EQ(network.joint()->queued_bytes_most(), 5000U);
    EXPECT_GT(network.totals().tail_dropped, 0U);
    EXPECT_EQ(network.totals().offered, 20U);
}

}  // namespace
}  // namespace cairn::sim
