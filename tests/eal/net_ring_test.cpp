// Two ports joined by rings inside one process, driven step by step: neighbours, calls, payloads sent in place,
// workers without a queue, foreign senders, captures, and not one buffer lost.
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <sched.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "lib/net/checksum.hpp"
#include "lib/wire/icrc.hpp"
#include "pmd_glue/capture.hpp"
#include "pmd_glue/eal.hpp"
#include "tests/eal/net_ring.hpp"
#include "tests/support/pcap_reader.hpp"

namespace cairn::pmd {
namespace {

TEST_F(NetRing, NeighboursFindEachOtherAndCallsOfAllSizesAreAnswered) {
    open(1);
    Worker& client = *sides[0][0];
    const SessionId session = connect(client, kQpn);
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{32}, std::size_t{333}, std::size_t{1024}, std::size_t{4080}}) {
        std::vector<std::uint8_t> request(bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
            request[i] = static_cast<std::uint8_t>(i * 3 + bytes);
        }
        const Answer answer = call(client, session, request);
        EXPECT_EQ(answer.status, erpc::CallStatus::Ok);
        EXPECT_EQ(answer.content, request) << bytes;
    }
    EXPECT_EQ(sides[1][0]->handled, 6);
    EXPECT_EQ(client.port.counters().of(EthdevCounter::BadIcrc), 0U);
}

TEST_F(NetRing, TheFirstDatagramsWaitUntilTheNeighbourAnswers) {
    open(1);
    Worker& client = *sides[0][0];
    (void)connect(client, kQpn);
    run(milliseconds(1));  // much less than the time of a retransmission
    EXPECT_EQ(client.port.counters().of(EthdevCounter::Unresolved), 0U);
    EXPECT_EQ(client.endpoint->statistics().retransmits, 0U);
    EXPECT_EQ(sides[1][0]->endpoint->sessions_open(), 1U);
}

TEST_F(NetRing, DatagramsToNobodyAreLostAfterAWhile) {
    open(1);
    Worker& client = *sides[0][0];
    const net::IpAddress nobody = net::IpAddress::parse("10.5.0.9").value();
    port::Path* const path = client.port.open_path({client.port.local_address(), nobody, 0xc000, 0}, now);
    constexpr std::size_t kSent = 20;  // four more than are kept
    for (std::size_t i = 0; i < kSent; ++i) {
        const port::PacketRef buffer = client.sender.take();
        std::memset(buffer.data, 0, 64);
        client.sender.send(buffer, path, 64, {}, now);
    }
    run(milliseconds(1));
    EXPECT_EQ(client.port.counters().of(EthdevCounter::Unresolved), 4U);
    EXPECT_GT(path->pins(), 0U);
    for (int i = 0; i < 30; ++i) {
        now = now + milliseconds(100);
        run(microseconds(20));
    }
    EXPECT_EQ(client.port.counters().of(EthdevCounter::Unresolved), kSent);
    EXPECT_EQ(path->pins(), 0U);
}

TEST_F(NetRing, ALargePayloadInDeviceMemoryIsSentFromWhereItLiesAndArrivesInOnePiece) {
    open(1);
    Worker& client = *sides[0][0];
    const SessionId session = connect(client, kQpn);
    rpc::MsgBuffer request = client.pool.allocate(2048);
    for (std::size_t i = 0; i < request.bytes; ++i) {
        request.data[i] = static_cast<std::uint8_t>(i * 7);
    }
    const bool in_place = client.port.can_send_from(request.span());
    EXPECT_EQ(in_place, devices[0]->plan().segments);
    const Answer answer = call(client, session, request.span());
    EXPECT_TRUE(std::equal(answer.content.begin(), answer.content.end(), request.data, request.data + request.bytes));
    EXPECT_EQ(sides[1][0]->port.counters().of(EthdevCounter::Linearized) != 0, in_place);
    client.pool.release(request);
    const std::vector<std::uint8_t> elsewhere(2048);
    EXPECT_FALSE(client.port.can_send_from(elsewhere));
}

