// A port that loses packets: as many as it is told, each counted, none of their buffers with it.
#include "lib/port/lossy_port.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/support/wire_port.hpp"

namespace cairn::port {
namespace {

constexpr std::size_t kBuffers = 64;
constexpr std::uint32_t kSent = 20'000;

class LossyPortTest : public testing::Test {
protected:
    explicit LossyPortTest() { sender_.join(*wire_); }

    // Numbered datagrams, one at a time; returns the numbers of those that arrived.
    std::vector<std::uint32_t> run(Port& receiver) {
        std::vector<std::uint32_t> arrived;
        Path* const path = sender_.open_path({sender_.local_address(), receiver.local_address(), 0xc000, 0}, {});
        for (std::uint32_t number = 0; number < kSent; ++number) {
            std::array<TxPacket, 1> out;
            EXPECT_EQ(sender_.allocate_burst({&out[0].packet, 1}), 1U);
            out[0].packet.path = path;
            out[0].packet.len = 32;
            std::memset(out[0].packet.data, 0, 32);
            std::memcpy(out[0].packet.data + 20, &number, sizeof(number));
            EXPECT_EQ(sender_.transmit_burst(out, {}), 1U);
            std::array<PacketRef, 4> in;
            const std::size_t count = receiver.receive_burst(in, {});
            for (const PacketRef& packet : std::span(in).first(count)) {
                std::uint32_t came = 0;
                std::memcpy(&came, packet.data + 20, sizeof(came));
                arrived.push_back(came);
            }
            receiver.release_burst(std::span(in).first(count));
        }
        return arrived;
    }

    std::unique_ptr<test::WirePort> owned_ = std::make_unique<test::WirePort>("10.0.0.2", kBuffers);
    test::WirePort* wire_ = owned_.get();
    test::WirePort sender_{"10.0.0.1", kBuffers};
};

TEST_F(LossyPortTest, LosesAsManyAsItIsToldAndCountsThem) {
    LossyPort lossy(std::move(owned_), 100'000, {1, 2});
    const std::vector<std::uint32_t> arrived = run(lossy);
    const std::uint64_t lost = lossy.counters().of(LossyCounter::Injected);
    EXPECT_EQ(arrived.size() + lost, kSent);
    EXPECT_GT(lost, kSent / 10 - kSent / 100);
    EXPECT_LT(lost, kSent / 10 + kSent / 100);
    EXPECT_TRUE(std::is_sorted(arrived.begin(), arrived.end()));
    telemetry::CounterList list;
    lossy.list_counters(list);
    EXPECT_EQ(list.read().values, std::vector<std::uint64_t>{lost});
    EXPECT_NE(list.text().find("port_injected"), std::string::npos);
    // Every buffer is free again.
    std::array<PacketRef, kBuffers> all;
    EXPECT_EQ(lossy.allocate_burst(all), kBuffers);
    lossy.release_burst(all);
}

TEST_F(LossyPortTest, LosesAllOrNothing) {
    LossyPort all(std::move(owned_), 1'000'000, {1, 2});
    EXPECT_TRUE(run(all).empty());
    auto other = std::make_unique<test::WirePort>("10.0.0.3", kBuffers);
    sender_.join(*other);
    LossyPort none(std::move(other), 0, {1, 2});
    EXPECT_EQ(run(none).size(), kSent);
    EXPECT_EQ(none.counters().total(), 0U);
}

TEST_F(LossyPortTest, ListsItsCountersAndThoseOfThePortWithin) {
    LossyPort lossy(std::make_unique<LossyPort>(std::move(owned_), 1'000'000, SipKey{1, 2}), 0, {3, 4});
    EXPECT_TRUE(run(lossy).empty());
    telemetry::CounterList list;
    lossy.list_counters(list);
    EXPECT_EQ(list.read().values, std::vector<std::uint64_t>{kSent});
}

// Of a burst, those behind a lost one move up in their order.
TEST_F(LossyPortTest, WhatIsLeftOfABurstStaysInOrder) {
    LossyPort lossy(std::move(owned_), 500'000, {3, 4});
    Path* const path = sender_.open_path({sender_.local_address(), lossy.local_address(), 0xc000, 0}, {});
    std::array<TxPacket, 32> out;
    for (std::uint8_t number = 0; number < out.size(); ++number) {
        ASSERT_EQ(sender_.allocate_burst({&out[number].packet, 1}), 1U);
        out[number].packet.path = path;
        out[number].packet.len = 24;
        std::memset(out[number].packet.data, 0, 24);
        out[number].packet.data[0] = number;
    }
    ASSERT_EQ(sender_.transmit_burst(out, {}), out.size());
    std::array<PacketRef, 32> in;
    const std::size_t count = lossy.receive_burst(in, {});
    EXPECT_GT(count, 4U);
    EXPECT_LT(count, 28U);
    for (std::size_t i = 1; i < count; ++i) {
        EXPECT_LT(in[i - 1].data[0], in[i].data[0]);
    }
    EXPECT_GE(in[count - 1].data[0], count) << "the lost ones were all behind it";
    lossy.release_burst(std::span(in).first(count));
}

}  // namespace
}  // namespace cairn::port
