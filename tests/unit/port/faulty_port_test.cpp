// A port of a bad network: it makes the configured number of faults, counts each, and loses no buffer.
#include "lib/port/faulty_port.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/support/wire_port.hpp"

namespace cairn::port {
namespace {

constexpr std::size_t kBuffers = 64;
constexpr std::uint32_t kSent = 20'000;

Faults losses(std::uint32_t per_million) {
    Faults faults;
    faults.loss_per_million = per_million;
    return faults;
}

class FaultyPortTest : public testing::Test {
protected:
    explicit FaultyPortTest() { sender_.join(*wire_); }

    void send(Port& receiver, std::uint32_t number, Instant now = {}) {
        Path* const path = sender_.open_path({sender_.local_address(), receiver.local_address(), 0xc000, 0}, {});
        std::array<TxPacket, 1> out;
        ASSERT_EQ(sender_.allocate_burst({&out[0].packet, 1}), 1U);
        out[0].packet.path = path;
        out[0].packet.len = 32;
        std::memset(out[0].packet.data, 0, 32);
        std::memcpy(out[0].packet.data + 20, &number, sizeof(number));
        ASSERT_EQ(sender_.transmit_burst(out, now), 1U);
    }
    // Returns the numbers of the datagrams received now, with 1000 added for damaged ones.
    static std::vector<std::uint32_t> take(Port& receiver, Instant now, std::size_t most = 8) {
        std::vector<PacketRef> in(most);
        in.resize(receiver.receive_burst(in, now));
        std::vector<std::uint32_t> numbers;
        for (const PacketRef& packet : in) {
            std::uint32_t came = 0;
            std::memcpy(&came, packet.data + 20, sizeof(came));
            EXPECT_EQ(packet.len, 32U);
            numbers.push_back(packet.icrc_ok ? came : 1000);
        }
        receiver.release_burst(in);
        return numbers;
    }
    static void expect_all_free(Port& receiver) {
        std::array<PacketRef, kBuffers> all;
        EXPECT_EQ(receiver.allocate_burst(all), kBuffers);
        receiver.release_burst(all);
    }

