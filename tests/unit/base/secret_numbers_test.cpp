// Numbers from a secret key: no stream reveals another one, or the rest of itself.
#include "lib/base/secret_numbers.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace cairn {
namespace {

constexpr SipKey kKey{0x0123456789abcdefU, 0xfedcba9876543210U};

TEST(SecretNumbers, NoTwoPurposesNorOwnersDrawTheSame) {
    std::set<std::uint64_t> seen;
    std::size_t drawn = 0;
    for (const SipKey& key : {kKey, SipKey{kKey[1], kKey[0]}, SipKey{kKey[0], 0}, SipKey{0, kKey[0]}}) {
        for (int purpose = 0; purpose <= static_cast<int>(Purpose::InjectedFaults); ++purpose) {
            SecretNumbers numbers(key, static_cast<Purpose>(purpose));
            for (int i = 0; i < 100; ++i, ++drawn) {
                seen.insert(numbers.next());
            }
        }
    }
    EXPECT_EQ(seen.size(), drawn);
}

TEST(SecretNumbers, OneKeyIsOneHistory) {
    SecretNumbers first(kKey, Purpose::SessionTokens);
    SecretNumbers second(kKey, Purpose::SessionTokens);
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(first.next(), second.next());
    }
}

// Neighbours of a merely mixed counter, or of a linear generator, differ by little or by a constant.
TEST(SecretNumbers, NeighboursDifferInHalfOfTheirBitsAndByNothingThatRepeats) {
    SecretNumbers numbers(kKey, Purpose::RequestNumbers);
    std::set<std::uint64_t> differences;
    std::uint64_t last = numbers.next();
    int bits = 0;
    constexpr int kDrawn = 4096;
    for (int i = 0; i < kDrawn; ++i) {
        const std::uint64_t next = numbers.next();
        bits += std::popcount(next ^ last);
        differences.insert(next - last);
        last = next;
    }
    EXPECT_EQ(differences.size(), std::size_t{kDrawn});
    EXPECT_NEAR(static_cast<double>(bits) / kDrawn, 32.0, 0.5);
}

TEST(SecretNumbers, AHashOfTwoWordsIsNoneOfEither) {
    EXPECT_NE(sip_hash(kKey, std::uint64_t{1}, std::uint64_t{2}), sip_hash(kKey, std::uint64_t{2}, std::uint64_t{1}));
    EXPECT_NE(sip_hash(kKey, std::uint64_t{1}, std::uint64_t{0}), sip_hash(kKey, std::uint64_t{1}));
}

}  // namespace
}  // namespace cairn
