// UringPort over loopback: two ports in one process, in every mode and family, with each other and with a bare socket
// as a foreign peer.
#include "lib/port/uring_port.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "lib/port/datagram.hpp"
#include "tests/support/pcap_reader.hpp"
#include "tests/unit/port/uring_port_pair.hpp"

namespace cairn::port {
namespace {

class UringPortTest : public UringPortPair {};

TEST_P(UringPortTest, OneDatagramArrivesWholeWithItsMarksOnThePathThatWasOpened) {
    const Path* const back = peer().open_path({peer().local_address(), here->local_address(), 0, 0}, now);
    for (const std::uint8_t ecn : std::array<std::uint8_t, 4>{0, 2, 3, 1}) {
        EXPECT_EQ(here->open_path({here->local_address(), peer().local_address(), 0, ecn}, now), path);
        send({68});
        auto got = receive(1);
        ASSERT_EQ(got.size(), 1U);
        EXPECT_EQ(got[0].ecn, ecn);
        EXPECT_EQ(got[0].path, back);
        expect_whole(got, {68});
    }
}

TEST_P(UringPortTest, ABatchOfEqualDatagramsIsOneSendAndOneReceive) {
    const std::vector<std::size_t> lengths(60, 68);
    send(lengths);
    EXPECT_EQ(here->counters().of(UringCounter::TransmittedBatches), 1U);
    auto got = receive(60);
    expect_whole(got, lengths);
    EXPECT_EQ(peer().counters().of(UringCounter::ReceivedBatches), 1U);
    EXPECT_EQ(peer().counters().of(UringCounter::SolvedIds), 0U);
}

TEST_P(UringPortTest, WhatIsSentInSeveralBurstsLeavesTogether) {
    queue(std::vector<std::size_t>(20, 68));
    queue(std::vector<std::size_t>(20, 68));
    queue({68, 20});
    queue({68});  // after a shorter one
    send({});
    EXPECT_EQ(here->counters().of(UringCounter::TransmittedBatches), 2U);
    std::vector<PacketRef> got = receive(43);
    ASSERT_EQ(got.size(), 43U);
    for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i].icrc_ok) << i;
        EXPECT_EQ(got[i].len, i == 41 ? 20 : 68) << i;
    }
    peer().release_burst(got);
    EXPECT_EQ(here->buffers_in_use(), 0U);
}

TEST_P(UringPortTest, MixedLengthsArriveInOrder) {
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < 300; ++i) {
        lengths.push_back(16 + (i * i * 4) % 1'000 / 4 * 4);
    }
    send(lengths);
    auto got = receive(lengths.size());
    expect_whole(got, lengths);
}

TEST_P(UringPortTest, WhatIsSentAsItIsArrivesAsItIs) {
    constexpr std::array<std::uint16_t, 5> kLengths{68, 68, 15, 0, 68};
    std::array<PacketRef, kLengths.size()> buffers;
    std::array<TxPacket, kLengths.size()> packets;
    ASSERT_EQ(here->allocate_burst(buffers), buffers.size());
    for (std::size_t i = 0; i < packets.size(); ++i) {
        PacketRef& buffer = packets[i].packet = buffers[i];
        buffer.path = path;
        buffer.len = kLengths[i];
        std::memset(buffer.data, 0x40, 68);
        const std::uint32_t icrc = path->icrc(Direction::Transmit, buffer.data, 68) ^ (i == 1 ? 1U : 0U);
        std::memcpy(buffer.data + 64, &icrc, sizeof(icrc));
    }
    ASSERT_EQ(here->transmit_as_is(packets), packets.size());
    here->wait({}, -1);
    std::vector<PacketRef> got = receive(3);
    ASSERT_EQ(got.size(), 3U);
    EXPECT_TRUE(got[0].icrc_ok && !got[1].icrc_ok && got[2].icrc_ok);
    EXPECT_EQ(std::memcmp(got[1].data, packets[1].packet.data, 68), 0);
    EXPECT_EQ(peer().counters().of(UringCounter::TooShort), 2U);
    peer().release_burst(got);
    EXPECT_EQ(here->buffers_in_use(), 0U);
}

TEST_P(UringPortTest, LargeDatagramsFillSeveralSends) {
    const std::vector<std::size_t> lengths(100, 4160);
    send(lengths);
    EXPECT_GE(here->counters().of(UringCounter::TransmittedBatches), 7U);
    auto got = receive(lengths.size());
    expect_whole(got, lengths);
}

TEST_P(UringPortTest, TailsAreSentFromWhereTheyLie) {
    std::vector<std::vector<std::uint8_t>> tails;
    const std::vector<std::size_t> lengths{1'064, 1'064, 1'064, 540, 4'160};
    tails.reserve(lengths.size());
    send(lengths, &tails);
    for (auto& tail : tails) {
        std::fill(tail.begin(), tail.end(), std::uint8_t{0xdd});
    }
    auto got = receive(lengths.size());
    expect_whole(got, lengths);
}

