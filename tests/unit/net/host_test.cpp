// Two stations on a link: one answers the questions of the other; wrong frames are counted by their reason.
#include "lib/net/host.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "lib/net/arp.hpp"
#include "lib/net/icmp.hpp"
#include "lib/net/nd.hpp"

namespace cairn::net {
namespace {

using Frame = std::vector<std::uint8_t>;

constexpr MacAddress kMacA{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kMacB{{2, 0, 0, 0, 0, 2}};

struct Link {
    IpAddress a_address;
    IpAddress b_address;
};

class HostTest : public testing::TestWithParam<bool> {
protected:
    HostTest()
        : a_ip(IpAddress::parse(GetParam() ? "10.1.0.1" : "fd00::1").value()),
          b_ip(IpAddress::parse(GetParam() ? "10.1.0.2" : "fd00::2").value()),
          a({kMacA, a_ip, 0, {}}),
          b({kMacB, b_ip, 0, {}}) {}

    Frame question(Host& host) {
        Frame out(2048, 0xa5);
        out.resize(host.poll_question(now, out));
        return out;
    }
    Frame answer(Host& host, const Frame& frame) {
        Frame out(2048, 0xa5);
        out.resize(host.on_frame(frame, now, out));
        return out;
    }
    Frame ping(std::size_t data_bytes) {
        const bool v4 = GetParam();
        Frame frame(14 + (v4 ? 20U : 40U) + 8 + data_bytes, 0x33);
        emit_at(frame.data(), EthernetHeader{kMacB, kMacA, v4 ? kEtherTypeIpv4 : kEtherTypeIpv6});
        const auto message_bytes = static_cast<std::uint16_t>(8 + data_bytes);
        ChecksumSum sum;
        if (v4) {
            Ipv4Header ip;
            ip.total_bytes = static_cast<std::uint16_t>(20 + message_bytes);
            ip.protocol = kProtocolIcmp;
            ip.source = a_ip;
            ip.destination = b_ip;
            emit_at(frame.data() + 14, ip);
        } else {
            Ipv6Header ip;
            ip.payload_bytes = message_bytes;
            ip.next_header = kProtocolIcmpV6;
            ip.source = a_ip;
            ip.destination = b_ip;
            emit_at(frame.data() + 14, ip);
            sum.add_pseudo_header(a_ip, b_ip, kProtocolIcmpV6, message_bytes);
        }
        IcmpEcho echo{v4 ? kIcmpEchoRequest : kIcmpV6EchoRequest, 0, 7, 9};
        std::uint8_t* message = frame.data() + frame.size() - message_bytes;
        emit_at(message, echo);
        sum.add({message, message_bytes});
        echo.checksum = sum.checksum();
        emit_at(message, echo);
        return frame;
    }

    Instant now = Instant{} + seconds(10);
    IpAddress a_ip;
    IpAddress b_ip;
    Host a;
    Host b;
};

TEST_P(HostTest, AQuestionIsAnsweredAndTheAnswerUnderstood) {
    EXPECT_EQ(a.resolve(b_ip, now), std::nullopt);
    const Frame asked = question(a);
    ASSERT_FALSE(asked.empty());
    EXPECT_TRUE(question(a).empty());
    const Frame answered = answer(b, asked);
    ASSERT_FALSE(answered.empty());
    EXPECT_TRUE(answer(a, answered).empty());
    EXPECT_EQ(a.resolve(b_ip, now), kMacB);
    const auto change = a.poll_change();
    ASSERT_TRUE(change.has_value());
    EXPECT_EQ(change->address, b_ip);
    EXPECT_EQ(change->mac, kMacB);
    // The asked one learns the asker's address from the question itself.
    const auto named = b.poll_name();
    ASSERT_TRUE(named.has_value());
    EXPECT_EQ(named->mac, kMacA);
    EXPECT_FALSE(b.poll_name().has_value());
    EXPECT_EQ(a.drops().total() + b.drops().total(), 0U);
}

TEST_P(HostTest, AStationThatCameBackWithAnotherMacIsNamedByItsOwnQuestion) {
    Host again({{{2, 0, 0, 0, 0, 77}}, a_ip, 0, {}});
    (void)again.resolve(b_ip, now);
    (void)answer(b, question(again));
    const auto named = b.poll_name();
    ASSERT_TRUE(named.has_value());
    EXPECT_EQ(named->address, a_ip);
    EXPECT_EQ(named->mac, (MacAddress{{2, 0, 0, 0, 0, 77}}));
}

TEST_P(HostTest, APingIsAnsweredWithItsData) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{56}, std::size_t{1400}}) {
        const Frame sent = ping(bytes);
        const Frame back = answer(b, sent);
        ASSERT_GE(back.size(), sent.size());
        EXPECT_TRUE(std::equal(back.begin(), back.begin() + 6, sent.begin() + 6));
        const std::size_t message = sent.size() - bytes - 8;
        ChecksumSum pseudo;
        if (!GetParam()) {
            pseudo.add_pseudo_header(b_ip, a_ip, kProtocolIcmpV6, static_cast<std::uint32_t>(8 + bytes));
        }
        const auto echo = IcmpEcho::parse(std::span(back).subspan(message, 8 + bytes), pseudo);
        ASSERT_TRUE(echo.ok());
        EXPECT_EQ(echo.value().type, GetParam() ? kIcmpEchoReply : kIcmpV6EchoReply);
        EXPECT_EQ(echo.value().id, 7);
        EXPECT_TRUE(std::equal(sent.begin() + static_cast<std::ptrdiff_t>(message) + 8, sent.end(),
                               back.begin() + static_cast<std::ptrdiff_t>(message) + 8));
    }
}

