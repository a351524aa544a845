#include "lib/wire/crc32_short.hpp"

#include <gtest/gtest.h>

#include <array>

namespace cairn::wire {
namespace {

TEST(Crc32Short, AgreesWithIsalForEveryLengthStateAndAlignment) {
    std::array<std::uint8_t, 16 + kShortBytes + 16> bytes{};
    std::uint32_t random = 0x12345678U;
    for (std::uint8_t& byte : bytes) {
        random = random * 1664525U + 1013904223U;
        byte = static_cast<std::uint8_t>(random >> 24U);
    }
    int compared = 0;
    for (std::size_t count = 0; count <= kShortBytes; ++count) {
        if (!is_short(count)) {
            continue;
        }
        for (std::size_t from = 12; from < 28; ++from) {
            for (const std::uint32_t state : {0U, 0xffffffffU, random ^ static_cast<std::uint32_t>(count)}) {
                ASSERT_EQ(crc32_short(state, bytes.data() + from, count), crc32(state, bytes.data() + from, count))
                    << count << " bytes at " << from;
                ++compared;
            }
        }
    }
#ifdef CAIRN_HAS_CLMUL
    EXPECT_EQ(compared, 61 * 16 * 3);
#endif
}

TEST(Crc32Short, LeavesOtherLengthsToIsal) {
    EXPECT_FALSE(is_short(0));
    EXPECT_FALSE(is_short(12));
    EXPECT_FALSE(is_short(18));
    EXPECT_FALSE(is_short(kShortBytes + 4));
}

}  // namespace
}  // namespace cairn::wire