TEST_F(NetRing, WorkersWithoutAQueueAreFedThroughRingsAndSendThroughThem) {
    open(2);
    ASSERT_EQ(devices[0]->plan().queues, 1);
    Worker& client = *sides[0][1];
    const SessionId session = connect(client, kQpn + 1);
    const std::array<std::uint8_t, 4> request{1, 2, 3, 4};
    EXPECT_EQ(call(client, session, request).status, erpc::CallStatus::Ok);
    EXPECT_EQ(sides[1][0]->handled, 0);
    EXPECT_EQ(sides[1][1]->handled, 1);
    EXPECT_GT(sides[1][0]->port.counters().of(EthdevCounter::Forwarded), 0U);
}

TEST_F(NetRing, ADatagramWithAnIpv4IdIsJudgedByItsOwnHeaders) {
    open(1);
    Worker& client = *sides[0][0];
    connect(client, kQpn);
    run(milliseconds(5));  // neighbours know each other
    const net::IpAddress there = net::IpAddress::parse("10.5.0.2").value();
    port::Path* path = client.port.open_path({client.port.local_address(), there, 0xc000, 0}, now);
    const std::uint64_t before = sides[1][0]->worker->datagrams().drops().of(roce::Drop::UnknownQpn);
    for (const bool right : {true, false}) {
        const std::size_t sent = client.port.transmit_frames(1, [&](std::size_t, std::span<std::uint8_t> frame) {
            const std::size_t bytes = path->lower_bytes() + sizeof(wire::RawUd) + 4;
            std::uint8_t* bth = frame.data() + path->lower_bytes();
            std::memset(bth, 0, sizeof(wire::RawUd));
            bth[0] = wire::kUdSendOnly;
            path->write_lower_headers(bth, sizeof(wire::RawUd) + 4);
            std::uint8_t* ip = frame.data() + 14;
            ip[5] = 42;
            ip[10] = ip[11] = 0;
            net::ChecksumSum sum;
            sum.add({ip, 20});
            ip[10] = static_cast<std::uint8_t>(sum.checksum() >> 8U);
            ip[11] = static_cast<std::uint8_t>(sum.checksum());
            const std::uint32_t icrc = wire::icrc_reference(frame.subspan(14, bytes - 18)) ^ (right ? 0U : 1U);
            std::memcpy(frame.data() + bytes - 4, &icrc, sizeof(icrc));
            return bytes;
        });
        EXPECT_EQ(sent, 1U);
        run(milliseconds(1));
    }
    EXPECT_EQ(sides[1][0]->worker->datagrams().drops().of(roce::Drop::UnknownQpn), before + 1);
    EXPECT_EQ(sides[1][0]->port.counters().of(EthdevCounter::BadIcrc), 1U);
}

// Sends three packets of 68 bytes.
void send_three(EthdevPort& from, port::Path& path, Instant now) {
    std::array<port::TxPacket, 3> packets{};
    for (port::TxPacket& packet : packets) {
        EXPECT_EQ(from.allocate_burst({&packet.packet, 1}), 1U);
        std::memset(packet.packet.data, 0x5a, 68);
        packet.packet.path = &path;
        packet.packet.len = 68;
    }
    EXPECT_EQ(from.transmit_burst(packets, now), packets.size());
}

