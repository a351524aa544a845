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
    EXPECT_EQ(compared, 64 * 16 * 3);
#endif
}

TEST(Crc32Short, RunsOfAllLengthsMayTakeTheFirstByteAsOnes) {
    std::array<std::uint8_t, 16 + 600> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(i * 37 + i / 7);
    }
    std::uint8_t* const run = bytes.data() + 16;
    for (std::size_t count = 1; count <= 600; ++count) {
        const CrcRuns runs(0x1234567U, count, 0xff);
        const std::uint8_t before = run[0];
        run[0] = 0xff;
        const std::uint32_t wanted = crc32(0x1234567U, run, count);
        run[0] = before;
        ASSERT_EQ(runs.crc_of(run).crc, wanted) << count;
        ASSERT_EQ(runs.crc_of(run).behind, run + count) << count;
        if (runs.are_small()) {
            ASSERT_EQ(runs.crc_of_small(run).crc, wanted) << count;
            ASSERT_EQ(runs.crc_of_small(run).behind, run + count) << count;
        }
        EXPECT_EQ(runs.crc_before(), 0x1234567U);
    }
}

TEST(Crc32Short, LeavesOtherLengthsToIsal) {
    EXPECT_FALSE(is_short(0));
    EXPECT_FALSE(is_short(3));
    EXPECT_FALSE(is_short(18));
    EXPECT_FALSE(is_short(kShortBytes + 4));
}

}  // namespace
}  // namespace cairn::wire