TEST_P(UringPortTest, AReceivedSegmentIsAnsweredInItsOwnMemory) {
    if (there == nullptr) {
        GTEST_SKIP() << "needs two addresses";
    }
    const std::vector<std::size_t> lengths(40, 100);
    send(lengths);
    auto got = receive(lengths.size());
    ASSERT_EQ(got.size(), lengths.size());
    std::vector<TxPacket> answers(got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_GE(got[i].room, got[i].len);
        answers[i].packet = got[i];
    }
    EXPECT_EQ(there->transmit_burst(answers, now), answers.size());
    there->wait({}, -1);
    EXPECT_EQ(there->buffers_in_use(), 0U);
    std::array<PacketRef, 64> back;
    std::size_t count = 0;
    for (int tries = 0; tries < 1000 && count < got.size(); ++tries) {
        count += here->receive_burst(std::span(back).subspan(count), now);
    }
    ASSERT_EQ(count, got.size());
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(back[i].icrc_ok);
        EXPECT_EQ(back[i].data[20], content(i, 20));
    }
    here->release_burst(std::span(back).first(count));
}

TEST_P(UringPortTest, WhatNoDatagramCanBeIsCountedAndDropped) {
    const int stranger = socket(path->is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_storage to{};
    const socklen_t length = to_sockaddr(peer().local_address(), kPort, to);
    const std::vector<std::uint8_t> junk(5'000, 0x5a);
    for (const std::size_t bytes : std::initializer_list<std::size_t>{0, 1, 15, 16, 100, 4'161, 5'000}) {
        ASSERT_EQ(sendto(stranger, junk.data(), bytes, 0, reinterpret_cast<const sockaddr*>(&to), length),
                  static_cast<ssize_t>(bytes));
    }
    ::close(stranger);
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(receive(1).empty());
        if (peer().counters().of(UringCounter::TooLong) == 2) {
            break;
        }
    }
    EXPECT_EQ(peer().counters().of(UringCounter::TooShort), 3U);
    EXPECT_EQ(peer().counters().of(UringCounter::TooLong), 2U);
    EXPECT_EQ(peer().counters().of(UringCounter::BadIcrc), 2U);
    EXPECT_EQ(peer().buffers_in_use(), 0U);
}

TEST_P(UringPortTest, ThereIsNoPathToAnAddressOfTheOtherFamily) {
    const auto other = net::IpAddress::parse(path->is_v4() ? "fd00::1" : "10.0.0.1").value();
    EXPECT_EQ(here->open_path({here->local_address(), other, 0, 0}, now), nullptr);
}

TEST_P(UringPortTest, WhatIsSentToAGroupReachesAllWhoJoinedItTheSenderToo) {
    const auto group = net::IpAddress::parse(path->is_v4() ? "239.7.7.7" : "ff02::7:7").value();
    const auto other_family = net::IpAddress::parse(path->is_v4() ? "ff02::7:7" : "239.7.7.7").value();
    EXPECT_FALSE(here->join(other_family).ok());
    EXPECT_FALSE(here->join(peer().local_address()).ok());
    path = here->open_path({here->local_address(), group, 0, 0}, now);
    const Status joined = here->join(group);
    ASSERT_TRUE(joined.ok()) << joined.error().text();
    if (there != nullptr) {
        ASSERT_TRUE(there->join(group).ok());
    }
    EXPECT_TRUE(here->loops_groups());
    const std::vector<std::size_t> lengths(20, 68);
    send(lengths);
    if (here->counters().of(UringCounter::SendFailed) != 0) {
        GTEST_SKIP() << "there is no route to IPv6 groups by the loopback";
    }
    peer().wait(seconds(2), -1);
    std::vector<PacketRef> got = receive(lengths.size());
    ASSERT_EQ(got.size(), lengths.size());
    EXPECT_EQ(got[0].path->key().local, group);
    EXPECT_EQ(got[0].path->key().remote, here->local_address());
    if (there != nullptr) {
        std::array<PacketRef, 64> own;
        std::size_t count = 0;
        for (int tries = 0; tries < 2000 && count < lengths.size(); ++tries) {
            count += here->receive_burst(std::span(own).subspan(count), now);
        }
        EXPECT_EQ(count, lengths.size());
        here->release_burst(std::span(own).first(count));
    }
    expect_whole(got, lengths);
    peer().leave(group);
    send(lengths);
    EXPECT_TRUE(there == nullptr || receive(1).empty());
}

TEST(UringPort, GroupsHaveALimit) {
    UringPortConfig config;
    config.local = net::IpAddress::parse(test::loopback(3)).value();
    config.udp_port = kPort;
    const auto port = UringPort::open(config).value();
    std::uint32_t joined = 0;
    while (joined < 100 && port->join(net::IpAddress::from_v4(0xef000001 + joined)).ok()) {
        ++joined;
    }
    EXPECT_EQ(joined, 16U);
}

INSTANTIATE_TEST_SUITE_P(Modes, UringPortTest, testing::ValuesIn(kSetups), name_of);

TEST(UringPort, WhatCannotBeBoundIsNamedWithARemedy) {
    UringPortConfig config;
    config.local = net::IpAddress::parse("192.0.2.77").value();
    auto opened = UringPort::open(config);
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().text().find("192.0.2.77"), std::string::npos);
    EXPECT_NE(opened.error().remedy.find("address of this machine"), std::string::npos);
    config.local = net::IpAddress::parse(test::loopback(3)).value();
    config.udp_port = kPort;
    const auto first = UringPort::open(config);
    ASSERT_TRUE(first.ok());
    const auto second = UringPort::open(config);
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.error().remedy.find("another process"), std::string::npos);
}

