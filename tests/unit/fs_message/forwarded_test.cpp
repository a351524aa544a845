// Calls that a gateway forwards, and the greetings of shards.
#include "fs/message/forwarded.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "fs/message/peer_hello.hpp"

namespace cairn::fs {
namespace {

std::vector<std::uint8_t> bytes_of_request(const Request& request) {
    std::vector<std::uint8_t> bytes(4608);
    bytes.resize(put_request(bytes, {.shard = 1, .sequence = 7}, request));
    return bytes;
}

std::vector<std::uint8_t> message_of(const ForwardedCall& call) {
    std::vector<std::uint8_t> bytes(kMostForwardedBytes);
    bytes.resize(put_forwarded(bytes, call));
    return bytes;
}

// A call with this request, and data in the message.
struct Handed {
    explicit Handed(const Request& request, std::string_view data = {}) : bytes(bytes_of_request(request)) {
        call.client = 4711;
        call.slot = 1023;
        call.who = {1000, 100, groups};
        call.request = text_of(bytes);
        call.data = data;
    }
    [[nodiscard]] bool is_taken() const { return parse_forwarded(message_of(call)).has_value(); }

    std::string_view groups{"\1\0\0\0\2\0\0\0", 8};
    std::vector<std::uint8_t> bytes;
    ForwardedCall call{};
};

WriteRequest write_of(std::uint32_t bytes, std::uint32_t at = 0) {
    WriteRequest write;
    write.bytes = bytes;
    write.at = at;
    return write;
}

ReadRequest read_of(std::uint32_t bytes, std::uint32_t at = 0) {
    ReadRequest read;
    read.bytes = bytes;
    read.at = at;
    return read;
}

TEST(ForwardedTest, ACallComesAsItWasSent) {
    const Handed sample(write_of(5), "hello");
    const std::vector<std::uint8_t> bytes = message_of(sample.call);
    const auto parsed = parse_forwarded(bytes);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->call.client, 4711U);
    EXPECT_EQ(parsed->call.slot, 1023U);
    EXPECT_EQ(parsed->call.who.uid, 1000U);
    EXPECT_EQ(parsed->call.who.gid, 100U);
    EXPECT_EQ(parsed->call.who.groups, sample.groups);
    EXPECT_EQ(parsed->call.request, sample.call.request);
    EXPECT_EQ(parsed->call.data, "hello");
    EXPECT_EQ(parsed->data.way, DataWay::Brings);
    EXPECT_EQ(parsed->data.bytes, 5U);
}

TEST(ForwardedTest, EveryTruncationAndEveryTailIsRefused) {
    std::vector<std::uint8_t> bytes = message_of(Handed(write_of(5), "hello").call);
    for (std::size_t length = 0; length != bytes.size(); ++length) {
        EXPECT_FALSE(parse_forwarded(std::span(bytes).first(length)).has_value()) << length;
    }
    bytes.push_back(0);
    EXPECT_FALSE(parse_forwarded(bytes).has_value());
}

TEST(ForwardedTest, DataAreThoseOfTheRequest) {
    EXPECT_FALSE(Handed(write_of(5), "hell").is_taken());
    EXPECT_FALSE(Handed(write_of(4), "hello").is_taken());
    EXPECT_FALSE(Handed(read_of(5), "hello").is_taken());
    EXPECT_FALSE(Handed(StatRequest{}, "hello").is_taken());
    EXPECT_FALSE(Handed(write_of(5, 1), "hello").is_taken());
    EXPECT_FALSE(Handed(read_of(5, 4096)).is_taken());
    EXPECT_TRUE(Handed(read_of(5)).is_taken());
    EXPECT_TRUE(Handed(read_of(kMostForwardedData)).is_taken());
    EXPECT_FALSE(Handed(read_of(kMostForwardedData + 1)).is_taken());
    EXPECT_TRUE(Handed(write_of(kMostInlineBytes + 1)).is_taken());
    EXPECT_FALSE(Handed(write_of(kMostInlineBytes + 1), "hello").is_taken());
    EXPECT_FALSE(Handed(write_of(~0U)).is_taken());
}

TEST(ForwardedTest, HostileNumbersAreRefused) {
    Handed sample{Request(StatRequest{})};
    EXPECT_TRUE(sample.is_taken());
    sample.call.slot = 1024;
    EXPECT_FALSE(sample.is_taken());
    sample.call.slot = 0;
    sample.call.client = 0;
    EXPECT_FALSE(sample.is_taken());
    sample.call.client = 1;
    const std::string many(4 * (kMostGroups + 1), 'x');
    sample.call.who.groups = many;
    EXPECT_FALSE(sample.is_taken());
    sample.call.who.groups = std::string_view(many).substr(0, 4 * kMostGroups);
    EXPECT_TRUE(sample.is_taken());
    sample.call.who.groups = "abc";
    EXPECT_FALSE(sample.is_taken());
    sample.call.who.groups = {};
    sample.call.request = "no request";
    EXPECT_FALSE(sample.is_taken());
}

TEST(ForwardedTest, TheLongestCallFits) {
    CreateRequest longest;
    const std::string name(255, 'n');
    const std::string target(4095, 't');
    longest.name = name;
    longest.target = target;
    Handed sample{Request(longest)};
    const std::string groups(4 * kMostGroups, 'g');
    sample.call.who.groups = groups;
    EXPECT_TRUE(sample.is_taken());
    const std::string data(kMostInlineBytes, 'd');
    Handed write(write_of(kMostInlineBytes), data);
    write.call.who.groups = groups;
    EXPECT_TRUE(write.is_taken());
}

TEST(ForwardedTest, AnAnswerHasNoMoreDataThanWereAskedFor) {
    std::vector<std::uint8_t> bytes(100);
    bytes.resize(put_forwarded_answer(bytes, {"answer", "data"}));
    const auto answer = parse_forwarded_answer(bytes, {DataWay::Takes, 4, 0});
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->answer, "answer");
    EXPECT_EQ(answer->data, "data");
    EXPECT_FALSE(parse_forwarded_answer(bytes, {DataWay::Takes, 3, 0}).has_value());
    EXPECT_FALSE(parse_forwarded_answer(bytes, {DataWay::Takes, kMostInlineBytes + 1, 0}).has_value());
    EXPECT_FALSE(parse_forwarded_answer(bytes, {DataWay::Brings, 4, 0}).has_value());
    EXPECT_FALSE(parse_forwarded_answer(bytes, {}).has_value());
    for (const std::size_t length : {bytes.size() - 1, bytes.size() + 1}) {
        bytes.resize(length);
        EXPECT_FALSE(parse_forwarded_answer(bytes, {DataWay::Takes, 4, 0}).has_value()) << length;
    }
}

TEST(ForwardedTest, WhatShardsSayWhenTheyMeetComesAsItWasSent) {
    PeerProof proof;
    proof.facts = {1, 2, 3, 6, Spread::Koyama, 1U << 20U, 9, 10};
    proof.mac = {11, 12, 13, 14};
    std::vector<std::uint8_t> bytes = peer_bytes_of(proof);
    const auto parsed = parse_peer<PeerProof>(bytes);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->facts.life, 10U);
    EXPECT_EQ(parsed->facts.spread, Spread::Koyama);
    EXPECT_EQ(parsed->mac, proof.mac);
    bytes.push_back(0);
    EXPECT_FALSE(parse_peer<PeerProof>(bytes).has_value());
    EXPECT_FALSE(parse_peer<PeerGreeting>(std::span(bytes).first(3)).has_value());
}

}  // namespace
}  // namespace cairn::fs
