// crc32() is compared with ISA-L.
#include <gtest/gtest.h>
#include <isa-l/crc.h>

#include <vector>

#include "lib/wire/crc32_wide.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::wire {
namespace {

std::vector<std::uint8_t> noise(std::size_t count) {
    std::vector<std::uint8_t> bytes(count);
    std::uint32_t random = 0x2545f491U;
    for (std::uint8_t& byte : bytes) {
        random = random * 1664525U + 1013904223U;
        byte = static_cast<std::uint8_t>(random >> 24U);
    }
    return bytes;
}

TEST(Crc32, AgreesWithIsalForEveryLengthAndAlignment) {
    const std::vector<std::uint8_t> bytes = noise(4096 + 200 + 32);
    for (std::size_t count = 0; count <= 4096 + 200; count += count < 700 || count > 4000 ? 1 : 13) {
        const std::size_t from = count % 32;
        const auto state = static_cast<std::uint32_t>(0x9e3779b9U * count);
        ASSERT_EQ(crc32(state, bytes.data() + from, count), crc32_gzip_refl(state, bytes.data() + from, count))
            << count << " bytes at " << from;
    }
}

#ifdef CAIRN_HAS_CLMUL

TEST(Crc32, TheWideOneAgreesWithIsal) {
    if (!detail::has_wide_clmul()) {
        GTEST_SKIP() << "this machine cannot multiply 32 bytes at a time";
    }
    const std::vector<std::uint8_t> bytes = noise(1000);
    for (std::size_t all = detail::kWideLeastBytes; all <= bytes.size(); ++all) {
        const auto state = static_cast<std::uint32_t>(0x9e3779b9U * all);
        const std::uint8_t* rest = bytes.data();
        std::size_t left = all;
        const std::uint32_t crc = detail::crc32_wide(state, rest, left);
        ASSERT_LT(left, 16U);
        ASSERT_EQ(rest + left, bytes.data() + all);
        ASSERT_EQ(crc, crc32_gzip_refl(state, bytes.data(), all - left)) << all;
    }
}

#endif

TEST(Crc32, ContinuesWhereItWasCut) {
    const std::vector<std::uint8_t> bytes = noise(1000);
    const std::uint32_t whole = crc32(0, bytes.data(), bytes.size());
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        ASSERT_EQ(crc32(crc32(0, bytes.data(), cut), bytes.data() + cut, bytes.size() - cut), whole) << cut;
    }
}

}  // namespace
}  // namespace cairn::wire