    // Sends numbered datagrams, one at a time. Returns the numbers of those that arrived.
    std::vector<std::uint32_t> run(Port& receiver) {
        std::vector<std::uint32_t> arrived;
        for (std::uint32_t number = 0; number < kSent; ++number) {
            send(receiver, number);
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

TEST_F(FaultyPortTest, LosesAsManyAsItIsToldAndCountsThem) {
    FaultyPort lossy(std::move(owned_), losses(100'000), {});
    const std::vector<std::uint32_t> arrived = run(lossy);
    const std::uint64_t lost = lossy.counters().of(FaultyCounter::Injected);
    EXPECT_EQ(arrived.size() + lost, kSent);
    EXPECT_GT(lost, kSent / 10 - kSent / 100);
    EXPECT_LT(lost, kSent / 10 + kSent / 100);
    EXPECT_TRUE(std::is_sorted(arrived.begin(), arrived.end()));
    telemetry::CounterList list;
    lossy.list_counters(list);
    EXPECT_EQ(list.read().values.front(), lost);
    EXPECT_NE(list.text().find("port_injected"), std::string::npos);
    expect_all_free(lossy);
}

TEST_F(FaultyPortTest, LosesAllOrNothing) {
    FaultyPort all(std::move(owned_), losses(1'000'000), {});
    EXPECT_TRUE(run(all).empty());
    auto other = std::make_unique<test::WirePort>("10.0.0.3", kBuffers);
    sender_.join(*other);
    FaultyPort none(std::move(other), losses(0), {});
    EXPECT_EQ(run(none).size(), kSent);
    EXPECT_EQ(none.counters().total(), 0U);
}

TEST_F(FaultyPortTest, ListsItsCountersAndThoseOfThePortWithin) {
    FaultyPort lossy(std::make_unique<FaultyPort>(std::move(owned_), losses(1'000'000), Instant{}), losses(0), {});
    EXPECT_TRUE(run(lossy).empty());
    telemetry::CounterList list;
    lossy.list_counters(list);
    EXPECT_EQ(list.read().values.front(), kSent);
}

// In a burst, the datagrams after a lost one move up in their order.
TEST_F(FaultyPortTest, WhatIsLeftOfABurstStaysInOrder) {
    FaultyPort lossy(std::move(owned_), losses(500'000), {});
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

using Numbers = std::vector<std::uint32_t>;

TEST_F(FaultyPortTest, ADelayedDatagramComesWhenItIsDueAndSaysSo) {
    Faults faults;
    faults.delay = milliseconds(1);
    FaultyPort slow(std::move(owned_), faults, {});
    for (std::uint32_t number = 1; number <= 3; ++number) {
        send(slow, number);
        EXPECT_EQ(take(slow, Instant{number}), Numbers{});
    }
    EXPECT_EQ(slow.next_deadline(), Instant{1} + milliseconds(1));
    EXPECT_EQ(take(slow, Instant{} + milliseconds(1)), Numbers{});
    EXPECT_EQ(take(slow, Instant{2} + milliseconds(1)), (Numbers{1, 2}));
    EXPECT_EQ(take(slow, Instant{} + seconds(1)), Numbers{3});
    EXPECT_EQ(slow.next_deadline(), Instant::never());
    EXPECT_EQ(slow.counters().of(FaultyCounter::HeldBack), 3U);
    expect_all_free(slow);
}

TEST_F(FaultyPortTest, ADatagramThatIsHeldBackIsOvertaken) {
    Faults faults;
    faults.reorder_per_million = 500'000;
    FaultyPort mixed(std::move(owned_), faults, {});
    Numbers arrived;
    for (std::uint32_t number = 0; number < 100; ++number) {
        const Instant now = Instant{} + microseconds(50) * number;
        send(mixed, number, now);
        const Numbers came = take(mixed, now);
        arrived.insert(arrived.end(), came.begin(), came.end());
    }
    const Numbers rest = take(mixed, Instant{} + seconds(1), 64);
    arrived.insert(arrived.end(), rest.begin(), rest.end());
    EXPECT_FALSE(std::is_sorted(arrived.begin(), arrived.end()));
    EXPECT_GT(mixed.counters().of(FaultyCounter::HeldBack), 30U);
    std::sort(arrived.begin(), arrived.end());
    EXPECT_EQ(arrived.size(), 100U);
    EXPECT_EQ(std::unique(arrived.begin(), arrived.end()), arrived.end());
    expect_all_free(mixed);
}

TEST_F(FaultyPortTest, ADoubledDatagramComesAgainWithTheNextBurst) {
    Faults faults;
    faults.duplicates_per_million = 1'000'000;
    FaultyPort doubled(std::move(owned_), faults, {});
    send(doubled, 7);
    EXPECT_EQ(take(doubled, {}), Numbers{7});
    EXPECT_EQ(doubled.next_deadline(), Instant{});
    EXPECT_EQ(take(doubled, {}), Numbers{7});
    EXPECT_EQ(take(doubled, {}), Numbers{});
    EXPECT_EQ(doubled.counters().of(FaultyCounter::Duplicated), 1U);
    expect_all_free(doubled);
}

TEST_F(FaultyPortTest, WhatIsHeldLeavesRoomForWhatComes) {
    Faults faults;
    faults.duplicates_per_million = 1'000'000;
    FaultyPort doubled(std::move(owned_), faults, {});
    for (std::uint32_t number = 1; number <= 4; ++number) {
        send(doubled, number);
    }
    EXPECT_EQ(take(doubled, {}, 4), (Numbers{1, 2, 3, 4}));
    send(doubled, 5);
    EXPECT_EQ(take(doubled, {}, 4), (Numbers{1, 2, 5}));
    EXPECT_EQ(take(doubled, {}, 1), Numbers{3});
}

TEST_F(FaultyPortTest, ADamagedDatagramHasAWrongIcrc) {
    Faults faults;
    faults.damage_per_million = 1'000'000;
    faults.delay = milliseconds(1);
    FaultyPort damaging(std::move(owned_), faults, {});
    send(damaging, 3);
    EXPECT_EQ(take(damaging, {}), Numbers{1000});
    EXPECT_EQ(damaging.counters().of(FaultyCounter::Damaged), 1U);
}

TEST_F(FaultyPortTest, WhatFindsNoRoomToWaitIsLost) {
    Faults faults;
    faults.delay = seconds(1);
    FaultyPort slow(std::move(owned_), faults, {});
    for (std::uint32_t number = 0; number < 1027; ++number) {
        send(slow, number);
        EXPECT_EQ(take(slow, {}), Numbers{});
    }
    EXPECT_EQ(slow.counters().of(FaultyCounter::HeldBack), 1024U);
    EXPECT_EQ(slow.counters().of(FaultyCounter::Injected), 3U);
    expect_all_free(slow);
    EXPECT_EQ(take(slow, Instant{} + seconds(1)), (Numbers{0, 1, 2, 3}));
}

TEST_F(FaultyPortTest, TheSameSeedHasTheSameFates) {
    auto other = std::make_unique<test::WirePort>("10.0.0.3", kBuffers);
    test::WirePort* const other_wire = other.get();
    FaultyPort first(std::move(owned_), losses(300'000), {});
    FaultyPort second(std::move(other), losses(300'000), {});
    const Numbers came = run(first);
    sender_.join(*other_wire);
    EXPECT_EQ(run(second), came);
}

TEST_F(FaultyPortTest, APortThatFailsNeitherReceivesNorSendsForThatTime) {
    Faults faults;
    faults.port = {seconds(1), seconds(2)};
    FaultyPort failing(std::move(owned_), faults, Instant{5});
    const auto arrives_at = [&](Instant now) {
        send(failing, 1, now);
        return take(failing, now) == Numbers{1};
    };
    EXPECT_TRUE(arrives_at(Instant{4} + seconds(1)));
    EXPECT_FALSE(arrives_at(Instant{5} + seconds(1)));
    EXPECT_TRUE(failing.is_down(Instant{4} + seconds(3)));
    std::array<TxPacket, 2> out;
    for (TxPacket& each : out) {
        ASSERT_EQ(failing.allocate_burst({&each.packet, 1}), 1U);
        each.packet.path = failing.open_path({failing.local_address(), sender_.local_address(), 0xc000, 0}, {});
        each.packet.len = 32;
    }
    EXPECT_EQ(failing.transmit_burst(out, Instant{4} + seconds(3)), 2U);
    EXPECT_EQ(take(sender_, {}), Numbers{});
    EXPECT_EQ(failing.counters().of(FaultyCounter::Unreachable), 3U);
    EXPECT_TRUE(arrives_at(Instant{5} + seconds(3)));
    expect_all_free(failing);
}

TEST_F(FaultyPortTest, APeerThatFailsIsCutOffAndOthersAreNot) {
    Faults faults;
    faults.peer = net::IpAddress::parse("10.0.0.1").value();
    faults.peer_outage.begin = seconds(1);
    FaultyPort port(std::move(owned_), faults, {});
    send(port, 1);
    EXPECT_EQ(take(port, {}), Numbers{1});
    send(port, 2);
    EXPECT_EQ(take(port, Instant{} + seconds(100)), Numbers{});
    test::WirePort other{"10.0.0.9", kBuffers};
    other.join(*wire_);
    std::array<TxPacket, 1> out;
    ASSERT_EQ(other.allocate_burst({&out[0].packet, 1}), 1U);
    out[0].packet.path = other.open_path({other.local_address(), port.local_address(), 0xc000, 0}, {});
    out[0].packet.len = 32;
    std::memset(out[0].packet.data, 0, 32);
    ASSERT_EQ(other.transmit_burst(out, {}), 1U);
    EXPECT_EQ(take(port, Instant{} + seconds(100)), Numbers{0});
}

}  // namespace
}  // namespace cairn::port