TEST_F(NetRing, DatagramsToAGroupReachWhoJoinedItByItsOwnEthernetAddress) {
    open(1);
    EthdevPort& from = sides[0][0]->port;
    EthdevPort& to = sides[1][0]->port;
    const net::IpAddress group = net::IpAddress::parse("239.129.1.2").value();
    EXPECT_EQ(group.group_mac().text(), "01:00:5e:01:01:02");
    EXPECT_EQ(net::IpAddress::parse("ff05::12:3456:789a").value().group_mac().text(), "33:33:34:56:78:9a");
    port::Path* const path = from.open_path({from.local_address(), group, 0xc000, 0}, now);
    ASSERT_TRUE(path->resolved());
    const auto send_and_receive = [&] {
        send_three(from, *path, now);
        std::array<port::PacketRef, 8> got;
        const std::size_t count = to.receive_burst(got, now);
        for (const port::PacketRef& packet : std::span(got).first(count)) {
            EXPECT_TRUE(packet.icrc_ok);
            EXPECT_EQ(packet.path->key().local, group);
            EXPECT_EQ(packet.path->key().remote, from.local_address());
        }
        to.release_burst(std::span(got).first(count));
        return count;
    };
    EXPECT_EQ(send_and_receive(), 0U);
    EXPECT_FALSE(to.join(net::IpAddress::parse("ff05::1").value()).ok());
    ASSERT_TRUE(to.join(group).ok());
    EXPECT_EQ(send_and_receive(), 3U);
    to.leave(group);
    EXPECT_EQ(to.verdicts().of(port::FrameVerdict::NotForUs), 3U);
}

TEST_F(NetRing, DatagramsToAGroupReachEachWorkerThatHasAMember) {
    open(3);
    const net::IpAddress group = net::IpAddress::parse("239.129.1.2").value();
    const net::IpAddress other = net::IpAddress::parse("239.129.1.3").value();
    EthdevPort& from = sides[0][1]->port;  // a worker without a queue
    for (EthdevPort* const member : {&sides[0][0]->port, &sides[0][1]->port, &sides[1][1]->port, &sides[1][2]->port}) {
        ASSERT_TRUE(member->join(group).ok());
    }
    ASSERT_TRUE(sides[1][0]->port.join(other).ok());
    port::Path* const path = from.open_path({from.local_address(), group, 0xc000, 0}, now);
    const auto send = [&] { send_three(from, *path, now); };
    const auto received = [&](std::size_t host, std::size_t worker) {
        EthdevPort& port = sides[host][worker]->port;
        std::size_t count = 0;
        for (int turns = 0; turns < 2; ++turns) {
            std::array<port::PacketRef, 8> got;
            const std::size_t now_got = port.receive_burst(got, now);
            for (const port::PacketRef& packet : std::span(got).first(now_got)) {
                EXPECT_TRUE(packet.icrc_ok && packet.path->key().local == group);
                EXPECT_EQ(packet.path->key().remote, from.local_address());
            }
            port.release_burst(std::span(got).first(now_got));
            count += now_got;
        }
        return count;
    };
    send();
    EXPECT_EQ(received(0, 0), 3U);  // this worker also sends for the one without a queue
    EXPECT_EQ(received(0, 1), 0U);  // its service delivers to its own members
    EXPECT_EQ(received(0, 2), 0U);
    EXPECT_EQ(received(1, 0), 0U);
    EXPECT_EQ(received(1, 1), 3U);
    EXPECT_EQ(received(1, 2), 3U);
    sides[1][1]->port.leave(group);
    send();
    EXPECT_EQ(received(0, 0), 3U);
    EXPECT_EQ(received(1, 0), 0U);
    EXPECT_EQ(received(1, 1), 0U);
    EXPECT_EQ(received(1, 2), 3U);
}

TEST_F(NetRing, ACaptureHoldsBothDirections) {
    open(1);
    Worker& client = *sides[0][0];
    const SessionId session = connect(client, kQpn);
    const std::string file = testing::TempDir() + "cairn_net_ring.pcap";
    {
        auto capture = Capture::start(*devices[0], file);
        ASSERT_TRUE(capture.ok()) << capture.error().text();
        const std::array<std::uint8_t, 4> request{9, 8, 7, 6};
        call(client, session, request);
    }
    EXPECT_GE(test::read_pcap(file).size(), 2U);
    std::filesystem::remove(file);
}

void never_freed(void*, void*) {}

// Makes the frame's memory a part of a larger receive buffer of a NIC.
void put_into_stride(rte_mbuf& frame, rte_mbuf_ext_shared_info& others) {
    alignas(64) static std::array<std::uint8_t, 512> stride;
    others.free_cb = never_freed;
    rte_mbuf_ext_refcnt_set(&others, 2);
    rte_pktmbuf_attach_extbuf(&frame, stride.data(), RTE_BAD_IOVA, stride.size(), &others);
    frame.data_off = 0;
}

