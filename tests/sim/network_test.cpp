// The parts of the simulated network: each fault happens as often as configured, and no other fault happens.
#include "lib/sim/network.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "lib/sim/sim_port.hpp"
#include "tests/support/pcap_reader.hpp"

namespace cairn::sim {
namespace {

constexpr std::size_t kPayloadBytes = 200;
constexpr std::uint32_t kMany = 20'000;

class NetworkTest : public testing::TestWithParam<Family> {
protected:
    // Makes a datagram whose BTH has this number in its last word.
    port::PacketRef make(std::uint32_t number) {
        port::PacketRef packet;
        EXPECT_EQ(a.allocate_burst({&packet, 1}), 1U);
        packet.path = a.open_path({network.address_of(0), network.address_of(1), 0xc001, port::kEct0}, now);
        packet.len = kPayloadBytes;
        std::memset(packet.data, 0x5a, kPayloadBytes);
        std::memcpy(packet.data + 8, &number, sizeof(number));
        return packet;
    }
    void send(std::uint32_t number) {
        port::TxPacket packet{make(number), {}};
        if (a.transmit_burst({&packet, 1}, now) == 0) {
            a.release_burst({&packet.packet, 1});
        }
    }
    void send_many(Duration spacing) {
        for (std::uint32_t i = 0; i < kMany; ++i, now = now + spacing) {
            send(i);
        }
    }
    struct Arrived {
        Instant when{};
        std::uint32_t number = 0;
        std::uint8_t ecn = 0;
        bool whole = false;
    };
    // Returns everything that arrives, each at its own time.
    std::vector<Arrived> drain() {
        std::vector<Arrived> arrived;
        for (Instant at = network.next_arrival(); at < Instant::never(); at = network.next_arrival()) {
            now = at;
            port::PacketRef packet;
            while (b.receive_burst({&packet, 1}, now) == 1) {
                Arrived one{now, 0, packet.ecn, packet.icrc_ok};
                EXPECT_EQ(packet.len, kPayloadBytes);
                std::memcpy(&one.number, packet.data + 8, sizeof(one.number));
                arrived.push_back(one);
                b.release_burst({&packet, 1});
            }
        }
        EXPECT_EQ(a.buffers_in_use() + b.buffers_in_use(), 0U);
        return arrived;
    }
    // Checks a share within four standard deviations of the binomial distribution.
    static void expect_share(std::uint64_t count, double share, double of = kMany) {
        EXPECT_NEAR(static_cast<double>(count), share * of, 4 * std::sqrt(of * share * (1 - share)));
    }

