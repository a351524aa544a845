// Every reason for which a datagram is dropped, and the delivered datagrams.
#include "lib/roce/ud/mux.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "lib/roce/send/sender.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::roce {
namespace {

class Collector final : public UdReceiver {
public:
    void on_datagrams(std::span<const UdDatagram> datagrams, Instant) noexcept override {
        for (const UdDatagram& datagram : datagrams) {
            payloads.emplace_back(datagram.payload, datagram.payload + datagram.payload_bytes);
            sources.push_back(datagram.source_qpn);
        }
    }
    std::vector<std::vector<std::uint8_t>> payloads;
    std::vector<Qpn> sources;
};

class UdTest : public testing::Test {
protected:
    void SetUp() override {
        UdConfig config;
        config.qpn = Qpn{0x20};
        config.qkey = Qkey{0x1234};
        config.path_mtu_bytes = 256;
        qp = service.create_qp(config, collector).value();
        path = port.open_path({port.local_address(), port.local_address(), 1, 0}, {});
    }
    // Returns a valid datagram of `bytes`, in a buffer of the port, as if just received.
    port::PacketRef make(std::size_t bytes) {
        port::PacketRef packet;
        EXPECT_EQ(port.allocate_burst({&packet, 1}), 1U);
        wire::RawUd raw = qp->make_header({path, Qpn{0x20}, Qkey{0x1234}});
        const std::size_t pad = (4 - bytes % 4) % 4;
        raw.bth.flags = static_cast<std::uint8_t>(raw.bth.flags | (pad << 4U));
        std::memcpy(packet.data, &raw, sizeof(raw));
        std::memset(packet.data + sizeof(raw), 0x3c, bytes + pad);
        packet.len = static_cast<std::uint16_t>(sizeof(raw) + bytes + pad + port::kIcrcBytes);
        packet.path = path;
        packet.icrc_ok = true;
        return packet;
    }
    wire::RawUd& raw_of(port::PacketRef& packet) { return *reinterpret_cast<wire::RawUd*>(packet.data); }
    void expect_dropped(port::PacketRef packet, Drop reason) {
        const std::uint64_t before = service.drops().of(reason);
        service.on_packets({&packet, 1}, {});
        EXPECT_EQ(service.drops().of(reason), before + 1)
            << counter_texts(reason)[static_cast<std::size_t>(reason)].name;
        EXPECT_TRUE(collector.payloads.empty());
        EXPECT_EQ(port.buffers_in_use(), 0U);
    }

