// The sender over a port whose ring is full: waiting packets keep their order, buffers and bytes.
#include "lib/roce/send/sender.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "lib/sim/sim_port.hpp"

namespace cairn::roce {
namespace {

constexpr std::size_t kHeaders = 36;
constexpr sim::PortFaults kRingFull{.tx_full_per_million = sim::kMillion};

class SenderTest : public testing::Test {
protected:
    // Sends headers full of `mark`, and the payload after them in place.
    void send(std::uint8_t mark, std::span<const std::uint8_t> tail) {
        const port::PacketRef buffer = sender->take();
        ASSERT_NE(buffer.cookie, nullptr);
        std::fill_n(buffer.data, kHeaders, mark);
        sender->send(buffer, path, kHeaders + port::kIcrcBytes, tail, now);
    }
    // Returns the arriving datagrams, without their ICRC.
    std::vector<std::vector<std::uint8_t>> arrivals() {
        std::vector<std::vector<std::uint8_t>> all;
        port::PacketRef packet;
        while (there.receive_burst({&packet, 1}, Instant::never()) == 1) {
            EXPECT_TRUE(packet.icrc_ok);
            all.emplace_back(packet.data, packet.data + packet.len - port::kIcrcBytes);
            there.release_burst({&packet, 1});
        }
        return all;
    }

    sim::Network network{2, 1};
    sim::SimPort here{network, 0, 512, 1};
    sim::SimPort there{network, 1, 512, 2};
    std::optional<Sender> sender{here};
    port::Path* path = here.open_path({network.address_of(0), network.address_of(1), 0xc000, 0}, {});
    Instant now{};
};

TEST_F(SenderTest, WhatAFullRingRefusesWaitsInOrder) {
    here.set_faults(kRingFull);
    for (std::uint8_t mark = 1; mark <= 40; ++mark) {
        send(mark, {});
    }
    sender->flush(now);
    EXPECT_EQ(sender->queued(), 40U);
    EXPECT_TRUE(arrivals().empty());
    here.set_faults({});
    sender->flush(now);
    const auto got = arrivals();
    ASSERT_EQ(got.size(), 40U);
    for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i], std::vector<std::uint8_t>(kHeaders, static_cast<std::uint8_t>(i + 1)));
    }
}

TEST_F(SenderTest, SettledTailsLeaveAsTheyWereAlthoughTheirMemoryChanged) {
    here.set_faults(kRingFull);
    std::vector<std::uint8_t> payload(2048, 0x77);
    send(1, payload);
    send(2, std::span(payload).first(1024));
    send(3, {});
    sender->flush(now);
    sender->settle_tails();
    std::fill(payload.begin(), payload.end(), std::uint8_t{0xdd});
    here.set_faults({});
    sender->flush(now);
    const auto got = arrivals();
    ASSERT_EQ(got.size(), 3U);
    const std::array<std::size_t, 3> tails{2048, 1024, 0};
    for (std::size_t i = 0; i < got.size(); ++i) {
        std::vector<std::uint8_t> expected(kHeaders, static_cast<std::uint8_t>(i + 1));
        expected.resize(kHeaders + tails[i], 0x77);
        EXPECT_EQ(got[i], expected);
    }
}

TEST_F(SenderTest, OnlyTheTailsThatAreMeantAreCopied) {
    here.set_faults(kRingFull);
    std::vector<std::uint8_t> payload(4096, 0x77);
    send(1, std::span(payload).first(2048));
    send(2, std::span(payload).last(2048));
    sender->flush(now);
    EXPECT_TRUE(sender->holds_back());
    sender->copy_tails(std::span(payload).subspan(2047, 1));
    std::fill(payload.begin(), payload.end(), std::uint8_t{0xdd});
    here.set_faults({});
    sender->flush(now);
    EXPECT_FALSE(sender->holds_back());
    const auto got = arrivals();
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got[0].back(), 0x77);
    EXPECT_EQ(got[1].back(), 0xdd);
}

// The owner may have ended meanwhile, and strangers may have filled the table of paths.
TEST_F(SenderTest, WhatWaitsGoesWhereItWasSent) {
    here.set_faults(kRingFull);
    send(1, {});
    sender->flush(now);
    const auto crowd = [this](std::uint16_t first) {
        for (std::uint16_t port = first; port < first + 64; ++port) {
            EXPECT_NE(here.open_path({network.address_of(0), network.address_of(0), port, 0}, now), nullptr);
        }
    };
    crowd(0xd000);
    here.set_faults({});
    sender->flush(now);
    EXPECT_EQ(arrivals().size(), 1U);
    crowd(0xe000);
    EXPECT_NE(path->key().remote, network.address_of(1)) << "nobody needs it any more";
    path = here.open_path({network.address_of(0), network.address_of(1), 0xc000, 0}, now);
    here.set_faults(kRingFull);
    send(2, {});
    sender.reset();
    EXPECT_EQ(path->pins(), 0U);
}

// A run of packets on one path holds one pin, for any number that leaves at a time.
TEST_F(SenderTest, PathsArePinnedAsLongAsAPacketWaits) {
    const std::array<port::Path*, 2> paths{
        path, here.open_path({network.address_of(0), network.address_of(1), 0xc001, 0}, now)};
    here.set_faults({.tx_full_per_million = sim::kMillion / 4});
    std::vector<std::size_t> waiting;  // the path of each packet
    std::uint32_t seed = 1;
    std::size_t parted = 0;
    for (int round = 0; round < 2'000; ++round) {
        seed = seed * 1664525U + 1013904223U;
        for (std::uint32_t i = 0; i < (seed >> 16U) % 6; ++i) {
            waiting.push_back((seed >> (20U + i)) % 2);
            path = paths[waiting.back()];
            send(1, {});
        }
        if (seed % 3 == 0) {
            sender->flush(now);
        }
        const std::size_t left = sender->queued();
        const std::size_t gone = waiting.size() - left;
        parted += left != 0 && gone != 0 && waiting[gone] == waiting[gone - 1] ? 1U : 0U;
        waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(gone));
        std::array<std::uint32_t, 2> runs{};
        for (std::size_t i = 0; i < left; ++i) {
            runs[waiting[i]] += i == 0 || waiting[i] != waiting[i - 1] ? 1U : 0U;
        }
        ASSERT_EQ(paths[0]->pins(), runs[0]) << "round " << round;
        ASSERT_EQ(paths[1]->pins(), runs[1]) << "round " << round;
        static_cast<void>(arrivals());
    }
    EXPECT_GT(parted, 10U) << "runs of which a part left";
}

TEST_F(SenderTest, AFullQueueDropsAndCountsAndEveryBufferComesBack) {
    here.set_faults(kRingFull);
    for (std::size_t i = 0; i < Sender::kQueuePackets + 5; ++i) {
        send(1, {});
    }
    EXPECT_EQ(sender->queued(), Sender::kQueuePackets);
    EXPECT_EQ(sender->drops().of(Drop::TxQueueFull), 5U);
    sender.reset();
    EXPECT_EQ(here.buffers_in_use(), 0U);
}

}  // namespace
}  // namespace cairn::roce