TEST_P(HostTest, EveryTruncationIsCountedAndNeverAnswered) {
    (void)a.resolve(b_ip, now);
    for (const Frame& whole : {question(a), ping(56)}) {
        // A frame may be padded: only a cut of the message counts.
        const std::size_t used = GetParam() && whole.size() == Host::kLeastFrameBytes ? 42 : whole.size();
        for (std::size_t bytes = 0; bytes < used; ++bytes) {
            const std::uint64_t before = b.drops().total();
            EXPECT_TRUE(answer(b, Frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes))).empty());
            EXPECT_EQ(b.drops().total(), before + 1) << bytes;
        }
    }
}

TEST_P(HostTest, EveryFlippedBitOfAQuestionEitherChangesNothingOrIsNoticed) {
    (void)a.resolve(b_ip, now);
    const Frame whole = question(a);
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        Frame frame = whole;
        frame[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
        const Frame answered = answer(b, frame);  // must not crash; an answer goes to a reachable address
        if (!answered.empty()) {
            EXPECT_EQ(answered[6], kMacB.octets[0]);
        }
    }
}

TEST_P(HostTest, AStrangerWithOurAddressIsAConflict) {
    Host impostor({kMacA, b_ip, 0, {}});
    (void)impostor.resolve(b_ip, now);  // as a station that checks whether the address is free
    EXPECT_TRUE(answer(b, question(impostor)).empty());
    EXPECT_EQ(b.drops().of(Drop::AddressConflict), 1U);
    EXPECT_FALSE(b.poll_change().has_value());
    EXPECT_FALSE(b.poll_name().has_value());
}

TEST_P(HostTest, WhatConfirmsANeighbourIsNoNewsOfIt) {
    (void)a.resolve(b_ip, now);
    const Frame answered = answer(b, question(a));
    (void)answer(a, answered);
    ASSERT_TRUE(a.poll_change().has_value());
    (void)answer(a, answered);
    EXPECT_FALSE(a.poll_change().has_value());
    EXPECT_FALSE(a.poll_name().has_value());
}

TEST_P(HostTest, WithoutRoomForAnAnswerItStillLearns) {
    (void)a.resolve(b_ip, now);
    const Frame answered = answer(b, question(a));
    EXPECT_EQ(a.on_frame(answered, now, {}), 0U);
    EXPECT_EQ(a.resolve(b_ip, now), kMacB);
    (void)b.resolve(a_ip, now);
    EXPECT_EQ(a.on_frame(question(b), now, {}), 0U);
    EXPECT_EQ(a.drops().of(Drop::NoBuffer), 1U);
}

TEST_P(HostTest, OnlyNeighbourMessagesMayTellEveryWorkerSomething) {
    (void)a.resolve(b_ip, now);
    const Frame asked = question(a);
    EXPECT_TRUE(is_neighbour_message(asked));
    EXPECT_TRUE(is_neighbour_message(answer(b, asked)));
    EXPECT_FALSE(is_neighbour_message(ping(56)));
    EXPECT_FALSE(is_neighbour_message(Frame(asked.begin(), asked.begin() + 13)));
    EXPECT_FALSE(is_neighbour_message(Frame(60, 0)));
}

TEST_P(HostTest, APingThatDoesNotFitTheBufferIsCounted) {
    Frame small(60);
    EXPECT_EQ(b.on_frame(ping(1400), now, small), 0U);
    EXPECT_EQ(b.drops().of(Drop::NoBuffer), 1U);
}

INSTANTIATE_TEST_SUITE_P(BothFamilies, HostTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& param) { return param.param ? "V4" : "V6"; });

TEST(HostNextHop, IsTheGatewayForWhatIsNotOnTheLink) {
    const IpAddress gateway = IpAddress::parse("10.1.0.254").value();
    Host host({kMacA, IpAddress::parse("10.1.0.1").value(), 24, gateway});
    const IpAddress near = IpAddress::parse("10.1.0.77").value();
    const IpAddress far = IpAddress::parse("10.2.0.1").value();
    EXPECT_EQ(host.next_hop(near), near);
    EXPECT_EQ(host.next_hop(far), gateway);
    EXPECT_EQ(Host({kMacA, near, 0, {}}).next_hop(far), far);
}

