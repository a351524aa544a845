// crc32() of icrc.hpp: 32 bytes at a time if the machine can, else ISA-L, which also chooses by the machine.
#include <isa-l/crc.h>

#include "lib/wire/crc32_fold.hpp"
#include "lib/wire/crc32_wide.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::wire {

#ifdef CAIRN_HAS_CLMUL

namespace {

constexpr std::size_t kWideBytes = 32;
constexpr std::size_t kStepBytes = 2 * kWideBytes;  // two chains keep the multiplier busy
static_assert(detail::kWideLeastBytes == 2 * kStepBytes);

[[gnu::target("avx2,vpclmulqdq")]] inline __m256i load_wide(const std::uint8_t* at) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(at));
}

// The constants that carry the two halves of a register over a distance.
struct Carry {
    std::uint64_t low;
    std::uint64_t high;

    [[nodiscard]] [[gnu::target("avx2,vpclmulqdq")]] __m256i twice() const noexcept {
        return _mm256_broadcastsi128_si256(detail::constants(low, high));
    }
};
constexpr Carry kOverStep{detail::folding_constant(8 * kStepBytes + 32), detail::folding_constant(8 * kStepBytes - 32)};
constexpr Carry kOverWide{detail::folding_constant(8 * kWideBytes + 32), detail::folding_constant(8 * kWideBytes - 32)};

[[gnu::target("avx2,vpclmulqdq")]] inline __m256i fold_wide(__m256i rest, __m256i fold, __m256i next) noexcept {
    const __m256i high = _mm256_clmulepi64_epi128(rest, fold, 0x11);
    const __m256i low = _mm256_clmulepi64_epi128(rest, fold, 0x00);
    return _mm256_xor_si256(_mm256_xor_si256(high, low), next);
}

// ISA-L multiplies 64 bytes at a time with AVX-512 and 16 without it. AVX2 allows 32.
const bool kIsFaster = detail::has_wide_clmul() && __builtin_cpu_supports("avx512f") == 0;

}  // namespace

bool detail::has_wide_clmul() noexcept {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
}

[[gnu::target("avx2,vpclmulqdq")]] std::uint32_t detail::crc32_wide(std::uint32_t crc, const std::uint8_t*& bytes,
                                                                    std::size_t& count) noexcept {
    const __m256i step = kOverStep.twice();
    const __m256i wide = kOverWide.twice();
    const __m256i state = _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(~crc)));
    __m256i even = _mm256_xor_si256(load_wide(bytes), state);
    __m256i odd = load_wide(bytes + kWideBytes);
    for (bytes += kStepBytes, count -= kStepBytes; count >= kStepBytes; bytes += kStepBytes, count -= kStepBytes) {
        even = fold_wide(even, step, load_wide(bytes));
        odd = fold_wide(odd, step, load_wide(bytes + kWideBytes));
    }
    const __m256i both = fold_wide(even, wide, odd);
    const __m128i fold = detail::folds();
    const __m128i low = _mm256_castsi256_si128(both);
    __m128i rest = _mm_xor_si128(_mm_clmulepi64_si128(low, fold, 0x11), _mm_clmulepi64_si128(low, fold, 0x00));
    rest = _mm_xor_si128(rest, _mm256_extracti128_si256(both, 1));
    for (; count >= 16; bytes += 16, count -= 16) {
        rest = detail::fold_in(rest, fold, bytes);
    }
    return ~detail::reduce(rest, fold);
}

#endif

std::uint32_t crc32(std::uint32_t crc, const std::uint8_t* bytes, std::size_t count) noexcept {
#ifdef CAIRN_HAS_CLMUL
    if (count >= detail::kWideLeastBytes && kIsFaster) {
        crc = detail::crc32_wide(crc, bytes, count);
    }
#endif
    return count == 0 ? crc : crc32_gzip_refl(crc, bytes, count);
}

}  // namespace cairn::wire