// While all its buffers are on their way out, a port receives into batches only: users that keep packets must not take
// the last one.
TEST(UringPort, SaysWhenReceivedBuffersAreNotToBeKept) {
    UringPortConfig config;
    config.local = net::IpAddress::parse("127.0.0.7").value();
    config.udp_port = kPort;
    config.buffers = 4;
    config.batches = 4;
    const auto port = UringPort::open(config).value();
    std::array<PacketRef, 4> own;
    ASSERT_EQ(port->allocate_burst(own), own.size());
    std::vector<PacketRef> kept;
    config.local = net::IpAddress::parse("127.0.0.8").value();
    const auto from = UringPort::open(config).value();
    Path* const path = from->open_path({config.local, port->local_address(), 0, 0}, {});
    for (int i = 0; i < 10; ++i) {
        TxPacket packet;
        ASSERT_EQ(from->allocate_burst({&packet.packet, 1}), 1U);
        packet.packet.path = path;
        packet.packet.len = 2'000;
        ASSERT_EQ(from->transmit_burst({&packet, 1}, {}), 1U);
        from->wait({}, -1);
        PacketRef got;
        std::size_t count = 0;
        for (int tries = 0; tries < 1'000 && count == 0; ++tries) {
            count = port->receive_burst({&got, 1}, {});
        }
        ASSERT_EQ(count, 1U) << i;
        if (port->has_spare_buffers()) {
            kept.push_back(got);
        } else {
            port->release_burst({&got, 1});
        }
    }
    EXPECT_EQ(kept.size(), 2U);
    port->release_burst(kept);
    port->release_burst(own);
}

TEST(UringPort, ACaptureHoldsFramesThatTheFrameJudgeAccepts) {
    const std::string file = testing::TempDir() + "cairn_uring_" + std::to_string(::getpid()) + ".pcap";
    {
        UringPortConfig config;
        config.local = net::IpAddress::parse(test::loopback(4)).value();
        config.pcap = file;
        auto port = UringPort::open(config).value().release();
        std::unique_ptr<UringPort> owner(port);
        Path* path = port->open_path({config.local, config.local, 0, 0}, {});
        std::array<PacketRef, 5> buffers;
        ASSERT_EQ(port->allocate_burst(buffers), 5U);
        std::array<TxPacket, 5> packets;
        for (std::size_t i = 0; i < 5; ++i) {
            std::memset(buffers[i].data, 0x64, 96);
            packets[i].packet = buffers[i];
            packets[i].packet.path = path;
            packets[i].packet.len = 100;
        }
        ASSERT_EQ(port->transmit_burst(packets, {}), 5U);
        port->wait({}, -1);
        EXPECT_EQ(test::read_pcap(file).size(), 5U) << "what left";
        std::array<PacketRef, 8> got;
        std::size_t count = 0;
        for (int tries = 0; tries < 1000 && count < 5; ++tries) {
            count += port->receive_burst(std::span(got).subspan(count), {});
        }
        ASSERT_EQ(count, 5U);
        EXPECT_EQ(test::read_pcap(file).size(), 10U) << "while the port goes on";
        port->release_burst(std::span(got).first(count));
    }
    const std::vector<test::Frame> frames = test::read_pcap(file);
    ::unlink(file.c_str());
    ASSERT_EQ(frames.size(), 10U) << "sent and received";
    for (const test::Frame& frame : frames) {
        const ParsedFrame parsed = parse_frame(frame);
        ASSERT_TRUE(parsed.ok());
        EXPECT_EQ(icrc_of_frame(parsed.value()), carried_icrc(parsed.value()));
    }
}

}  // namespace
}  // namespace cairn::port
