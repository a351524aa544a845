// SipHash-2-4 of whole words (Aumasson, Bernstein 2012).
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>

namespace cairn {

using SipKey = std::array<std::uint64_t, 2>;

// Returns the hash of the words. A result reveals neither the key nor the results for other words.
template <std::same_as<std::uint64_t>... Words>
[[nodiscard]] constexpr std::uint64_t sip_hash(const SipKey& key, Words... words) noexcept {
    std::uint64_t a = key[0] ^ 0x736f6d6570736575U;
    std::uint64_t b = key[1] ^ 0x646f72616e646f6dU;
    std::uint64_t c = key[0] ^ 0x6c7967656e657261U;
    std::uint64_t d = key[1] ^ 0x7465646279746573U;
    const auto rounds = [&](int count) noexcept {
        for (; count > 0; --count) {
            a += b;
            b = std::rotl(b, 13) ^ a;
            a = std::rotl(a, 32);
            c += d;
            d = std::rotl(d, 16) ^ c;
            a += d;
            d = std::rotl(d, 21) ^ a;
            c += b;
            b = std::rotl(b, 17) ^ c;
            c = std::rotl(c, 32);
        }
    };
    constexpr std::uint64_t kLength = std::uint64_t{8 * sizeof...(words)} << 56U;
    for (const std::uint64_t block : {words..., kLength}) {
        d ^= block;
        rounds(2);
        a ^= block;
    }
    c ^= 0xff;
    rounds(4);
    return a ^ b ^ c ^ d;
}

// Test vectors of the reference for the bytes 00 ... 07 and 00 ... 0f under the key 00 ... 0f.
static_assert(sip_hash({0x0706050403020100U, 0x0f0e0d0c0b0a0908U}, std::uint64_t{0x0706050403020100U}) ==
              0x93f5f5799a932462U);
static_assert(sip_hash({0x0706050403020100U, 0x0f0e0d0c0b0a0908U}, std::uint64_t{0x0706050403020100U},
                       std::uint64_t{0x0f0e0d0c0b0a0908U}) == 0x3f2acc7f57c29bdbU);

}  // namespace cairn
