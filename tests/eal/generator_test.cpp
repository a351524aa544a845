// The generator of cairn-pktgen over a wire in memory, and the effect of unknown peers on its stream.
#include "pmd_glue/generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "tests/support/wire_port.hpp"

namespace cairn::pmd {
namespace {

using test::WirePort;

// Records the destination of each packet.
class NotedEmitter final : public Emitter {
public:
    std::size_t emit(port::Path& path, std::uint64_t, std::size_t count, Instant) noexcept override {
        destinations.insert(path.key().remote);
        return count;
    }
    std::set<net::IpAddress> destinations;
};

// Sends a datagram with this source address.
void send_as(WirePort& stranger, const net::IpAddress& from, const net::IpAddress& to) {
    port::TxPacket packet;
    ASSERT_EQ(stranger.allocate_burst({&packet.packet, 1}), 1U);
    packet.packet.path = stranger.open_path({from, to, 49152, 0}, Instant{});
    ASSERT_NE(packet.packet.path, nullptr);
    packet.packet.len = 60;
    std::fill_n(packet.packet.data, packet.packet.len, std::uint8_t{0});
    ASSERT_EQ(stranger.transmit_burst({&packet, 1}, Instant{}), 1U);
}

TEST(Generator, StrangersDoNotLeadTheStreamElsewhere) {
    constexpr std::uint32_t kStrangers = 2000;  // more than paths
    WirePort port("10.0.0.1", 64);
    WirePort stranger("10.0.0.3", 64);
    port.join(stranger);
    stranger.join(port);
    const net::IpAddress destination = net::IpAddress::parse("10.0.0.2").value();
    NotedEmitter emitter;
    GeneratorConfig config;
    config.path = {port.local_address(), destination, 49152, 0};
    config.rate_pps = 1e6;
    Generator generator(config, port, emitter);
    Instant now{};
    (void)generator.run_turn(now);
    const net::MacAddress neighbour{{2, 0, 0, 0, 0, 2}};
    ASSERT_TRUE(port.open_path(config.path, now)->resolve({{2, 0, 0, 0, 0, 1}}, neighbour));
    for (std::uint32_t i = 0; i < kStrangers; ++i) {
        send_as(stranger, net::IpAddress::from_v4(0x0b000000 + i), port.local_address());
        now = now + microseconds(10);
        (void)generator.run_turn(now);
    }
    EXPECT_EQ(generator.counters().of(GeneratorCounter::Returned), kStrangers);
    EXPECT_GT(generator.counters().of(GeneratorCounter::Sent), kStrangers);
    EXPECT_EQ(emitter.destinations, std::set{destination});
}

class GeneratorEnd : public testing::Test {
protected:
    GeneratorEnd() {
        port.join(stranger);
        stranger.join(port);
        config.path = {port.local_address(), stranger.local_address(), 49152, 0};
        config.rate_pps = 1e6;
        config.count = 1;
        config.linger = milliseconds(100);
        generator.emplace(config, port, emitter);
        turn();
        EXPECT_TRUE(port.open_path(config.path, now)->resolve({{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 3}}));
        turn();
        EXPECT_EQ(generator->counters().of(GeneratorCounter::Sent), 1U);
    }
    void turn() { (void)generator->run_turn(now); }
    // Takes turns without packets, one each 10 ms.
    void pass(Duration span) {
        for (const Instant end = now + span; now < end;) {
            now = now + milliseconds(10);
            turn();
        }
    }
    [[nodiscard]] bool is_finished() const { return generator->finished(now); }

    WirePort port{"10.0.0.1", 64};
    WirePort stranger{"10.0.0.3", 64};
    NotedEmitter emitter;
    GeneratorConfig config;
    Instant now{};
    std::optional<Generator> generator;
};

TEST_F(GeneratorEnd, ItWaitsForAnswersBehindThePacketsAndTheAnswers) {
    pass(milliseconds(90));
    EXPECT_FALSE(is_finished());
    send_as(stranger, stranger.local_address(), port.local_address());
    pass(milliseconds(100));
    EXPECT_FALSE(is_finished());
    EXPECT_EQ(generator->counters().of(GeneratorCounter::Returned), 1U);
    pass(milliseconds(10));
    EXPECT_TRUE(is_finished());
}

TEST_F(GeneratorEnd, AMachineThatStandsStillIsNoLackOfAnswers) {
    now = now + seconds(5);
    turn();
    EXPECT_FALSE(is_finished());
    pass(milliseconds(80));
    EXPECT_FALSE(is_finished());
    pass(milliseconds(10));
    EXPECT_TRUE(is_finished());
}

}  // namespace
}  // namespace cairn::pmd