    cairn::test::WirePort port{"10.0.0.1", 64};
    UdMux service{port};
    Collector collector;
    UdEntry* qp = nullptr;
    port::Path* path = nullptr;
};

TEST_F(UdTest, DeliversEveryLengthUpToThePathMtuWithoutItsPad) {
    for (std::size_t bytes = 0; bytes <= 256; ++bytes) {
        port::PacketRef packet = make(bytes);
        service.on_packets({&packet, 1}, {});
        ASSERT_EQ(collector.payloads.size(), bytes + 1);
        EXPECT_EQ(collector.payloads.back().size(), bytes);
        EXPECT_EQ(collector.sources.back(), Qpn{0x20});
    }
    EXPECT_EQ(port.buffers_in_use(), 0U);
    EXPECT_EQ(service.drops().total(), 0U);
}

// Runs before and after the service knows the form of ordinary packets.
class UdFaultTest : public UdTest, public testing::WithParamInterface<bool> {};

TEST_P(UdFaultTest, EveryFaultIsCountedByItsReason) {
    if (GetParam()) {
        port::PacketRef good = make(32);
        service.on_packets({&good, 1}, {});
        ASSERT_EQ(collector.payloads.size(), 1U);
        collector.payloads.clear();
    }
    port::PacketRef packet = make(32);
    packet.icrc_ok = false;
    expect_dropped(packet, Drop::BadIcrc);
    for (std::size_t len = 0; len < sizeof(wire::RawUd) + port::kIcrcBytes; ++len) {
        packet = make(32);
        packet.len = static_cast<std::uint16_t>(len);
        expect_dropped(packet, Drop::TooShort);
    }
    packet = make(32);
    raw_of(packet).bth.flags |= 1;
    expect_dropped(packet, Drop::BadVersion);
    packet = make(32);
    raw_of(packet).bth.opcode = 0x04;
    expect_dropped(packet, Drop::BadOpcode);
    packet = make(32);
    raw_of(packet).bth.dest_qpn.set(0x21);
    expect_dropped(packet, Drop::UnknownQpn);
    packet = make(32);
    raw_of(packet).bth.pkey.set(0x8001);
    expect_dropped(packet, Drop::BadPkey);
    packet = make(32);
    raw_of(packet).deth.qkey.set(0x1235);
    expect_dropped(packet, Drop::BadQkey);
    expect_dropped(make(257), Drop::BadLength);
    packet = make(0);
    raw_of(packet).bth.flags |= 0x30;
    expect_dropped(packet, Drop::BadLength);
    packet = make(32);
    packet.len = static_cast<std::uint16_t>(packet.len - 1);
    expect_dropped(packet, Drop::BadLength);
}

INSTANTIATE_TEST_SUITE_P(KnownQueuePair, UdFaultTest, testing::Bool());

TEST_F(UdTest, ABurstReachesItsQueuePairsInRunsAndInOrder) {
    UdConfig config;
    config.qpn = Qpn{0x21};
    config.qkey = Qkey{0x1234};
    config.path_mtu_bytes = 256;
    Collector other;
    ASSERT_TRUE(service.create_qp(config, other).ok());
    // One letter stands for a packet: a and b are of the two queue pairs, x is damaged.
    for (const std::string_view burst : {"aabba", "xbxaab", "abababab", "bxxxb", "xxx", "aaaa"}) {
        std::vector<port::PacketRef> packets;
        for (std::size_t i = 0; i < burst.size(); ++i) {
            packets.push_back(make(4 * i));
            raw_of(packets.back()).bth.dest_qpn.set(burst[i] == 'b' ? 0x21 : 0x20);
            packets.back().icrc_ok = burst[i] != 'x';
        }
        collector.payloads.clear();
        other.payloads.clear();
        const std::uint64_t dropped = service.drops().total();
        service.on_packets(packets, {});
        std::size_t first = 0;
        std::size_t second = 0;
        for (std::size_t i = 0; i < burst.size(); ++i) {
            if (burst[i] == 'a') {
                ASSERT_LT(first, collector.payloads.size());
                EXPECT_EQ(collector.payloads[first++].size(), 4 * i) << burst;
            } else if (burst[i] == 'b') {
                ASSERT_LT(second, other.payloads.size());
                EXPECT_EQ(other.payloads[second++].size(), 4 * i) << burst;
            }
        }
        EXPECT_EQ(collector.payloads.size(), first);
        EXPECT_EQ(other.payloads.size(), second);
        EXPECT_EQ(service.drops().total() - dropped, burst.size() - first - second);
        EXPECT_EQ(port.buffers_in_use(), 0U);
    }
}

TEST_F(UdTest, ALongBurstOfChangingQueuePairsArrivesWhole) {
    UdConfig config;
    config.qpn = Qpn{0x21};
    config.qkey = Qkey{0x1234};
    config.path_mtu_bytes = 256;
    Collector other;
    ASSERT_TRUE(service.create_qp(config, other).ok());
    std::vector<port::PacketRef> packets;
    for (std::size_t i = 0; i < 64; ++i) {
        packets.push_back(make(8));
        raw_of(packets.back()).bth.dest_qpn.set(i % 2 == 0 ? 0x20 : 0x21);
    }
    service.on_packets(packets, {});
    EXPECT_EQ(collector.payloads.size(), 32U);
    EXPECT_EQ(other.payloads.size(), 32U);
}

TEST_F(UdTest, ALimitedMemberTalksOnlyToFullMembers) {
    port::PacketRef packet = make(4);
    raw_of(packet).bth.pkey.set(0x7fff);
    service.on_packets({&packet, 1}, {});
    EXPECT_EQ(collector.payloads.size(), 1U);
}

TEST_F(UdTest, RefusesTakenNumbersAndIllegalMtus) {
    UdConfig config;
    config.qpn = Qpn{0x20};
    EXPECT_FALSE(service.create_qp(config, collector).ok());
    config.qpn = Qpn{0x21};
    config.path_mtu_bytes = 1000;
    EXPECT_FALSE(service.create_qp(config, collector).ok());
    service.destroy_qp(qp);
    config.qpn = Qpn{0x20};
    config.path_mtu_bytes = 1024;
    EXPECT_TRUE(service.create_qp(config, collector).ok());
}

}  // namespace
}  // namespace cairn::roce