TEST(HostNextHop, TheGatewaysMacIsKnownFromWhenItFirstNamesItself) {
    const IpAddress gateway = IpAddress::parse("10.1.0.254").value();
    const IpAddress far = IpAddress::parse("10.2.0.1").value();
    const Instant now{};
    Host host({kMacA, IpAddress::parse("10.1.0.1").value(), 24, gateway});
    Host router({kMacB, gateway, 24, {}});
    EXPECT_EQ(host.known(far), std::nullopt);
    (void)router.resolve(IpAddress::parse("10.1.0.1").value(), now);
    Frame asked(2048);
    asked.resize(router.poll_question(now, asked));
    (void)host.on_frame(asked, now, {});
    EXPECT_EQ(host.known(far), kMacB);
    const auto change = host.poll_change();
    ASSERT_TRUE(change.has_value());
    EXPECT_EQ(change->address, gateway);
    (void)host.on_frame(asked, now, {});
    EXPECT_FALSE(host.poll_change().has_value() || host.poll_name().has_value());
}

// Makes a solicitation of `asker` for `asked`, with its link-layer address or without.
Frame solicitation(const IpAddress& asker, const IpAddress& asked, bool with_option) {
    const std::size_t bytes = with_option ? 32 : 24;
    Frame frame(54 + bytes, 0);
    emit_at(frame.data(), EthernetHeader{kMacB, kMacA, kEtherTypeIpv6});
    Ipv6Header ip;
    ip.payload_bytes = static_cast<std::uint16_t>(bytes);
    ip.next_header = kProtocolIcmpV6;
    ip.hop_limit = kNeighbourHopLimit;
    ip.source = asker;
    ip.destination = asked;
    emit_at(frame.data() + 14, ip);
    NeighbourMessage message;
    message.target = asked;
    message.mac = kMacA;
    std::array<std::uint8_t, 32> whole{};
    emit_at(whole.data(), message);
    ChecksumSum sum;
    sum.add_pseudo_header(asker, asked, kProtocolIcmpV6, static_cast<std::uint32_t>(bytes));
    sum.add(std::span(whole).first(bytes));
    message.checksum = sum.checksum();
    emit_at(whole.data(), message);
    std::copy_n(whole.begin(), bytes, frame.begin() + 54);
    return frame;
}

TEST(HostSolicited, WhoAsksIsAnsweredAloneWithOrWithoutItsLinkLayerAddress) {
    const IpAddress asker = IpAddress::parse("fd00::1").value();
    const IpAddress asked = IpAddress::parse("fd00::2").value();
    for (const bool with_option : {true, false}) {
        Host host({kMacB, asked, 0, {}});
        Frame out(2048);
        out.resize(host.on_frame(solicitation(asker, asked, with_option), Instant{}, out));
        ASSERT_FALSE(out.empty());
        EXPECT_EQ(EthernetHeader::parse(out).value().destination, kMacA);
        const Ipv6Header ip = Ipv6Header::parse(std::span(out).subspan(14)).value();
        EXPECT_EQ(ip.destination, asker);
        const auto message = NeighbourMessage::parse(ip, std::span(out).subspan(54));
        ASSERT_TRUE(message.ok());
        EXPECT_TRUE(message.value().solicited && message.value().advertisement);
    }
}

TEST(HostHostile, GroupSendersFragmentsAndForeignProtocolsAreCounted) {
    Host host({kMacB, IpAddress::parse("10.1.0.2").value(), 0, {}});
    Frame out(2048);
    Frame frame(60, 0);
    emit_at(frame.data(), EthernetHeader{kMacB, {{1, 0, 0, 0, 0, 1}}, kEtherTypeArp});
    EXPECT_EQ(host.on_frame(frame, Instant{}, out), 0U);
    EXPECT_EQ(host.drops().of(Drop::BadAddress), 1U);
    emit_at(frame.data(), EthernetHeader{{{2, 9, 9, 9, 9, 9}}, kMacA, kEtherTypeArp});
    EXPECT_EQ(host.on_frame(frame, Instant{}, out), 0U);
    EXPECT_EQ(host.drops().of(Drop::NotForUs), 1U);
    emit_at(frame.data(), EthernetHeader{kMacB, kMacA, 0x88cc});
    EXPECT_EQ(host.on_frame(frame, Instant{}, out), 0U);
    EXPECT_EQ(host.drops().of(Drop::Unsupported), 1U);
    Ipv4Header ip;
    ip.total_bytes = 46;
    ip.protocol = kProtocolIcmp;
    ip.flags_and_offset = 0x2000;
    ip.source = IpAddress::parse("10.1.0.1").value();
    ip.destination = IpAddress::parse("10.1.0.2").value();
    emit_at(frame.data(), EthernetHeader{kMacB, kMacA, kEtherTypeIpv4});
    emit_at(frame.data() + 14, ip);
    EXPECT_EQ(host.on_frame(frame, Instant{}, out), 0U);
    EXPECT_EQ(host.drops().of(Drop::Fragment), 1U);
}

}  // namespace
}  // namespace cairn::net