    Network network{2, 7, GetParam()};
    SimPort a{network, 0, 64, 1};
    SimPort b{network, 1, 64, 2};
    Instant now{};
};

INSTANTIATE_TEST_SUITE_P(BothFamilies, NetworkTest, testing::Values(Family::V4, Family::V6),
                         [](const auto& of) { return of.param == Family::V4 ? "IPv4" : "IPv6"; });

TEST_P(NetworkTest, WithoutFaultsEverythingArrivesWholeInOrderAfterTheDelay) {
    network.set_faults({}, {microseconds(3)});
    send_many(nanoseconds(10));
    const std::vector<Arrived> arrived = drain();
    ASSERT_EQ(arrived.size(), std::size_t{kMany});
    for (std::uint32_t i = 0; i < kMany; ++i) {
        EXPECT_EQ(arrived[i].number, i);
        EXPECT_TRUE(arrived[i].whole);
        EXPECT_EQ(arrived[i].ecn, port::kEct0);
        EXPECT_EQ(arrived[i].when.ns, i * 10 + 3'000);
    }
}

TEST_P(NetworkTest, SingleLossHasTheAskedRate) {
    network.set_faults({.loss_per_million = 100'000}, {});
    send_many(nanoseconds(10));
    const std::size_t arrived = drain().size();
    expect_share(kMany - arrived, 0.1);
    EXPECT_EQ(network.totals().lost, kMany - arrived);
}

TEST_P(NetworkTest, BurstsHaveTheAskedNumberAndLength) {
    network.set_faults({.burst_enter_per_million = 10'000, .burst_leave_per_million = 250'000}, {});
    send_many(nanoseconds(10));
    const LinkCounters totals = network.totals();
    EXPECT_EQ(drain().size(), kMany - totals.burst_lost);
    expect_share(totals.bursts, 0.01);
    EXPECT_NEAR(static_cast<double>(totals.burst_lost) / static_cast<double>(totals.bursts), 4, 1);
}

TEST_P(NetworkTest, CopiesHaveTheAskedRateAndLateOnesComeLate) {
    network.set_faults(
        {.duplicate_per_million = 50'000, .late_copy_per_million = 20'000, .late_copy_most = milliseconds(10)},
        {microseconds(1)});
    send_many(nanoseconds(10));
    const Instant last_in_time = now + microseconds(1);
    std::vector<int> times(kMany);
    std::uint64_t late = 0;
    for (const Arrived& one : drain()) {
        ++times[one.number];
        late += one.when > last_in_time ? 1U : 0U;
        late += one.when > last_in_time ? 1U : 0U;
    }
    std::uint64_t extra = 0;
    for (const int each : times) {
        EXPECT_GE(each, 1);
        extra += static_cast<std::uint64_t>(each - 1);
    }
    const LinkCounters totals = network.totals();
    EXPECT_EQ(extra, totals.duplicated + totals.late_copies);
    expect_share(totals.duplicated, 0.05);
    expect_share(totals.late_copies, 0.02);
    EXPECT_GT(late, totals.late_copies / 2);  // all are sent within 0.2 ms of the 10
}

TEST_P(NetworkTest, CorruptionHasTheAskedRateAndTheIcrcCatchesAllOfIt) {
    network.set_faults({.corrupt_per_million = 100'000}, {});
    send_many(nanoseconds(10));
    std::uint64_t damaged = 0;
    for (const Arrived& one : drain()) {
        damaged += one.whole ? 0U : 1U;
    }
    expect_share(damaged, 0.1);
    EXPECT_EQ(damaged, network.totals().corrupted);
    EXPECT_EQ(damaged, b.counters().bad_icrcs);
}

TEST_P(NetworkTest, JitterDelaysWithinItsBoundAndReorders) {
    network.set_faults({.jitter = microseconds(100)}, {microseconds(5)});
    send_many(microseconds(1));
    std::uint32_t reordered = 0;
    std::uint32_t highest = 0;
    for (const Arrived& one : drain()) {
        const Duration took = one.when - (Instant{} + microseconds(one.number));
        EXPECT_GE(took, microseconds(5));
        EXPECT_LE(took, microseconds(105));
        reordered += one.number < highest ? 1U : 0U;
        highest = std::max(highest, one.number);
    }
    EXPECT_GT(reordered, kMany / 2);
}

TEST_P(NetworkTest, ABottleneckSpacesFramesByTheirBytesOnTheWire) {
    network.set_faults({}, {microseconds(5), 1'000'000'000});
    for (std::uint32_t i = 0; i < 20; ++i) {
        send(i);
    }
    const std::size_t lower = GetParam() == Family::V4 ? 42 : 62;
    const auto spacing = static_cast<std::int64_t>((lower + kPayloadBytes + kWireOverheadBytes) * 8);  // 1 bit: 1 ns
    const std::vector<Arrived> arrived = drain();
    ASSERT_EQ(arrived.size(), 20U);
    for (std::size_t i = 0; i < arrived.size(); ++i) {
        EXPECT_EQ(arrived[i].when.ns, static_cast<std::int64_t>(i + 1) * spacing + 5'000);
    }
}

TEST_P(NetworkTest, ALongQueueMarksAndAFullOneDropsAtItsTail) {
    const std::uint32_t frame = (GetParam() == Family::V4 ? 42 : 62) + kPayloadBytes + kWireOverheadBytes;
    network.set_faults({}, {microseconds(5), 1'000'000'000, frame * 10, frame * 4});
    for (std::uint32_t i = 0; i < 15; ++i) {
        send(i);
    }
    const std::vector<Arrived> arrived = drain();
    ASSERT_EQ(arrived.size(), 10U);
    for (const Arrived& one : arrived) {
        EXPECT_TRUE(one.whole) << "marks are outside the ICRC";
        EXPECT_EQ(one.ecn, one.number > 4 ? port::kCongestionExperienced : port::kEct0) << one.number;
    }
    EXPECT_EQ(network.totals().tail_dropped, 5U);
    EXPECT_EQ(network.totals().marked, 5U);
    send(15);
    EXPECT_EQ(drain().size(), 1U) << "a queue that drained takes frames again";
}

TEST_P(NetworkTest, APartitionHoldsInOneDirectionUntilItEnds) {
    network.link(0, 1).set_partitioned(true);
    send(0);
    EXPECT_TRUE(drain().empty());
    network.link(0, 1).set_partitioned(false);
    network.link(1, 0).set_partitioned(true);
    send(1);
    EXPECT_EQ(drain().size(), 1U);
}

TEST_P(NetworkTest, AFullRingTakesFewerAndLeavesTheRestAsTheyWere) {
    a.set_faults({.tx_full_per_million = kMillion / 4});
    std::uint64_t refused = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        std::array<port::TxPacket, 2> packets{{{make(2 * i), {}}, {make(2 * i + 1), {}}}};
        const std::size_t taken = a.transmit_burst(packets, now);
        for (std::size_t left = taken; left < packets.size(); ++left, ++refused) {
            EXPECT_EQ(packets[left].packet.len, kPayloadBytes);
            EXPECT_EQ(packets[left].packet.data[0], 0x5a);
            a.release_burst({&packets[left].packet, 1});
        }
    }
    EXPECT_EQ(a.counters().refused, refused);
    expect_share(refused, (0.25 * 2 + 0.75 * 0.25) / 2, 2000);
    EXPECT_EQ(drain().size(), 2000 - refused);
}

TEST_P(NetworkTest, AnEmptyPoolLosesWhatArrives) {
    b.set_faults({.pool_empty_per_million = 200'000});
    send_many(nanoseconds(10));
    const std::size_t arrived = drain().size();
    expect_share(kMany - arrived, 0.2);
    EXPECT_EQ(b.counters().starved, kMany - arrived);
}

TEST_P(NetworkTest, OneSeedIsOneHistoryAndAnotherSeedAnother) {
    const auto history = [](std::uint64_t seed) {
        Network each(2, seed, GetParam());
        each.set_faults({.loss_per_million = 100'000, .duplicate_per_million = 100'000, .jitter = microseconds(9)}, {});
        SimPort from(each, 0, 64, 1);
        SimPort to(each, 1, 64, 2);
        for (int i = 0; i < 100; ++i) {
            port::TxPacket sent;
            EXPECT_EQ(from.allocate_burst({&sent.packet, 1}), 1U);
            sent.packet.path = from.open_path({each.address_of(0), each.address_of(1), 0xc001, 0}, {});
            sent.packet.len = 40;
            std::memset(sent.packet.data, i, 40);
            EXPECT_EQ(from.transmit_burst({&sent, 1}, {}), 1U);
        }
        port::PacketRef packet;
        while (to.receive_burst({&packet, 1}, Instant::never()) == 1) {
            to.release_burst({&packet, 1});
        }
        return each.trace_hash();
    };
    EXPECT_EQ(history(5), history(5));
    EXPECT_NE(history(5), history(6));
}

TEST_P(NetworkTest, AWitnessIsToldTheFateOfEachFrameAndOfEachCopy) {
    std::map<Fate, std::uint64_t> told;
    network.set_witness([&](const Network::Passage& passage, const Frame& frame) {
        EXPECT_EQ(passage.from, 0U);
        EXPECT_EQ(passage.to, 1U);
        EXPECT_EQ(passage.sent, now);
        EXPECT_EQ(frame.source(), network.address_of(0));
        ++told[passage.fate];
    });
    network.set_faults({.loss_per_million = 100'000,
                        .burst_enter_per_million = 10'000,
                        .burst_leave_per_million = 200'000,
                        .duplicate_per_million = 100'000,
                        .late_copy_per_million = 100'000,
                        .late_copy_most = microseconds(50)},
                       {});
    constexpr std::uint64_t kSent = 2000;
    for (std::uint32_t i = 0; i < kSent; ++i) {
        send(i);
    }
    network.link(0, 1).set_partitioned(true);
    send(kSent);
    const LinkCounters totals = network.totals();
    EXPECT_EQ(told[Fate::Lost], totals.lost);
    EXPECT_EQ(told[Fate::LostInBurst], totals.burst_lost);
    EXPECT_EQ(told[Fate::Partitioned], 1U);
    EXPECT_EQ(told[Fate::Duplicated], totals.duplicated);
    EXPECT_EQ(told[Fate::Late], totals.late_copies);
    EXPECT_EQ(told[Fate::Delivered], totals.offered - totals.lost - totals.burst_lost - 1);
    EXPECT_EQ(drain().size(), told[Fate::Delivered] + told[Fate::Duplicated] + told[Fate::Late]);
}

TEST_P(NetworkTest, TheCaptureKeepsTheLastFramesInOrder) {
    const std::size_t total = Capture::kFrames + 10;
    for (std::uint32_t i = 0; i < total; ++i, now = now + nanoseconds(7)) {
        send(i);
    }
    const std::string file = testing::TempDir() + "sim_network_test_" + std::to_string(getpid()) + ".pcap";
    ASSERT_TRUE(network.capture().write(file));
    const auto frames = test::read_pcap(file);
    ASSERT_EQ(frames.size(), Capture::kFrames);
    const std::size_t lower = GetParam() == Family::V4 ? 42 : 62;
    for (std::uint32_t i = 0; i < frames.size(); ++i) {
        std::uint32_t number = 0;
        std::memcpy(&number, frames[i].data() + lower + 8, sizeof(number));
        EXPECT_EQ(number, i + 10);
    }
    std::remove(file.c_str());
}

TEST(FaultMix, EachKindIsOffInAboutHalfOfTheSeeds) {
    constexpr int kSeeds = 2000;
    std::array<int, 14> on{};
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const FaultMix mix = FaultMix::from_seed(seed);
        const std::array<bool, 14> kinds{mix.shape.bits_per_second != 0,
                                         mix.link.loss_per_million != 0,
                                         mix.link.burst_enter_per_million != 0,
                                         mix.link.duplicate_per_million != 0,
                                         mix.link.late_copy_per_million != 0,
                                         mix.link.corrupt_per_million != 0,
                                         mix.link.jitter.ns != 0,
                                         mix.port.tx_full_per_million != 0,
                                         mix.port.pool_empty_per_million != 0,
                                         mix.node.stall_every.ns != 0,
                                         mix.node.restart_every.ns != 0,
                                         mix.node.partition_every.ns != 0,
                                         mix.node.clock_jump_every.ns != 0,
                                         mix.babble_every.ns != 0};
        for (std::size_t i = 0; i < kinds.size(); ++i) {
            on[i] += kinds[i] ? 1 : 0;
        }
        EXPECT_EQ(mix.text(), FaultMix::from_seed(seed).text());
    }
    for (const int times : on) {
        EXPECT_NEAR(times, kSeeds * 0.5, 100);
    }
}

}  // namespace
}  // namespace cairn::sim
