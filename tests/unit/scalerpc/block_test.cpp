// Blocks, entries and control words: written ones are parsed, and other bytes are refused.
#include "rpc/scalerpc/block.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "rpc/scalerpc/entry.hpp"

namespace cairn::scalerpc {
namespace {

std::vector<std::uint8_t> some(std::size_t bytes) {
    std::vector<std::uint8_t> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        made[i] = static_cast<std::uint8_t>(i * 7 + 1);
    }
    return made;
}

TEST(ScalerpcBlock, ARequestIsReadAsItWasWrittenAndOnlyInItsSlice) {
    std::vector<std::uint8_t> block(256);
    for (const std::size_t bytes : {0U, 1U, 32U, 216U, 232U}) {
        const std::vector<std::uint8_t> payload = some(bytes);
        EXPECT_EQ(put_request({9, 5, 777, payload}, 3, block), bytes + sizeof(RawTrailer));
        Request got;
        ASSERT_EQ(read_request(block, 3, 9, got), Look::There);
        EXPECT_EQ(got.type, 5);
        EXPECT_EQ(got.left_us, 777U);
        EXPECT_TRUE(std::equal(payload.begin(), payload.end(), got.payload.begin(), got.payload.end()));
        EXPECT_EQ(read_request(block, 4, 9, got), Look::Absent);
        EXPECT_EQ(read_request(block, 3, 10, got), Look::Absent);
        EXPECT_EQ(read_request(block, kStaged, 9, got), Look::Absent);
        change_epoch(block, 4);
        EXPECT_EQ(read_request(block, 3, 9, got), Look::Absent);
        EXPECT_EQ(read_request(block, 4, 9, got), Look::There);
    }
}

// A valid word alone does not make a request: the remains of an older slice may have the same one.
TEST(ScalerpcBlock, AValidWordOfAnotherSliceIsNoRequest) {
    std::vector<std::uint8_t> block(64);
    (void)put_request({9, 5, 0, {}}, 3, block);
    const Be32 valid{valid_word(8, 11)};
    std::memcpy(block.data() + 60, &valid, sizeof(valid));
    Request got;
    EXPECT_EQ(read_request(block, 8, 11, got), Look::Absent);
    EXPECT_EQ(read_request(std::vector<std::uint8_t>(64), kStaged, 0, got), Look::Absent) << "cleared memory";
}

TEST(ScalerpcBlock, AnAnswerCarriesItsNews) {
    std::vector<std::uint8_t> block(128);
    const std::vector<std::uint8_t> payload = some(40);
    Answer answer{21, Outcome::Answered, {}, payload};
    answer.news = {News::Kind::Grant, 7, 22, {0x123456789abcULL, Rkey{0x4711}}};
    EXPECT_EQ(put_answer(answer, block), 40 + sizeof(RawTrailer) + sizeof(RawGrant));
    Answer got;
    ASSERT_EQ(read_answer(block, 21, got), Look::There);
    EXPECT_EQ(got.news.kind, News::Kind::Grant);
    EXPECT_EQ(got.news.epoch, 7U);
    EXPECT_EQ(got.news.accepted, 22U);
    EXPECT_EQ(got.news.grant.address, 0x123456789abcULL);
    EXPECT_EQ(got.news.grant.rkey, Rkey{0x4711});
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), got.payload.begin(), got.payload.end()));
    add_notice(block, {News::Kind::Notice, 7, 25, {}});
    ASSERT_EQ(read_answer(block, 21, got), Look::There);
    EXPECT_EQ(got.news.kind, News::Kind::Notice);
    EXPECT_EQ(got.news.accepted, 25U);
    EXPECT_TRUE(std::equal(payload.begin(), payload.end(), got.payload.begin(), got.payload.end()));
    EXPECT_EQ(read_answer(block, 21 + 8, got), Look::Absent);
}

