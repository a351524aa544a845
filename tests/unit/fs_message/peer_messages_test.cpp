// Questions of shards to each other as bytes: written messages are parsed, and other bytes are refused.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fs/message/peers.hpp"
#include "fs/rules/names.hpp"

namespace cairn::fs {
namespace {

using PeerBytes = std::vector<std::uint8_t>;

constexpr FileId kPeerFile{0x0102030405060708, 0x1112131415161718};
constexpr FileId kPeerOther{0x2122232425262728, 0x3132333435363738};
constexpr StepId kStep{0x41424344, 0x51525354};
constexpr std::uint32_t kPeerHeadBytes = 1 + 1 + 8;
constexpr std::uint64_t kPeerNumber = 0x6162636465666768;

// A request of each kind, and the lengths of its fields.
struct PeerSample {
    PeerRequest request;
    std::uint32_t bytes;
};
std::vector<PeerSample> peer_samples() {
    const Who who{1000, 100, "ggggGGGG"};
    return {{LendRequest{kPeerFile}, 16},
            {RecallRequest{kPeerFile}, 16},
            {TouchRequest{kPeerFile, -5}, 24},
            {PeerStatRequest{kPeerFile}, 16},
            {CountRequest{kStep, kPeerFile, true}, 8 + 16 + 1},
            {CutRequest{kPeerFile, 1, 2, 3}, 16 + 24},
            {RemoveDirectoryRequest{kStep, kPeerFile, 4, 5, 6, who}, 8 + 16 + 12 + 8 + 10},
            {PlaceRequest{kStep, kPeerFile, kPeerOther, 7, true, "name", who}, 8 + 32 + 4 + 1 + 6 + 8 + 10},
            {ParentRequest{kPeerFile}, 16},
            {SetParentRequest{kPeerFile, kPeerOther}, 32},
            {MoveTurnRequest{MoveTurnRequest::What::EndEarly, 8}, 1 + 8}};
}

PeerBytes peer_bytes(const PeerRequest& request, std::uint64_t number = kPeerNumber) {
    PeerBytes bytes(kMostPeerBytes);
    bytes.resize(put_peer_request(bytes, number, request));
    return bytes;
}

PeerBytes peer_answer_bytes(const PeerAnswer& answer, std::uint64_t number = kPeerNumber) {
    PeerBytes bytes(kMostPeerBytes);
    bytes.resize(put_peer_answer(bytes, number, answer));
    return bytes;
}

PeerAnswer sample_answer() {
    return {ENOTEMPTY, true, {kPeerFile, 0100644, 1, 2, 3, 4, 5, -6, -7, -8, -9}};
}

void refuses_other_lengths(PeerBytes bytes) {
    for (std::size_t length = 0; length != bytes.size(); ++length) {
        EXPECT_FALSE(parse_peer_message(std::span(bytes).first(length))) << length;
    }
    bytes.push_back(0);
    EXPECT_FALSE(parse_peer_message(bytes));
}

TEST(PeerMessages, RequestsAreReadAsTheyWereWritten) {
    ASSERT_EQ(peer_samples().size(), std::variant_size_v<PeerRequest>);
    for (const PeerSample& sample : peer_samples()) {
        SCOPED_TRACE(sample.request.index());
        const PeerBytes bytes = peer_bytes(sample.request);
        ASSERT_EQ(bytes.size(), kPeerHeadBytes + sample.bytes);
        const std::optional<PeerMessage> parsed = parse_peer_message(bytes);
        ASSERT_TRUE(parsed.has_value());
        EXPECT_EQ(parsed->number, kPeerNumber);
        const auto* const request = std::get_if<PeerRequest>(&parsed->what);
        ASSERT_NE(request, nullptr);
        EXPECT_EQ(request->index(), sample.request.index());
        EXPECT_EQ(peer_bytes(*request, parsed->number), bytes);
        refuses_other_lengths(bytes);
        for (std::size_t length = 0; length != bytes.size(); ++length) {
            PeerBytes room(length);
            EXPECT_EQ(put_peer_request(room, kPeerNumber, sample.request), 0U);
        }
    }
}

TEST(PeerMessages, AnswersAreReadAsTheyWereWritten) {
    const PeerBytes bytes = peer_answer_bytes(sample_answer());
    ASSERT_EQ(bytes.size(), kPeerHeadBytes + 4 + 1 + 80);
    const std::optional<PeerMessage> parsed = parse_peer_message(bytes);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->number, kPeerNumber);
    const auto* const answer = std::get_if<PeerAnswer>(&parsed->what);
    ASSERT_NE(answer, nullptr);
    EXPECT_EQ(answer->error, ENOTEMPTY);
    EXPECT_TRUE(answer->flag);
    EXPECT_EQ(answer->attributes.id, kPeerFile);
    EXPECT_EQ(peer_answer_bytes(*answer, parsed->number), bytes);
    refuses_other_lengths(bytes);
}

TEST(PeerMessages, HaveTheirFieldsInTheOrderOfTheFormat) {
    EXPECT_EQ(peer_bytes(CountRequest{{1, 2}, {3, 4}, true}, 5),
              (PeerBytes{1, 4, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0,
                         3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1}));
    const PeerBytes answer = peer_answer_bytes({6, true}, 5);
    EXPECT_EQ(PeerBytes(answer.begin(), answer.begin() + 15),
              (PeerBytes{1, 255, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 1}));
}

TEST(PeerMessages, OfAnotherVersionOrKindAreRefused) {
    for (const PeerBytes& sound : {peer_bytes(LendRequest{kPeerFile}), peer_answer_bytes(sample_answer())}) {
        for (unsigned value = 0; value != 256; ++value) {
            PeerBytes bytes = sound;
            bytes[0] = static_cast<std::uint8_t>(value);
            EXPECT_EQ(parse_peer_message(bytes).has_value(), value == 1);
            bytes = sound;
            bytes[1] = static_cast<std::uint8_t>(value);
            const std::optional<PeerMessage> parsed = parse_peer_message(bytes);
            if (parsed && value != 255) {
                EXPECT_EQ(std::get<PeerRequest>(parsed->what).index(), value);
            }
            EXPECT_FALSE(parsed && value != 255 && value >= peer_samples().size());
        }
    }
}

TEST(PeerMessages, FitWithTheLongestNamesAndAllGroups) {
    const std::vector<std::uint32_t> groups(2 * kMostGroups, 7);
    const Who who = who_of({1, 2, groups});
    EXPECT_EQ(who.groups.size(), kMostGroups * 4);
    const std::string name(kLongestName, 'n');
    EXPECT_FALSE(peer_bytes(PlaceRequest{kStep, kPeerFile, kPeerOther, 0, true, name, who}).empty());
    EXPECT_FALSE(peer_bytes(RemoveDirectoryRequest{kStep, kPeerFile, 0, 0, 0, who}).empty());
}

TEST(PeerMessages, CredentialsAreThoseThatWereTold) {
    const std::vector<std::uint32_t> groups{7, 0xfffffffe, 9};
    const Who who = who_of({1000, 100, groups});
    std::vector<std::uint32_t> read_groups;
    const Credentials read = credentials_of(who, read_groups);
    EXPECT_EQ(read.uid, 1000U);
    EXPECT_EQ(read.gid, 100U);
    EXPECT_TRUE(std::ranges::equal(read.groups, groups));
    const Credentials none = credentials_of(who_of({5, 6, {}}), read_groups);
    EXPECT_TRUE(none.groups.empty());
    EXPECT_EQ(none.uid, 5U);
}

}  // namespace
}  // namespace cairn::fs
