// Ports of simulated nodes: several ports on the queues of one node get the packets of their queue pairs. Each has a
// path for every other node.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "lib/sim/sim_port.hpp"

namespace cairn::sim {
namespace {

constexpr std::uint16_t kBytes = 40;
constexpr std::uint32_t kGroup = 0xef010203;

struct QueuesTest : testing::Test {
    QueuesTest() { network.set_queues(1, 3); }

    void send(SimPort& sender, const net::IpAddress& to, std::uint32_t qpn) {
        port::TxPacket sent;
        ASSERT_EQ(sender.allocate_burst({&sent.packet, 1}), 1U);
        sent.packet.path = sender.open_path({sender.local_address(), to, 0xc001, 0}, {});
        sent.packet.len = kBytes;
        std::memset(sent.packet.data, 0, kBytes);
        sent.packet.data[5] = static_cast<std::uint8_t>(qpn >> 16U);
        sent.packet.data[6] = static_cast<std::uint8_t>(qpn >> 8U);
        sent.packet.data[7] = static_cast<std::uint8_t>(qpn);
        ASSERT_EQ(sender.transmit_burst({&sent, 1}, {}), 1U);
    }
    // Returns the last octets of the queue pairs that the packets name.
    std::vector<int> take(SimPort& port) {
        std::vector<int> taken;
        port::PacketRef packet;
        while (port.receive_burst({&packet, 1}, Instant{1'000'000}) == 1) {
            taken.push_back(packet.data[7]);
            port.release_burst({&packet, 1});
        }
        return taken;
    }

    Network network{2, 1};
    SimPort from{network, 0, 64, 1};
    SimPort first{network, 1, 64, 2, 0, 0};
    SimPort second{network, 1, 64, 3, 0, 1};
    SimPort third{network, 1, 64, 4, 0, 2};
};

TEST_F(QueuesTest, AQueuePairsNumberSaysWhichQueueGetsItsPackets) {
    for (const std::uint32_t qpn : {0x100U, 0x101U, 0x102U, 0x103U, 1U, 0x105U}) {
        send(from, network.address_of(1), qpn);
    }
    EXPECT_EQ(network.next_arrival(1, 1), Instant::never());  // none has arrived
    network.advance(Instant{1'000'000});
    EXPECT_LT(network.next_arrival(1, 1), Instant{1'000'000});
    EXPECT_EQ(take(first), (std::vector<int>{0, 3, 1}));  // and those for unknown queue pairs
    EXPECT_EQ(take(second), (std::vector<int>{1, 5}));
    EXPECT_EQ(take(third), (std::vector<int>{2}));
    EXPECT_EQ(network.next_arrival(1, 1), Instant::never());
}

TEST_F(QueuesTest, EachQueueInAGroupGetsACopyAlsoOfWhatTheOthersSendThere) {
    const net::IpAddress group = net::IpAddress::from_v4(kGroup);
    ASSERT_TRUE(first.join(group).ok());
    ASSERT_TRUE(third.join(group).ok());
    send(from, group, 0xffffff);
    send(third, group, 0xffffff);
    network.advance(Instant{1'000'000});
    EXPECT_EQ(take(first).size(), 2U);
    EXPECT_EQ(take(second).size(), 0U);
    EXPECT_EQ(take(third).size(), 1U);  // except for its own
}

// One node opens paths from ever new UDP ports and pins them. Another node uses as many as it gets. Each other node
// needs one path.
TEST(SimPort, ANodeThatPinsAllPathsThatItMayLeavesOneToEachOther) {
    for (std::size_t nodes = 3; nodes <= 64; ++nodes) {
        Network network(nodes, 1);
        SimPort port(network, 0, 1, 1);
        const auto path_from = [&](std::size_t node, std::uint16_t udp_port) {
            return port.path_back({{network.address_of(0), network.address_of(node), udp_port, 0}, {}}, {});
        };
        std::size_t pinned = 0;
        for (std::uint16_t udp_port = 1; udp_port <= 1000; ++udp_port) {
            if (port::Path* const path = path_from(1, udp_port); path != nullptr) {
                path->pin();
                ++pinned;
            }
        }
        EXPECT_GT(pinned, SimPort::paths_among(nodes) / 2);
        EXPECT_LT(pinned, 1000U);
        for (std::uint16_t udp_port = 1; udp_port <= 4; ++udp_port) {
            if (port::Path* const path = path_from(2, udp_port); path != nullptr) {
                path->pin();
            }
        }
        for (std::size_t node = 2; node < nodes; ++node) {
            EXPECT_NE(path_from(node, 1), nullptr) << node << " of " << nodes;
        }
    }
}

}  // namespace
}  // namespace cairn::sim
