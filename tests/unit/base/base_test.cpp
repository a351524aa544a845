// lib/base: big-endian integers, the domain's numbers, Result, time, assertions.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"
#include "lib/base/endian.hpp"
#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/base/types.hpp"

namespace cairn {
namespace {

template <class Field>
std::string octets_of(const Field& field) {
    std::string out(sizeof(field), '\0');
    std::memcpy(out.data(), &field, sizeof(field));
    return out;
}

TEST(ShortMessages, AreCopiedAndClearedToTheByte) {
    constexpr std::size_t kAll = 200;
    for (std::size_t count = 0; count <= kAll - 2; ++count) {
        std::array<std::uint8_t, kAll> from{};
        std::array<std::uint8_t, kAll> to{};
        for (std::size_t i = 0; i < kAll; ++i) {
            from[i] = static_cast<std::uint8_t>(i + 1);
        }
        copy_bytes(to.data() + 1, from.data() + 1, count);
        for (std::size_t i = 0; i < kAll; ++i) {
            ASSERT_EQ(to[i], i != 0 && i <= count ? from[i] : 0) << count;
        }
        clear_bytes(from.data() + 1, count);
        for (std::size_t i = 0; i < kAll; ++i) {
            ASSERT_EQ(from[i], i != 0 && i <= count ? 0 : static_cast<std::uint8_t>(i + 1)) << count;
        }
    }
}

TEST(BigEndian, StandsOnTheWireMostSignificantOctetFirst) {
    EXPECT_EQ(octets_of(Be16{0x0102U}), std::string("\x01\x02"));
    EXPECT_EQ(octets_of(Be24{0x010203U}), std::string("\x01\x02\x03"));
    EXPECT_EQ(octets_of(Be32{0x01020304U}), std::string("\x01\x02\x03\x04"));
    EXPECT_EQ(octets_of(Be48{0x010203040506U}), std::string("\x01\x02\x03\x04\x05\x06"));
    EXPECT_EQ(octets_of(Be64{0x0102030405060708U}), std::string("\x01\x02\x03\x04\x05\x06\x07\x08"));
}

TEST(BigEndian, GivesBackEveryBitOfTheHostValue) {
    for (unsigned bit = 0; bit < 64; ++bit) {
        const std::uint64_t value = std::uint64_t{1} << bit;
        EXPECT_EQ(Be64{value}.get(), value);
        EXPECT_EQ(Be48{value}.get(), bit < 48 ? value : 0U);
        EXPECT_EQ(Be24{static_cast<std::uint32_t>(value)}.get(), bit < 24 ? value : 0U);
    }
}

TEST(BigEndian, ReadsFromAnyAddress) {
    std::array<std::uint8_t, 9> bytes{0xff, 1, 2, 3, 4, 5, 6, 7, 8};
    Be32 field;
    std::memcpy(&field, bytes.data() + 1, sizeof(field));
    EXPECT_EQ(field.get(), 0x01020304U);
    EXPECT_EQ(alignof(Be32), 1U);
}

TEST(BigEndian, IsNoHostIntegerByAccident) {
    static_assert(!std::is_convertible_v<std::uint32_t, Be32>);
    static_assert(!std::is_convertible_v<Be32, std::uint32_t>);
    static_assert(std::is_trivially_copyable_v<Be32>);
    EXPECT_NE(Be32{1U}, Be32{0x01000000U});
}

TEST(Number, KeepsOnlyTheBitsItsFieldCarries) {
    EXPECT_EQ(Qpn{0xff123456U}.value, 0x123456U);
    EXPECT_EQ(Qkey{0xff123456U}.value, 0xff123456U);
    EXPECT_EQ(Pkey{0xffffU}.value, 0xffffU);
}

TEST(Number, DoesNotTurnIntoAnotherOne) {
    static_assert(!std::is_convertible_v<Qpn, Psn>);
    static_assert(!std::is_convertible_v<Rkey, Lkey>);
    static_assert(!std::is_convertible_v<std::uint32_t, Qpn>);
    EXPECT_LT(Qpn{1}, Qpn{2});
}

TEST(Psn, IsOrderedByDistanceOnTheCircle) {
    for (const std::uint32_t base : {0U, 1U, 0x7fffffU, 0x800000U, 0xfffffeU, 0xffffffU}) {
        for (const std::int32_t distance : {-0x800000, -0x7fffff, -2, -1, 0, 1, 2, 0x7fffff}) {
            const Psn psn{base + static_cast<std::uint32_t>(distance)};
            EXPECT_EQ(psn.since(Psn{base}), distance) << "base " << base;
        }
    }
}

TEST(Psn, WrapsAfterTwentyFourBits) {
    EXPECT_EQ(Psn{0xffffffU}.next(), Psn{0});
    EXPECT_EQ(Psn{0xfffff0U}.plus(0x20).value(), 0x10U);
    EXPECT_EQ(Psn{0x1000005U}.value(), 5U);
}

TEST(Result, HoldsAValueOrAnError) {
    const Result<int> good = 7;
    ASSERT_TRUE(good.ok());
    EXPECT_EQ(good.value(), 7);
    const Result<int> bad = Error{"port 3 does not exist", "give --port 0"};
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().text(), "port 3 does not exist; give --port 0");
    EXPECT_EQ((Error{"no memory", ""}).text(), "no memory");
}

TEST(Result, HandsOutWhatCanOnlyBeMoved) {
    Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
    const std::unique_ptr<int> taken = std::move(result).value();
    EXPECT_EQ(*taken, 3);
}

TEST(ResultDeathTest, AssertsAgainstReadingTheOneThatIsNotThere) {
    const Result<int> good = 7;
    const Result<int> bad = Error{"no", ""};
    EXPECT_DEATH((void)good.error(), "ok\\(\\).*does not hold");
    EXPECT_DEATH((void)bad.value(), "ok\\(\\) does not hold");
}

TEST(Time, CalculatesInNanoseconds) {
    EXPECT_EQ(microseconds(3) + nanoseconds(5), nanoseconds(3005));
    EXPECT_EQ(seconds(1) - milliseconds(1), microseconds(999'000));
    EXPECT_EQ((microseconds(10) * 3) / 2, microseconds(15));
    const Instant start{1'000};
    EXPECT_EQ((start + microseconds(1)) - start, microseconds(1));
    EXPECT_EQ(start - nanoseconds(1'001), Instant{-1});
    EXPECT_LT(nanoseconds(-1), Duration{});
}

TEST(Time, NeverIsLaterThanEveryInstant) {
    EXPECT_LT(Instant{0} + seconds(9'000'000'000), Instant::never());
    EXPECT_EQ(Instant::never(), Instant::never());
}

TEST(AssertDeathTest, NamesTheExpressionAndThePlace) {
    const int credits = -1;
    EXPECT_DEATH(CAIRN_ASSERT(credits >= 0), "credits >= 0 does not hold \\(.*base_test\\.cpp:[0-9]+\\)");
}

TEST(Assert, EvaluatesItsConditionOnce) {
    int evaluated = 0;
    CAIRN_ASSERT(++evaluated == 1);
    EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace cairn
