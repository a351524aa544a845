// The CRC-32 of short runs by carry-less multiplication, inlined. It computes an ICRC from the known state of
// everything constant. crc32() (icrc.hpp) serves longer runs, other lengths and other machines.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/wire/crc32_fold.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::wire {

// Runs of one word up to this many bytes take a folding chain. It is faster than a call of ISA-L, which reads back
// stores of a moment ago. The chains of several packets overlap.
constexpr std::size_t kShortBytes = 256;

#ifdef CAIRN_HAS_CLMUL

[[nodiscard]] inline bool is_short(std::size_t count) noexcept {
    return count - 4U <= kShortBytes - 4U && (count & 3U) == 0;
}

#else

[[nodiscard]] inline bool is_short(std::size_t) noexcept {
    return false;
}

#endif

// The common state of runs of one length after one CRC state. It is prepared once, so that a run costs only its blocks.
class CrcRuns {
public:
    struct End {
        std::uint32_t crc;
        const std::uint8_t* behind;  // after the last byte
    };

    CrcRuns() noexcept = default;
    // Prepares runs of `count` bytes after `crc`. The bits `ones` of the first byte count as ones.
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

    // Returns the CRC of one run. Reads up to 12 bytes in front of `bytes`, which must be readable. The function is not
    // inlined: a caller that makes calls saves registers for them, which costs as much as the CRC of a small run.
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
        // The CRC adds a byte to the low end of its state. So the ones that the first byte lacks can be added there.
        const auto lacks = static_cast<std::uint32_t>(~bytes[0] & ones_);
        return {crc32(crc_ ^ lacks, bytes, count_), bytes + count_};
    }
    // Returns true for runs of 52 to 64 bytes: the part of the smallest requests after the first word of the BTH. Their
    // CRC is worth inlining.
    [[nodiscard]] bool are_small() const noexcept {
#ifdef CAIRN_HAS_CLMUL
        return blocks_ == 4;
#else
        return false;
#endif
    }
    [[nodiscard]] [[gnu::always_inline]] inline End crc_of_small(const std::uint8_t* bytes) const noexcept {
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
    // Prepares the first block. The odd words come first, after zeros: zeros in front of a message change nothing.
    void make_first_block() noexcept {
        const std::size_t odd = count_ & 12U;
        const std::size_t lead = (16U - odd) & 15U;
        const __m128i place = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        // A negative index gives a zero byte.
        const __m128i from = _mm_sub_epi8(place, _mm_set1_epi8(static_cast<char>(lead)));
        const __m128i ones = _mm_shuffle_epi8(_mm_cvtsi32_si128(ones_), from);
        keep_ = _mm_andnot_si128(ones, _mm_cmpgt_epi8(from, _mm_set1_epi8(-1)));
        add_ = _mm_xor_si128(ones, _mm_shuffle_epi8(_mm_cvtsi32_si128(static_cast<int>(~crc_)), from));
        first_at_ = static_cast<std::int8_t>(-static_cast<int>(lead));
        blocks_ = static_cast<std::uint8_t>((lead + count_) / 16);
    }
    [[nodiscard]] __m128i first_block(const std::uint8_t* at) const noexcept {
        return _mm_xor_si128(_mm_and_si128(detail::load(at), keep_), add_);
    }

    __m128i_u keep_{};  // the bits that count of a run's first block, which starts in front of the run
    __m128i_u add_{};   // the state and the ones
#endif
    std::uint32_t crc_ = 0;
    std::uint16_t count_ = 0;
    std::uint8_t ones_ = 0;
    std::int8_t first_at_ = 0;  // start of the first block, relative to the run's first byte
    std::uint8_t blocks_ = 0;   // 0 if the runs are not short
};

// Behaves as crc32(crc, bytes, count) for a `count` that is_short(). Reads up to 12 bytes in front of `bytes`, which
// must be readable.
[[nodiscard]] inline std::uint32_t crc32_short(std::uint32_t crc, const std::uint8_t* bytes,
                                               std::size_t count) noexcept {
    return CrcRuns(crc, count).crc_of(bytes).crc;
}

}  // namespace cairn::wire
