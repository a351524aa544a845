// Values as bytes.
#include "rpc/common/codec.hpp"

#include <gtest/gtest.h>

#include "rpc/common/method.hpp"

namespace cairn::rpc {
namespace {

// A plain value with a codec of its own.
struct Key {
    std::uint32_t a;
    std::uint8_t b;
};

}  // namespace

template <>
struct Codec<Key> {
    [[nodiscard]] static std::size_t bytes_of(const Key&) noexcept { return 5; }
    static void put(const Key& key, std::span<std::uint8_t> room) noexcept {
        std::memcpy(room.data(), &key.a, 4);
        room[4] = key.b;
    }
    [[nodiscard]] static std::optional<Key> get(std::span<const std::uint8_t> bytes) noexcept {
        if (bytes.size() != 5) {
            return std::nullopt;
        }
        Key key{0, bytes[4]};
        std::memcpy(&key.a, bytes.data(), 4);
        return key;
    }
};

namespace {

static_assert(!Serialisable<std::string_view> && !Serialisable<bool> && !Serialisable<std::span<std::uint8_t>>);

struct Point {
    std::int16_t x;
    std::int16_t y;
};

TEST(Codec, WhatIsPutIsGot) {
    const Encoded<Point> point{Point{3, -4}};
    EXPECT_EQ(Codec<Point>::get(point.bytes())->y, -4);
    const std::vector<std::uint32_t> list{1, 2, 0xffffffffU};
    EXPECT_EQ(Codec<std::vector<std::uint32_t>>::get(Encoded(list).bytes()), list);
    EXPECT_EQ(Codec<std::string>::get(Encoded(std::string("text")).bytes()), "text");
    EXPECT_EQ(Codec<std::string>::get({}), "");
}

TEST(Codec, APlainValueMayHaveACodecOfItsOwn) {
    const Encoded<Key> key{Key{7, 9}};
    ASSERT_EQ(key.bytes().size(), 5U);
    EXPECT_EQ(Codec<Key>::get(key.bytes())->b, 9);
}

TEST(Codec, BytesOfAnotherSizeAreNoValue) {
    const std::array<std::uint8_t, 9> bytes{};
    EXPECT_FALSE(Codec<Point>::get(std::span(bytes).first(3)).has_value());
    EXPECT_FALSE(Codec<Point>::get(std::span(bytes).first(5)).has_value());
    EXPECT_FALSE(Codec<std::vector<std::uint32_t>>::get(bytes).has_value());
    EXPECT_EQ(Codec<std::vector<std::uint32_t>>::get(std::span(bytes).first(8))->size(), 2U);
}

// An endpoint with room for this many bytes.
struct Endpoint {
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle&, std::uint32_t bytes) {
        return bytes <= room.size() ? std::span(room).first(bytes) : std::span<std::uint8_t>{};
    }
    bool respond(const RequestHandle&, Instant) { return ++answers != 0; }
    std::array<std::uint8_t, 8> room{};
    int answers = 0;
};
struct Answerer final : RequestKeeper {
    void keep(const RequestHandle&) noexcept override {}
    bool drop(const RequestHandle&) noexcept override { return true; }
    bool decline(const RequestHandle&) noexcept override { return true; }
};

TEST(Codec, AnAnswerWithoutRoomIsNotGiven) {
    Endpoint endpoint;
    Answerer keeper;
    const Request<Endpoint> request{endpoint, keeper, {}, 0, {}, {}};
    EXPECT_TRUE(answer(request, std::string(8, 'a')));
    EXPECT_EQ(endpoint.room.back(), 'a');
    EXPECT_FALSE(answer(request, std::string(9, 'b')));
    EXPECT_EQ(endpoint.answers, 1);
}

}  // namespace
}  // namespace cairn::rpc
