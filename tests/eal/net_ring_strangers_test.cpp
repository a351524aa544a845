// Two ports joined by rings: floods of other protocols, moving neighbours, datagrams of unknown peers, empty pools.
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <cstring>
#include <vector>

#include "pmd_glue/exchange.hpp"
#include "tests/eal/net_ring_strangers.hpp"

namespace cairn::pmd {
namespace {

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
        EXPECT_EQ(mac_of(*port.open_path({there(), peer, source_port, 0}, now)), first) << "it need not be asked for";
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

TEST_F(NetRingStrangers, ANeighbourThatAnotherSeemsToBeIsAskedAtOnceWhetherItIsStillThere) {
    addresses = {"fd00::1", "fd00::2"};
    open(1);
    EthdevPort& port = sides[1][0]->port;
    const net::IpAddress peer = sender().port.local_address();
    port::Path* const path = port.open_path({port.local_address(), peer, 0xc000, 0}, now);
    run(milliseconds(1));
    ASSERT_TRUE(path->resolved());
    now = now + seconds(2);
    port.on_timeout(now);
    EXPECT_GT(port.next_deadline(), now + seconds(20));
    ASSERT_EQ(
        sender().port.transmit_frames(
            1, [&](std::size_t, std::span<std::uint8_t> frame) { return write_advertisement(frame, peer, kMoved); }),
        1U);
    std::array<port::PacketRef, 8> burst;
    EXPECT_EQ(port.receive_burst(burst, now), 0U);
    EXPECT_LE(port.next_deadline(), now);
    port.on_timeout(now);
    std::array<rte_mbuf*, 8> questions{};
    ASSERT_EQ(rte_eth_rx_burst(devices[0]->port_id(), 0, questions.data(), questions.size()), 1U);
    EXPECT_EQ(std::memcmp(rte_pktmbuf_mtod(questions[0], const void*), devices[0]->mac().octets.data(), 6), 0);
    rte_pktmbuf_free(questions[0]);
    EXPECT_GT(port.next_deadline(), now);
    EXPECT_EQ(mac_of(*path), devices[0]->mac());
}

TEST_F(NetRingStrangers, ANeighbourThatWasAskedInVainAndComesLaterGrowsOldAsOthersDo) {
    open(1);
    EthdevPort& port = sides[1][0]->port;
    const net::IpAddress peer = net::IpAddress::parse("10.5.0.77").value();
    port::Path* const path = port.open_path({there(), peer, 0xc000, 0}, now);
    for (const Instant end = now + seconds(20); now < end; now = now + milliseconds(100)) {
        sides[1][0]->turn(now);
    }
    EXPECT_EQ(port.next_deadline(), Instant::never());
    flood(1, [&](std::size_t, std::span<std::uint8_t> frame) { return write_arp(frame, peer, kMoved, there()); });
    EXPECT_EQ(mac_of(*path), kMoved);
    EXPECT_LE(port.next_deadline(), now + seconds(30));
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
    EXPECT_EQ(mac_of(*port.open_path({there(), key.local, 0xc001, 0}, now)), kMoved);
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

TEST_F(NetRingStrangers, WhoSentSomethingIsAnsweredThereFromAnyPortAndNotAskedFor) {
    open(1);
    EthdevPort& port = sides[1][0]->port;
    const net::IpAddress peer = net::IpAddress::parse("10.5.0.77").value();
    const net::MacAddress first{{2, 0, 0, 0, 0, 1}};
    const auto send = [&](const net::MacAddress& from) {
        flood(1, [&](std::size_t, std::span<std::uint8_t> frame) {
            return write_datagram(frame, {peer, there(), 0x1234, 0}, 0x77, true, from);
        });
    };
    send(first);
    port::Path* const came = port.open_path({there(), peer, 0x1234, 0}, now);
    port::Path* const answer = port.open_path({there(), peer, 0xc000, 0}, now);
    ASSERT_TRUE(answer->resolved());
    EXPECT_EQ(mac_of(*answer), first);
    port.on_timeout(now);
    EXPECT_EQ(port.counters().of(EthdevCounter::Transmitted), 0U);
    send(kMoved);  // perhaps now it is asked for, and answers
    EXPECT_EQ(port.counters().of(EthdevCounter::Transmitted), 1U);
    flood(1, [&](std::size_t, std::span<std::uint8_t> frame) { return write_arp(frame, peer, kMoved, there()); });
    EXPECT_EQ(mac_of(*came), kMoved);
    EXPECT_EQ(mac_of(*answer), kMoved);
    for (const Instant end = now + seconds(35); now < end; now = now + milliseconds(100)) {
        port.on_timeout(now);
    }
    EXPECT_FALSE(came->resolved()) << "it is gone";
    EXPECT_FALSE(answer->resolved());
    EXPECT_FALSE(port.open_path({there(), peer, 0xc001, 0}, now)->resolved()) << "where it was once";
}

TEST_F(NetRingStrangers, AnswersToManyLeaveRoomToAskForAPeer) {
    open(1);
    EthdevPort& port = sides[1][0]->port;
    constexpr std::uint32_t kHosts = 0x0a060000;
    flood(2'000, [&](std::size_t i, std::span<std::uint8_t> frame) {
        const auto host = net::IpAddress::from_v4(kHosts + static_cast<std::uint32_t>(i));
        return write_datagram(frame, {host, there(), 0x1234, 0}, 0x77, true, kMoved);
    });
    for (std::uint32_t i = 0; i < 2'000; ++i) {
        ASSERT_NE(port.open_path({there(), net::IpAddress::from_v4(kHosts + i), 0xc000, 0}, now), nullptr);
    }
    port::Path* const path = port.open_path({there(), sender().port.local_address(), 0xc000, 0}, now);
    port.on_timeout(now);
    EXPECT_EQ(port.counters().of(EthdevCounter::Transmitted), 1U);
    run(milliseconds(1));
    EXPECT_TRUE(path->resolved());
    EXPECT_EQ(mac_of(*path), devices[0]->mac());
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
