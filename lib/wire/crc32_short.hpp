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

// The inverse of P modulo x^64, both reflected: reflected, a division is one from the lowest bit up, which this makes
// a multiplication. Its 33 lowest bits are Barrett's constant.
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

// One more block behind `rest` (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", 2009).
inline __m128i fold_in(__m128i rest, __m128i fold, const std::uint8_t* block) noexcept {
    const __m128i high = _mm_clmulepi64_si128(rest, fold, 0x11);
    const __m128i low = _mm_clmulepi64_si128(rest, fold, 0x00);
    return _mm_xor_si128(_mm_xor_si128(high, low), load(block));
}

// 128 bits of remainder to 96 by one more fold, then to 32 by Barrett's reduction over 64 bits at once.
inline std::uint32_t reduce(__m128i rest, __m128i fold) noexcept {
    const __m128i division = constants(inverse_of(kPolynomial), kPolynomial);
    const __m128i folded = _mm_xor_si128(_mm_srli_si128(rest, 8), _mm_clmulepi64_si128(rest, fold, 0x10));
    const __m128i quotient = _mm_clmulepi64_si128(folded, division, 0x00);
    const __m128i product = _mm_clmulepi64_si128(quotient, division, 0x10);
    return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(folded, product), 2));
}

}  // namespace detail

[[nodiscard]] inline bool is_short(std::size_t count) noexcept {
    return count - 16U <= kShortBytes - 16U && (count & 3U) == 0;
}

#else

[[nodiscard]] inline bool is_short(std::size_t) noexcept {
    return false;
}

#endif

// What runs of one length share that continue from one state: made ready once, so that a run costs its blocks alone.
class CrcRuns {
public:
    struct End {
        std::uint32_t crc;
        const std::uint8_t* behind;  // the last byte
    };

    CrcRuns() noexcept = default;
    // Runs of `count` bytes behind `crc`; the bits `ones` of the first byte count as ones.
    CrcRuns(std::uint32_t crc, std::size_t count, std::uint8_t ones = 0) noexcept
        : crc_(crc), count_(static_cast<std::uint16_t>(count)), ones_(ones) {
#ifdef CAIRN_HAS_CLMUL
        if (is_short(count)) {
            make_first_block();
        }
#endif
    }

    [[nodiscard]] std::uint32_t crc_before() const noexcept {
        return crc_;
    }

    // Of one of them. Reads up to 12 bytes in front of `bytes`, which must be readable. Not inlined: callers that have
    // calls save registers for them, which costs as much as the CRC of a small run.
    [[nodiscard]] [[gnu::noinline]] End crc_of(const std::uint8_t* bytes) const noexcept {
#ifdef CAIRN_HAS_CLMUL
        if (blocks_ != 0) {
            const __m128i fold = detail::folds();
            const std::uint8_t* at = bytes + first_at_;
            const std::uint8_t* const end = at + std::size_t{16} * blocks_;
            __m128i rest = first_block(at);
            for (at += 16; at != end; at += 16) {
                rest = detail::fold_in(rest, fold, at);
            }
            return {~detail::reduce(rest, fold), end};
        }
#endif
        // The CRC adds a byte to the low end of its state: what the first lacks to ones can be added there instead.
        const auto lacks = static_cast<std::uint32_t>(~bytes[0] & ones_);
        return {crc32(crc_ ^ lacks, bytes, count_), bytes + count_};
    }
    // Small runs are of 52 to 64 bytes: what the smallest requests have behind the BTH's first word. Their CRC is
    // worth having inline.
    [[nodiscard]] bool are_small() const noexcept {
#ifdef CAIRN_HAS_CLMUL
        return blocks_ == 4;
#else
        return false;
#endif
    }
    [[nodiscard]] End crc_of_small(const std::uint8_t* bytes) const noexcept {
#ifdef CAIRN_HAS_CLMUL
        const __m128i fold = detail::folds();
        const std::uint8_t* first = bytes + first_at_;
        __m128i rest = detail::fold_in(first_block(first), fold, first + 16);
        rest = detail::fold_in(rest, fold, first + 32);
        rest = detail::fold_in(rest, fold, first + 48);
        return {~detail::reduce(rest, fold), first + 64};
#else
        return crc_of(bytes);
#endif
    }

private:
#ifdef CAIRN_HAS_CLMUL
    // The odd words come first, behind zeros, which change nothing in front of a message.
    void make_first_block() noexcept {
        const std::size_t odd = count_ & 12U;
        const std::size_t lead = (16U - odd) & 15U;
        const __m128i place = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m128i from = _mm_sub_epi8(place, _mm_set1_epi8(static_cast<char>(lead)));  // negative: a zero byte
        const __m128i ones = _mm_shuffle_epi8(_mm_cvtsi32_si128(ones_), from);
        keep_ = _mm_andnot_si128(ones, _mm_cmpgt_epi8(from, _mm_set1_epi8(-1)));
        add_ = _mm_xor_si128(ones, _mm_shuffle_epi8(_mm_cvtsi32_si128(static_cast<int>(~crc_)), from));
        first_at_ = static_cast<std::int8_t>(-static_cast<int>(lead));
        blocks_ = static_cast<std::uint8_t>((lead + count_) / 16);
    }
    [[nodiscard]] __m128i first_block(const std::uint8_t* at) const noexcept {
        return _mm_xor_si128(_mm_and_si128(detail::load(at), keep_), add_);
    }

    __m128i_u keep_{};  // of a run's first block, which starts in front of the run
    __m128i_u add_{};   // the state, and the ones
#endif
    std::uint32_t crc_ = 0;
    std::uint16_t count_ = 0;
    std::uint8_t ones_ = 0;
    std::int8_t first_at_ = 0;  // where the first block starts, from the run's first byte on
    std::uint8_t blocks_ = 0;   // 0: the runs are not short
};

// As crc32(crc, bytes, count) for a `count` that is_short(). Reads up to 12 bytes in front of `bytes`, which must be
// readable.
[[nodiscard]] inline std::uint32_t crc32_short(std::uint32_t crc, const std::uint8_t* bytes,
                                               std::size_t count) noexcept {
    return CrcRuns(crc, count).crc_of(bytes).crc;
}

}  // namespace cairn::wire