// Whatever a peer writes after a valid word, no read leaves the block.
TEST(ScalerpcBlock, NonsenseStaysWithinItsBlock) {
    std::mt19937 random(1);
    std::vector<std::uint8_t> block(128);
    int there = 0;
    int nonsense = 0;
    for (int i = 0; i < 200'000; ++i) {
        for (std::uint8_t& byte : block) {
            byte = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : 0);
        }
        RawTrailer raw{};
        std::memcpy(&raw, block.data() + 104, sizeof(raw));
        raw.sequence.set(5);
        raw.valid.set(valid_word(i % 2 == 0 ? 6 : kAnswer, 5));
        raw.second.set(6);
        std::memcpy(block.data() + 104, &raw, sizeof(raw));
        Request request;
        Answer answer;
        const Look look = i % 2 == 0 ? read_request(block, 6, 5, request) : read_answer(block, 5, answer);
        const std::span<const std::uint8_t> payload = i % 2 == 0 ? request.payload : answer.payload;
        if (look == Look::There) {
            ++there;
            ASSERT_GE(payload.data(), block.data());
            ASSERT_LE(payload.data() + payload.size(), block.data() + 104);
        }
        nonsense += look == Look::Nonsense ? 1 : 0;
    }
    EXPECT_GT(there, 100);
    EXPECT_GT(nonsense, 100);
}

TEST(ScalerpcEntry, OnlySoundEntriesAreRead) {
    const BlockShape shape{256, 4};
    const Entry sound{1000 + 3 * 256, 7, 2, 60, 5};
    const RawEntry raw = sound.raw();
    EXPECT_EQ(Entry::parse(reinterpret_cast<const std::uint8_t*>(&raw)), sound);
    EXPECT_TRUE(sound.is_sound(shape, 1000, 7));
    EXPECT_FALSE(sound.is_sound(shape, 1000, 8));
    EXPECT_FALSE(sound.is_sound(shape, 1256, 7));
    for (Entry bad : {Entry{1768, 7, 5, 60, 5}, Entry{1768, 7, 2, 257, 5}, Entry{1768, 7, 2, 23, 5},
                      Entry{1512, 7, 2, 60, 5}, Entry{1768, 6, 2, 60, 5}}) {
        EXPECT_FALSE(bad.is_sound(shape, 1000, 7));
    }
}

TEST(ScalerpcEntry, AGreetingIsReadAsItWasWrittenAndNoOther) {
    const Hello hello{{1024, 16}, {77, Rkey{5}}, {99, Rkey{6}}};
    RawHello raw = hello.raw();
    const auto parse = [&raw](std::size_t bytes = sizeof(RawHello)) {
        return Hello::parse({reinterpret_cast<const std::uint8_t*>(&raw), bytes});
    };
    ASSERT_TRUE(parse().has_value());
    EXPECT_EQ(parse()->shape, hello.shape);
    EXPECT_EQ(parse()->answers.address, 99U);
    EXPECT_EQ(parse()->staged.rkey, Rkey{5});
    EXPECT_FALSE(parse(sizeof(RawHello) - 1).has_value());
    for (const std::uint8_t log2 : std::array<std::uint8_t, 4>{5, 17, 32, 255}) {
        raw = hello.raw();
        raw.block_log2 = log2;
        EXPECT_FALSE(parse().has_value()) << int{log2};
    }
    for (const std::uint8_t log2 : std::array<std::uint8_t, 2>{7, 32}) {
        raw = hello.raw();
        raw.blocks_log2 = log2;
        EXPECT_FALSE(parse().has_value()) << int{log2};
    }
    raw = hello.raw();
    raw.version = 2;
    EXPECT_FALSE(parse().has_value());
}

TEST(ScalerpcEntry, AControlWordOfAnUnknownKindIsNonsense) {
    const Control control{3, {News::Kind::Notice, 9, 17, {}}};
    RawControl raw = control.raw();
    const auto parse = [&raw] { return Control::parse(reinterpret_cast<const std::uint8_t*>(&raw)); };
    ASSERT_TRUE(parse().has_value());
    EXPECT_EQ(parse()->count, 3U);
    EXPECT_EQ(parse()->news.accepted, 17U);
    raw.kind.set(4);
    EXPECT_FALSE(parse().has_value());
}

}  // namespace
}  // namespace cairn::scalerpc
