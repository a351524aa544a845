// The generator of cairn-pktgen over a wire in memory: what strangers can do to its stream.
#include "pmd_glue/generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/wire_port.hpp"

namespace cairn::pmd {
namespace {

using test::WirePort;

// Notes where each packet goes.
class NotedEmitter final : public Emitter {
public:
    std::size_t emit(port::Path& path, std::uint64_t, std::size_t count, Instant) noexcept override {
        destinations.insert(path.key().remote);
        return count;
    }
    std::set<net::IpAddress> destinations;
};

// A datagram that says it comes from there.
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

}  // namespace
}  // namespace cairn::pmd
