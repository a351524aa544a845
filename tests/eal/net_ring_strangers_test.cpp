// Two ports joined by rings: floods of what is not RoCE, neighbours that move, strangers' datagrams, empty pools.
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "lib/net/arp.hpp"
#include "lib/net/checksum.hpp"
#include "lib/net/ethernet.hpp"
#include "lib/net/ipv4.hpp"
#include "pmd_glue/exchange.hpp"
#include "tests/eal/net_ring.hpp"

namespace cairn::pmd {
namespace {

class NetRingStrangers : public NetRing {
protected:
    static net::IpAddress there() { return net::IpAddress::parse("10.5.0.2").value(); }
    [[nodiscard]] Worker& sender() const { return *sides[0][0]; }
    [[nodiscard]] const net::MacAddress& target() const { return devices[1]->mac(); }

    // As many frames as the ring holds at once, then the receivers' turn, until `count` are through.
    template <class Make>
    void flood(std::size_t count, Make&& make, Duration turn = microseconds(20)) {
        for (std::size_t sent = 0; sent < count;) {
            const std::size_t took = sender().port.transmit_frames(
                std::min<std::size_t>(count - sent, 16),
                [&](std::size_t i, std::span<std::uint8_t> frame) { return make(sent + i, frame); });
            ASSERT_GT(took, 0U);
            sent += took;
            for (auto& worker : sides[1]) {
                worker->turn(now);
            }
            now = now + turn;
        }
    }
    // A UDP datagram to some port that is not RoCE's.
    std::size_t write_foreign(std::span<std::uint8_t> frame) const {
        std::fill_n(frame.begin(), 60, std::uint8_t{0});
        net::emit_at(frame.data(), net::EthernetHeader{target(), devices[0]->mac(), net::kEtherTypeIpv4});
        net::Ipv4Header ip;
        ip.total_bytes = 46;
        ip.protocol = net::kProtocolUdp;
        ip.source = sender().port.local_address();
        ip.destination = there();
        net::emit_at(frame.data() + 14, ip);
        frame[14 + 20 + 3] = 53;
        frame[14 + 20 + 5] = 26;
        return 60;
    }
    static std::size_t write_arp(std::span<std::uint8_t> frame, const net::IpAddress& from, const net::MacAddress& mac,
                                 const net::IpAddress& to) {
        std::fill_n(frame.begin(), 60, std::uint8_t{0});
        net::emit_at(frame.data(), net::EthernetHeader{net::kBroadcastMac, mac, net::kEtherTypeArp});
        net::ArpMessage arp;
        arp.sender_ip = from;
        arp.sender_mac = mac;
        arp.target_ip = to;
        net::emit_at(frame.data() + 14, arp);
        return 60;
    }
    // A datagram of one BTH from any address and port; its ICRC right or not.
    std::size_t write_datagram(std::span<std::uint8_t> frame, const port::PathKey& key, std::uint32_t qpn, bool whole,
                               const net::MacAddress& mac) const {
        port::Path path(key);
        path.resolve(mac, target());
        std::uint8_t* const bth = frame.data() + path.lower_bytes();
        std::memset(bth, 0, 16);
        bth[0] = roce::kUdSendOnly;
        bth[5] = static_cast<std::uint8_t>(qpn >> 16U);
        bth[6] = static_cast<std::uint8_t>(qpn >> 8U);
        bth[7] = static_cast<std::uint8_t>(qpn);
        path.seal(bth, 16);
        bth[12] = static_cast<std::uint8_t>(bth[12] ^ (whole ? 0 : 1));
        return path.lower_bytes() + 16;
    }
    static net::MacAddress mac_of(const port::Path& path) {
        std::array<std::uint8_t, 128> buffer{};
        path.write_lower_headers(buffer.data() + path.lower_bytes(), 16);
        net::MacAddress mac;
        std::memcpy(mac.octets.data(), buffer.data(), mac.octets.size());
        return mac;
    }
};

constexpr net::MacAddress kMoved{{2, 0, 0, 0, 7, 7}};

TEST_F(NetRingStrangers, FramesThatAreNotRoceStayWithTheWorkerTheyReach) {
    open(2);
    const SessionId session = connect(*sides[0][1], kQpn + 1);
    const std::array<std::uint8_t, 4> request{1, 2, 3, 4};
    EXPECT_EQ(call(*sides[0][1], session, request).status, erpc::CallStatus::Ok);
    EthdevPort& first = sides[1][0]->port;
    EthdevPort& second = sides[1][1]->port;
    const std::uint64_t seen = second.verdicts().of(port::FrameVerdict::NotRoce);
    const std::uint64_t forwarded = first.counters().of(EthdevCounter::Forwarded);
    flood(10'000, [this](std::size_t, std::span<std::uint8_t> frame) { return write_foreign(frame); });
    EXPECT_GE(first.verdicts().of(port::FrameVerdict::NotRoce), 10'000U);
    EXPECT_EQ(second.verdicts().of(port::FrameVerdict::NotRoce), seen);
    EXPECT_EQ(first.counters().of(EthdevCounter::Forwarded), forwarded);
    EXPECT_EQ(first.counters().of(EthdevCounter::RingFull), 0U);
    EXPECT_EQ(call(*sides[0][1], session, request).status, erpc::CallStatus::Ok);
}

TEST_F(NetRingStrangers, AFloodOfQuestionsLeavesTheOtherWorkersTheirRings) {
    open(2);
    const SessionId session = connect(*sides[0][1], kQpn + 1);
    EthdevPort& first = sides[1][0]->port;
    EthdevPort& second = sides[1][1]->port;
    const std::array<std::uint8_t, 4> request{1, 2, 3, 4};
    EXPECT_EQ(call(*sides[0][1], session, request).status, erpc::CallStatus::Ok);
    const std::uint64_t seen = second.verdicts().of(port::FrameVerdict::NotRoce);
    flood(
        6'400,  // in four milliseconds
        [](std::size_t i, std::span<std::uint8_t> frame) {
            const auto from = net::IpAddress::from_v4(0x0a050100U + static_cast<std::uint32_t>(i));
            return write_arp(frame, from, kMoved, net::IpAddress::from_v4(0x0a05ffff));
        },
        microseconds(10));
    EXPECT_LE(second.verdicts().of(port::FrameVerdict::NotRoce) - seen, 5U * 64);
    EXPECT_GT(second.verdicts().of(port::FrameVerdict::NotRoce), seen);
    EXPECT_GT(first.counters().of(EthdevCounter::NotShared), 6'000U);
    EXPECT_EQ(first.counters().of(EthdevCounter::RingFull), 0U);
    EXPECT_EQ(call(*sides[0][1], session, request).status, erpc::CallStatus::Ok);
}

TEST_F(NetRingStrangers, APeerThatNamesItselfIsFollowedButManyPathsNotFromMomentToMoment) {
    open(1);
    EthdevPort& port = sides[1][0]->port;
    const net::IpAddress peer = net::IpAddress::parse("10.5.0.77").value();
    const port::PathKey key{peer, there(), 0xc000, 0};
    const net::MacAddress first{{2, 0, 0, 0, 0, 1}};
    flood(1, [&](std::size_t, std::span<std::uint8_t> frame) { return write_datagram(frame, key, 0x77, true, first); });
    ASSERT_EQ(port.paths().size(), 1U);
    port::Path* const path = port.open_path({there(), peer, 0xc000, 0}, now);
    EXPECT_EQ(mac_of(*path), first);
    const auto name = [&](const net::MacAddress& mac) {
        flood(1, [&](std::size_t, std::span<std::uint8_t> frame) { return write_arp(frame, peer, mac, there()); });
        return mac_of(*path);
    };
    EXPECT_EQ(name(kMoved), kMoved);
    EXPECT_EQ(name(first), first) << "its program is started again and again";
    for (std::uint16_t source_port = 0xc001; source_port < 0xc001 + 16; ++source_port) {
        ASSERT_NE(port.open_path({there(), peer, source_port, 0}, now), nullptr);
    }
    now = now + seconds(1);
    EXPECT_EQ(name(kMoved), kMoved);
    EXPECT_EQ(name(first), kMoved) << "two stations have one address, and many paths";
    now = now + seconds(1);
    EXPECT_EQ(name(first), first);
}

TEST_F(NetRingStrangers, WhatIsDamagedTakesNoPath) {
    open(1);
    EthdevPort& port = sides[1][0]->port;
    const auto send = [&](bool whole, std::size_t hosts) {
        flood(hosts, [&](std::size_t i, std::span<std::uint8_t> frame) {
            const auto host = net::IpAddress::from_v4(0x0a060000U + static_cast<std::uint32_t>(i));
            return write_datagram(frame, {host, there(), 0xc000, 0}, 0x77, whole, kMoved);
        });
    };
    send(false, 5'000);
    EXPECT_EQ(port.counters().of(EthdevCounter::BadIcrc), 5'000U);
    EXPECT_EQ(port.counters().of(EthdevCounter::Received), 0U);
    EXPECT_EQ(port.paths().size(), 0U);
    send(true, 3);
    EXPECT_EQ(port.paths().size(), 3U);
    send(false, 3);
    EXPECT_EQ(port.counters().of(EthdevCounter::Received), 6U) << "who has a path is judged by the engine";
}

TEST_F(NetRingStrangers, AForwardedDatagramIsJudgedByItsOwnerAlone) {
    open(2);
    const port::PathKey key{sender().port.local_address(), there(), 0xc000, 0};
    for (const bool whole : {true, false}) {
        flood(1, [&](std::size_t, std::span<std::uint8_t> frame) {
            return write_datagram(frame, key, kQpn + 1, whole, devices[0]->mac());
        });
    }
    run(microseconds(100));
    EthdevPort& first = sides[1][0]->port;
    EthdevPort& owner = sides[1][1]->port;
    EXPECT_EQ(first.counters().of(EthdevCounter::Forwarded), 2U);
    EXPECT_EQ(first.counters().of(EthdevCounter::BadIcrc), 0U);
    EXPECT_EQ(first.paths().size(), 0U);
    EXPECT_EQ(owner.counters().of(EthdevCounter::BadIcrc), 1U);
    EXPECT_EQ(owner.counters().of(EthdevCounter::Received), 2U);
}

TEST_F(NetRingStrangers, AnAnswerIsHeardAlsoWhileNoBufferIsFree) {
    open(1);
    EthdevPort& port = sender().port;
    port::Path* const path = port.open_path({port.local_address(), there(), 0xc000, 0}, now);
    EXPECT_FALSE(path->resolved());
    port.on_timeout(now);
    sides[1][0]->turn(now);
    std::vector<port::PacketRef> taken;
    std::array<port::PacketRef, 1> one;
    while (port.allocate_burst(one) == 1) {
        taken.push_back(one[0]);
    }
    sender().turn(now);
    EXPECT_TRUE(path->resolved());
    port.release_burst(taken);
}

TEST_F(NetRingStrangers, QuestionsForManyLeaveAFewAtATime) {
    open(1);
    EthdevPort& port = sender().port;
    for (std::uint32_t host = 0; host < 500; ++host) {
        (void)port.open_path({port.local_address(), net::IpAddress::from_v4(0x0a050100U + host), 0xc000, 0}, now);
    }
    port.on_timeout(now);
    EXPECT_EQ(port.counters().of(EthdevCounter::Transmitted), 32U);
    for (int turns = 0; turns < 20; ++turns) {
        port.on_timeout(now);
        sides[1][0]->turn(now);
    }
    EXPECT_EQ(port.counters().of(EthdevCounter::Transmitted), 500U);
    EXPECT_GT(port.next_deadline(), now);
}

TEST_F(NetRingStrangers, APeerBeyondARouterIsFollowedToTheNextRouterWhenNobodyOnTheLinkHasItsAddress) {
    open(1);
    EthdevPort& port = sides[1][0]->port;
    const port::PathKey key{net::IpAddress::parse("10.9.0.1").value(), there(), 0xc000, 0};
    const net::MacAddress first{{2, 0, 0, 0, 0, 1}};
    const auto send = [&](const net::MacAddress& router) {
        flood(1, [&](std::size_t, std::span<std::uint8_t> frame) {
            return write_datagram(frame, key, 0x77, true, router);
        });
    };
    send(first);
    send(first);
    port::Path* const path = port.open_path({there(), key.local, 0xc000, 0}, now);
    const auto pass_time = [&](Duration span) {
        for (const Instant end = now + span; now < end; now = now + milliseconds(100)) {
            sides[1][0]->turn(now);
        }
    };
    pass_time(seconds(20));
    EXPECT_EQ(mac_of(*path), first);
    send(kMoved);
    EXPECT_EQ(mac_of(*path), first) << "it may be anybody's";
    pass_time(seconds(20));
    EXPECT_EQ(mac_of(*path), kMoved);
}

TEST_F(NetRingStrangers, WhoIsOnTheLinkIsNotMovedByDatagramsThatSeemToBeItsOwn) {
    open(1);
    EthdevPort& port = sides[1][0]->port;
    const port::PathKey key{sender().port.local_address(), there(), 0xc000, 0};
    for (const net::MacAddress& from : {devices[0]->mac(), devices[0]->mac(), kMoved, kMoved}) {
        flood(1,
              [&](std::size_t, std::span<std::uint8_t> frame) { return write_datagram(frame, key, 0x77, true, from); });
    }
    port::Path* path = nullptr;
    for (int i = 0; i < 200; ++i) {
        now = now + milliseconds(100);
        run(microseconds(20));
        path = port.open_path({there(), key.local, 0xc000, 0}, now);
        ASSERT_EQ(mac_of(*path), devices[0]->mac());
    }
}

TEST_F(NetRingStrangers, WhatAnotherWorkerPassesOnDoesNotWaitBehindAFloodOfOnesOwn) {
    open(2);
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(sender().port.transmit_frames(
                      16, [this](std::size_t, std::span<std::uint8_t> frame) { return write_foreign(frame); }),
                  16U);
    }
    rte_mbuf* const passed = rte_pktmbuf_alloc(devices[1]->pool());
    const std::span<std::uint8_t> room(rte_pktmbuf_mtod(passed, std::uint8_t*), 256);
    const port::PathKey key{sender().port.local_address(), there(), 0xc000, 0};
    passed->data_len = static_cast<std::uint16_t>(write_datagram(room, key, kQpn, true, devices[0]->mac()));
    passed->pkt_len = passed->data_len;
    ASSERT_TRUE(devices[1]->exchange()->pass(Exchange::Lane::Received, 1, 0, passed));
    sides[1][0]->turn(now);
    EXPECT_EQ(sides[1][0]->port.counters().of(EthdevCounter::Received), 1U);
    EXPECT_GT(sides[1][0]->port.verdicts().of(port::FrameVerdict::NotRoce), 0U);
    run(milliseconds(1));
}

TEST_F(NetRingStrangers, CopiesLeaveHalfOfARingToWhatBelongsThere) {
    open(2);
    Exchange& exchange = *devices[1]->exchange();
    const auto pass_while = [&](auto&& pass) {
        std::size_t passed = 0;
        for (;; ++passed) {
            rte_mbuf* const frame = rte_pktmbuf_alloc(devices[0]->pool());
            if (frame == nullptr || !pass(frame)) {
                rte_pktmbuf_free(frame);
                return passed;
            }
        }
    };
    const std::size_t copies = pass_while([&](rte_mbuf* frame) { return exchange.pass_copy(1, 0, frame); });
    EXPECT_GT(copies, 500U);
    EXPECT_LT(copies, 520U);
    EXPECT_GT(pass_while([&](rte_mbuf* frame) { return exchange.pass(Exchange::Lane::Received, 1, 0, frame); }), 400U);
    std::array<rte_mbuf*, 1024> all{};
    rte_pktmbuf_free_bulk(all.data(), static_cast<unsigned>(exchange.collect(Exchange::Lane::Received, 0, all)));
}

}  // namespace
}  // namespace cairn::pmd