TEST_F(NetRing, AReceivedBufferHasTheRoomBehindItsDatagramAndNoneIfOthersUseItToo) {
    enum class Buffer { AsAllocated, FurtherBehind, Shared, InAStride };
    open(1);
    EthdevPort& from = sides[0][0]->port;
    EthdevPort& to = sides[1][0]->port;
    connect(*sides[0][0], kQpn);
    run(milliseconds(5));  // neighbours know each other
    std::uint16_t source_port = 0xc001;
    for (const auto& [kind, less] : {std::pair{Buffer::AsAllocated, 0},
                                     {Buffer::FurtherBehind, 256},
                                     {Buffer::Shared, -1},
                                     {Buffer::InAStride, -1}}) {
        port::Path* path = from.open_path({from.local_address(), to.local_address(), source_port++, 0}, now);
        for (const bool known : {false, true}) {  // the first packet of a path takes the slow path
            rte_mbuf* frame = rte_pktmbuf_alloc(devices[0]->pool());
            rte_mbuf_ext_shared_info others{};
            if (kind == Buffer::InAStride) {
                put_into_stride(*frame, others);
            }
            frame->data_off = static_cast<std::uint16_t>(frame->data_off + (kind == Buffer::FurtherBehind ? 256 : 0));
            rte_mbuf_refcnt_set(frame, kind == Buffer::Shared ? 2 : 1);
            const std::size_t bytes = path->lower_bytes() + 16;
            auto* const bth = reinterpret_cast<std::uint8_t*>(
                rte_pktmbuf_append(frame, static_cast<std::uint16_t>(bytes)) + path->lower_bytes());
            std::memset(bth, 0, 16);
            path->seal(bth, 16);
            ASSERT_EQ(rte_eth_tx_burst(devices[0]->port_id(), 0, &frame, 1), 1);
            port::PacketRef packet;
            ASSERT_EQ(to.receive_burst({&packet, 1}, now), 1U);
            EXPECT_TRUE(packet.icrc_ok);
            const std::size_t whole = devices[1]->plan().data_room_bytes - path->lower_bytes();
            EXPECT_EQ(packet.room, less < 0 ? 0 : whole - static_cast<std::size_t>(less))
                << static_cast<int>(kind) << known;
            rte_mbuf_refcnt_set(frame, 1);
            to.release_burst({&packet, 1});
        }
    }
}

TEST_F(NetRing, AnEmptyPoolIsAValue) {
    open(1);
    EthdevPort& port = sides[0][0]->port;
    std::vector<port::PacketRef> taken;
    std::array<port::PacketRef, 32> some;
    while (port.allocate_burst(some) == some.size()) {
        taken.insert(taken.end(), some.begin(), some.end());
    }
    EXPECT_GT(port.counters().of(EthdevCounter::NoBuffer), 0U);
    connect(*sides[0][0], kQpn);
    run(milliseconds(5));
    port.release_burst(taken);
    run(milliseconds(50));
    EXPECT_EQ(sides[1][0]->endpoint->sessions_open(), 1U);
}

}  // namespace
}  // namespace cairn::pmd

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    std::array<std::string, 9> text{argv[0], "--no-huge", "-m", "256", "--no-pci", "--no-shconf",
                                    // two lcores on one of the CPUs that this process may use
                                    "--lcores=(0-1)@" + std::to_string(sched_getcpu()), "--no-telemetry",
                                    "--file-prefix=cairn-net-ring-test"};
    std::array<char*, text.size()> arguments{};
    for (std::size_t i = 0; i < text.size(); ++i) {
        arguments[i] = text[i].data();
    }
    const auto eal = cairn::pmd::Eal::start(static_cast<int>(arguments.size()), arguments.data());
    if (!eal.ok()) {
        std::fprintf(stderr, "%s\n", eal.error().text().c_str());
        return 1;
    }
    return RUN_ALL_TESTS();
}
