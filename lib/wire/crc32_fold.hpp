// Folding by carry-less multiplication, for the CRC-32 of short and of long runs (Gopal et al., "Fast CRC Computation
// for Generic Polynomials Using PCLMULQDQ Instruction", 2009). Only lib/wire uses it.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__PCLMUL__) && defined(__SSE4_1__)
#include <immintrin.h>
#define CAIRN_HAS_CLMUL 1
#endif

#ifdef CAIRN_HAS_CLMUL

namespace cairn::wire::detail {

// Returns x^n mod P (0x104c11db7), bit-reflected, and shifted as a carry-less product of reflected operands needs it.
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

// Returns the inverse of P modulo x^64, both reflected. Reflection turns the division into one from the lowest bit up,
// and the inverse makes that a multiplication. The lowest 33 bits of the inverse are Barrett's constant.
consteval std::uint64_t inverse_of(std::uint64_t polynomial) {
    std::uint64_t inverse = 0;
    std::uint64_t left = 1;  // 1 - inverse * polynomial, so far
    for (unsigned bit = 0; bit < 64; ++bit) {
        if (((left >> bit) & 1U) != 0) {
            inverse |= std::uint64_t{1} << bit;
            left ^= polynomial << bit;
        }
    }
    return inverse;
}
constexpr std::uint64_t kPolynomial = 0x1db710641;  // P, reflected
static_assert((inverse_of(kPolynomial) & 0x1ffffffffU) == 0x1f7011641);

inline __m128i folds() noexcept {
    return constants(folding_constant(128 + 32), folding_constant(128 - 32));
}

inline __m128i load(const void* at) noexcept {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
}

// Returns the remainder after one more block.
inline __m128i fold_in(__m128i rest, __m128i fold, const std::uint8_t* block) noexcept {
    const __m128i high = _mm_clmulepi64_si128(rest, fold, 0x11);
    const __m128i low = _mm_clmulepi64_si128(rest, fold, 0x00);
    return _mm_xor_si128(_mm_xor_si128(high, low), load(block));
}

// Reduces 128 bits of remainder to 96 by one more fold, and to 32 by Barrett's reduction over 64 bits at once.
inline std::uint32_t reduce(__m128i rest, __m128i fold) noexcept {
    const __m128i division = constants(inverse_of(kPolynomial), kPolynomial);
    const __m128i folded = _mm_xor_si128(_mm_srli_si128(rest, 8), _mm_clmulepi64_si128(rest, fold, 0x10));
    const __m128i quotient = _mm_clmulepi64_si128(folded, division, 0x00);
    const __m128i product = _mm_clmulepi64_si128(quotient, division, 0x10);
    return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(folded, product), 2));
}

}  // namespace cairn::wire::detail

#endif
