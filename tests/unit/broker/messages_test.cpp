// The messages of programs and their broker: each one is parsed as it was sent, and other bytes are refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/broker/message_bytes.hpp"

namespace cairn::broker {
namespace {

const Bytes kDatagram{1, 2, 3, 4, 5, 6, 7};

Will a_will() {
    Will will{0x123401, net::IpAddress::from_v4(0x7f000003), {}};
    for (std::size_t i = 0; i < will.mad.size(); ++i) {
        will.mad[i] = static_cast<std::uint8_t>(i * 7);
    }
    return will;
}

std::vector<Message> all_kinds() {
    Stray stray;
    stray.remote = net::IpAddress::from_v4(0x7f000002);
    stray.udp_source_port = 4791;
    stray.index = 7;
    stray.ecn = 3;
    stray.bytes = kDatagram;
    return {Join{},
            Rejoin{Slot{3}, 4},
            Leave{},
            Lent{Slot{255}, 256},
            Lent{Slot{1}, 0},
            Sockets{64},
            Sockets{1},
            Refused{Refusal::AnotherUser},
            Refused{Refusal::NoResources},
            Message{stray},
            Manage{},
            Claim{7, wire::ServiceId{0x0106'1f90}, true},
            Claim{0, wire::ServiceId{1}, false},
            Claimed{7, wire::ServiceId{0x0106'1f90}, true},
            Claimed{8, wire::ServiceId{}, false},
            Release{wire::ServiceId{0x0106'1f90}},
            Message{a_will()},
            Revoke{0xabcd},
            Look{},
            Counted{Counter::Lent, ~std::uint64_t{0}},
            Counted{Counter::Hidden, 1}};
}

bool same(const Message& left, const Message& right) {
    if (left.index() != right.index()) {
        return false;
    }
    if (const Stray* const one = std::get_if<Stray>(&left)) {
        const Stray& other = std::get<Stray>(right);
        return one->remote == other.remote && one->udp_source_port == other.udp_source_port &&
               one->index == other.index && one->ecn == other.ecn &&
               std::equal(one->bytes.begin(), one->bytes.end(), other.bytes.begin(), other.bytes.end());
    }
    return std::visit(
        [&right]<class Said>(const Said& said) {
            if constexpr (std::is_same_v<Said, Stray>) {
                return false;
            } else {
                return said == std::get<Said>(right);
            }
        },
        left);
}

TEST(BrokerMessages, EachComesThrough) {
    for (const Message& message : all_kinds()) {
        const Bytes bytes = bytes_of(message);
        const std::optional<Message> read = parse_message(bytes);
        ASSERT_TRUE(read.has_value()) << message.index();
        EXPECT_TRUE(same(*read, message)) << message.index();
    }
}

TEST(BrokerMessages, StandInTheseBytes) {
    EXPECT_EQ(bytes_of(Rejoin{Slot{3}, 0x104 - 4}), (Bytes{'C', 'r', 'n', 'B', 1, 1, 0, 0, 3, 0, 1, 0}));
    EXPECT_EQ(bytes_of(Refused{Refusal::Full}), (Bytes{'C', 'r', 'n', 'B', 1, 5, 0, 0, 2}));
}

TEST(BrokerMessages, AreRefusedShorterAndLonger) {
    for (const Message& message : all_kinds()) {
        Bytes bytes = bytes_of(message);
        for (std::size_t length = 0; length < bytes.size(); ++length) {
            EXPECT_FALSE(parse_message(std::span(bytes).first(length)).has_value()) << message.index() << length;
        }
        bytes.push_back(0);
        EXPECT_FALSE(parse_message(bytes).has_value()) << message.index();
    }
}

TEST(BrokerMessages, AreOfThisVersionAndOfAKnownKind) {
    const Bytes sound = bytes_of(Join{});
    for (std::size_t at = 0; at < 8; ++at) {
        Bytes bytes = sound;
        bytes[at] = 0xee;
        EXPECT_FALSE(parse_message(bytes).has_value()) << at;
    }
}

TEST(BrokerMessages, NameSlotsThatThereAre) {
    const auto with = [](const Message& message, std::size_t at, std::uint8_t octet) {
        Bytes bytes = bytes_of(message);
        bytes[at] = octet;
        return parse_message(bytes).has_value();
    };
    EXPECT_FALSE(with(Rejoin{Slot{3}, 4}, 8, 0));   // the broker's own
    EXPECT_FALSE(with(Rejoin{Slot{3}, 4}, 8, 4));   // more than the sockets
    EXPECT_FALSE(with(Rejoin{Slot{3}, 4}, 9, 1));   // a byte that is zero
    EXPECT_FALSE(with(Rejoin{Slot{3}, 4}, 10, 2));  // more than there may be
    EXPECT_FALSE(with(Lent{Slot{3}, 4}, 8, 0));
    EXPECT_FALSE(with(Lent{Slot{3}, 4}, 8, 4));
    EXPECT_FALSE(with(Lent{Slot{3}, 4}, 10, 2));
    EXPECT_FALSE(with(Sockets{1}, 9, 0));
    EXPECT_FALSE(with(Sockets{1}, 9, 65));
    EXPECT_FALSE(with(Claim{}, 8 + 12, 2));
    EXPECT_FALSE(with(Claim{}, 8 + 13, 1));
    EXPECT_FALSE(with(Claimed{}, 8 + 12, 2));
    EXPECT_FALSE(with(Claimed{}, 8 + 13, 1));
    EXPECT_FALSE(with(Refused{Refusal::Full}, 8, 5));
    EXPECT_FALSE(with(Counted{}, 8, static_cast<std::uint8_t>(Counter::Count)));
    EXPECT_TRUE(with(Counted{}, 8, static_cast<std::uint8_t>(Counter::Count) - 1));
    EXPECT_TRUE(with(Refused{Refusal::Full}, 8, 4));
}

TEST(BrokerMessages, CarryADatagramOfAnyLengthThatAPortTakes) {
    const Bytes largest(port::kMaxUdpPayloadBytes, 0x5a);
    Stray stray;
    stray.bytes = largest;
    Bytes bytes = bytes_of(stray);
    EXPECT_TRUE(parse_message(bytes).has_value());
    bytes.push_back(0x5a);
    const std::size_t length_at = 8 + 20;
    bytes[length_at + 1] = static_cast<std::uint8_t>(bytes[length_at + 1] + 1);
    EXPECT_FALSE(parse_message(bytes).has_value());
    stray.bytes = {};
    Bytes empty = bytes_of(stray);
    EXPECT_TRUE(parse_message(empty).has_value());
    empty[8 + 22] = 4;  // an ECN of three bits
    EXPECT_FALSE(parse_message(empty).has_value());
    empty[8 + 22] = 0;
    empty[8 + 23] = 1;
    EXPECT_FALSE(parse_message(empty).has_value());
}

}  // namespace
}  // namespace cairn::broker
