// CRC-32 of short runs by carry-less multiplication, inlined: what an ICRC is made of once the state of
// everything constant is known. Longer runs, other lengths and other machines are ISA-L's (crc32 of icrc.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/wire/icrc.hpp"

#if defined(__PCLMUL__) && defined(__SSE4_1__)
#include <immintrin.h>
#define CAIRN_HAS_CLMUL 1
#endif

namespace cairn::wire {

// Up to this many bytes one folding chain is faster than a call; several packets' chains overlap.
constexpr std::size_t kShortBytes = 256;

#ifdef CAIRN_HAS_CLMUL

namespace detail {

// x^n mod P (0x104c11db7), bit-reflected and shifted as a carry-less product of reflected operands wants it.
consteval std::uint64_t folding_constant(unsigned exponent) {
    std::uint32_t rest = 1;  // x^0, bit i is the coefficient of x^i
    for (unsigned i = 0; i < exponent; ++i) {
        rest = (rest << 1U) ^ ((rest & 0x80000000U) != 0 ? 0x04c11db7U : 0U);
    }
    std::uint64_t reflected = 0;
    for (unsigned bit = 0; bit < 32; ++bit) {
        reflected |= static_cast<std::uint64_t>((rest >> bit) & 1U) << (31U - bit);
    }
    return reflected << 1U;
}
static_assert(folding_constant(128 + 32) == 0x1751997d0 && folding_constant(128 - 32) == 0x0ccaa009e);
static_assert(folding_constant(64) == 0x163cd6124);

inline __m128i constants(std::uint64_t low, std::uint64_t high) noexcept {
    return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}

// 128 bits of remainder to 32: one more fold, then Barrett's reduction (Gopal et al., "Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ", 2009).
inline std::uint32_t reduce(__m128i rest) noexcept {
    const __m128i low_words = _mm_setr_epi32(-1, 0, -1, 0);
    const __m128i fold = constants(folding_constant(128 + 32), folding_constant(128 - 32));
    const __m128i polynomial = constants(0x1db710641, 0x1f7011641);  // P and floor(x^64 / P), reflected
    __m128i folded = _mm_xor_si128(_mm_srli_si128(rest, 8), _mm_clmulepi64_si128(rest, fold, 0x10));
    const __m128i low =
        _mm_clmulepi64_si128(_mm_and_si128(folded, low_words), constants(folding_constant(64), 0), 0x00);
    folded = _mm_xor_si128(_mm_srli_si128(folded, 4), low);
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(folded, low_words), polynomial, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_words), polynomial, 0x00);
    return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(folded, quotient), 1));
}

}  // namespace detail

// As crc32(crc, bytes, count) for a `count` that is a multiple of 4 in [16, kShortBytes]. Reads up to 12 bytes
// in front of `bytes`, which must be readable.
[[nodiscard]] inline std::uint32_t crc32_short(std::uint32_t crc, const std::uint8_t* bytes,
                                               std::size_t count) noexcept {
    const auto load = [](const std::uint8_t* at) noexcept {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    };
    const __m128i fold = detail::constants(detail::folding_constant(128 + 32), detail::folding_constant(128 - 32));
    // The odd words come first, behind zeros, which change nothing in front of a message.
    const std::size_t odd = count & 12U;
    const std::size_t lead = (16U - odd) & 15U;
    const __m128i state = _mm_cvtsi32_si128(static_cast<int>(~crc));
    __m128i rest;
    if (lead == 0) {
        rest = _mm_xor_si128(load(bytes), state);
    } else {
        const __m128i place = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m128i from = _mm_sub_epi8(place, _mm_set1_epi8(static_cast<char>(lead)));  // negative: a zero byte
        const __m128i wanted = _mm_cmpgt_epi8(from, _mm_set1_epi8(-1));
        rest = _mm_xor_si128(_mm_and_si128(load(bytes - lead), wanted), _mm_shuffle_epi8(state, from));
    }
    const std::uint8_t* const end = bytes + count;
    for (const std::uint8_t* at = bytes + 16 - lead; at != end; at += 16) {
        const __m128i high = _mm_clmulepi64_si128(rest, fold, 0x11);
        const __m128i low = _mm_clmulepi64_si128(rest, fold, 0x00);
        rest = _mm_xor_si128(_mm_xor_si128(high, low), load(at));
    }
    return ~detail::reduce(rest);
}

[[nodiscard]] inline bool is_short(std::size_t count) noexcept {
    return count - 16U <= kShortBytes - 16U && (count & 3U) == 0;
}

#else

[[nodiscard]] inline std::uint32_t crc32_short(std::uint32_t crc, const std::uint8_t* bytes,
                                               std::size_t count) noexcept {
    return crc32(crc, bytes, count);
}
[[nodiscard]] inline bool is_short(std::size_t) noexcept {
    return false;
}

#endif

}  // namespace cairn::wire
