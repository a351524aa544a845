// UringPort: when it hands out arrived packets, and how it sleeps.
#include <array>
#include <vector>

#include "tests/unit/port/uring_port_pair.hpp"

namespace cairn::port {
namespace {

class UringPortRhythmTest : public UringPortPair {};

TEST_P(UringPortRhythmTest, ASleeperWakesForWhatArrivesAndHandsItOut) {
    send({68, 68});
    peer().wait(seconds(60), -1);
    EXPECT_EQ(peer().counters().of(UringCounter::ReceivedBatches), 1U);
    peer().wait(seconds(60), -1);  // there is something to hand out
    auto got = receive(2);
    expect_whole(got, {68, 68});
}

TEST_P(UringPortRhythmTest, ASleepEndsWithoutArrivals) {
    for (const Duration most : {microseconds(500), milliseconds(5)}) {
        peer().wait(most, -1);
        std::array<PacketRef, 4> burst;
        EXPECT_EQ(peer().receive_burst(burst, now), 0U);
    }
    EXPECT_EQ(peer().counters().of(UringCounter::ReceiveFailed), 0U);
}

TEST_P(UringPortRhythmTest, ALargeBatchIsHandedOutInHalvesToWhoWasIdle) {
    std::array<PacketRef, 64> burst;
    const auto arrive = [&](std::size_t datagrams) {
        send(std::vector<std::size_t>(datagrams, 68));
        std::size_t count = 0;
        for (int tries = 0; tries < 2000 && count == 0; ++tries) {
            count = peer().receive_burst(burst, now);
        }
        peer().release_burst(std::span(burst).first(count));
        return count;
    };
    for (int i = 0; i < 8; ++i) {
        ASSERT_EQ(peer().receive_burst(burst, now), 0U);
    }
    EXPECT_EQ(arrive(60), 30U);
    const std::size_t rest = peer().receive_burst(burst, now);
    EXPECT_EQ(rest, 30U);
    peer().release_burst(std::span(burst).first(rest));
    EXPECT_EQ(arrive(60), 60U);  // it was busy
}

INSTANTIATE_TEST_SUITE_P(Modes, UringPortRhythmTest, testing::ValuesIn(kSetups), name_of);

}  // namespace
}  // namespace cairn::port
