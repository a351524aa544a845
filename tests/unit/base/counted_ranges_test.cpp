// lib/mem: memory that is registered in pieces, by ranges that overlap and repeat.
#include "lib/mem/counted_ranges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace cairn::mem {
namespace {

constexpr std::size_t kPage = CountedRanges::kPageBytes;
constexpr std::uintptr_t kBase = std::uintptr_t{1} << 40U;  // nothing is read there

// Returns a range of bytes after the base; nothing is read or written.
CountedRanges::Range bytes(std::uintptr_t begin, std::size_t count) {
    return {reinterpret_cast<const std::uint8_t*>(kBase + begin), count};
}
CountedRanges::Range pages(std::uintptr_t begin, std::uintptr_t end) {
    return bytes(begin * kPage, (end - begin) * kPage);
}

// Records the registered pages.
class Recorder final : public CountedRanges::Keeper {
public:
    using Piece = std::pair<std::uintptr_t, std::uintptr_t>;

    bool make(CountedRanges::Range piece) override {
        if (made++ == refuse_at) {
            return false;
        }
        known.push_back(name(piece));
        return true;
    }
    void end(CountedRanges::Range piece) noexcept override {
        const auto found = std::find(known.begin(), known.end(), name(piece));
        ASSERT_NE(found, known.end());
        known.erase(found);
    }
    static Piece name(CountedRanges::Range piece) {
        const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(piece.data()) - kBase;
        EXPECT_EQ(begin % kPage, 0U);
        EXPECT_EQ(piece.size() % kPage, 0U);
        return {begin / kPage, (begin + piece.size()) / kPage};
    }

    std::vector<Piece> known;
    int made = 0;
    int refuse_at = -1;
};

class CountedRangesTest : public testing::Test {
protected:
    using Pieces = std::vector<Recorder::Piece>;

    void detach(CountedRanges::Range range) {
        EXPECT_TRUE(ranges.retire(range));
        ranges.release_retired();
    }

    Recorder recorder;
    CountedRanges ranges{recorder};
};

TEST_F(CountedRangesTest, ARangeIsKnownByWholePagesUntilItIsReleased) {
    EXPECT_TRUE(ranges.attach(bytes(kPage + 100, kPage)));
    EXPECT_EQ(recorder.known, (Pieces{{1, 3}}));
    EXPECT_TRUE(ranges.covers(bytes(kPage + 100, kPage)));
    EXPECT_TRUE(ranges.covers(pages(1, 3)));
    EXPECT_FALSE(ranges.covers(bytes(kPage - 1, 2)));
    EXPECT_FALSE(ranges.covers(bytes(3 * kPage - 1, 2)));
    detach(bytes(kPage + 100, kPage));
    EXPECT_TRUE(recorder.known.empty());
    EXPECT_FALSE(ranges.covers(pages(1, 2)));
}

TEST_F(CountedRangesTest, TheSameRangeIsMadeOnceAndEndsWithTheLast) {
    EXPECT_TRUE(ranges.attach(pages(0, 4)));
    EXPECT_TRUE(ranges.attach(pages(0, 4)));
    EXPECT_EQ(recorder.made, 1);
    EXPECT_EQ(ranges.attached(), 2U);
    detach(pages(0, 4));
    EXPECT_TRUE(ranges.covers(pages(0, 4)));
    EXPECT_TRUE(ranges.attach(pages(0, 4)));
    detach(pages(0, 4));
    detach(pages(0, 4));
    EXPECT_TRUE(recorder.known.empty());
}

TEST_F(CountedRangesTest, OnlyWhatIsMissingIsMade) {
    EXPECT_TRUE(ranges.attach(pages(2, 4)));
    EXPECT_TRUE(ranges.attach(pages(6, 7)));
    EXPECT_TRUE(ranges.attach(pages(0, 9)));
    EXPECT_EQ(recorder.known, (Pieces{{2, 4}, {6, 7}, {0, 2}, {4, 6}, {7, 9}}));
    EXPECT_TRUE(ranges.covers(pages(0, 9)));
    detach(pages(0, 9));
    EXPECT_EQ(recorder.known, (Pieces{{2, 4}, {6, 7}}));
    EXPECT_TRUE(ranges.covers(pages(2, 4)) && ranges.covers(pages(6, 7)));
    EXPECT_FALSE(ranges.covers(pages(2, 7)));
}

TEST_F(CountedRangesTest, APieceThatOutlivesItsRangeIsNeitherCoveredNorTakenAgainUntilItEnds) {
    EXPECT_TRUE(ranges.attach(pages(0, 10)));
    EXPECT_TRUE(ranges.attach(pages(5, 15)));
    detach(pages(0, 10));  // its first pages may be other memory from now on, but are still registered
    EXPECT_EQ(recorder.known, (Pieces{{0, 10}, {10, 15}}));
    EXPECT_FALSE(ranges.covers(pages(0, 5)));
    EXPECT_FALSE(ranges.attach(pages(0, 5)));
    EXPECT_FALSE(ranges.covers(pages(5, 15)));
    EXPECT_TRUE(ranges.covers(pages(10, 15)));
    detach(pages(5, 15));
    EXPECT_TRUE(recorder.known.empty());
    EXPECT_TRUE(ranges.attach(pages(0, 5)));
    EXPECT_TRUE(ranges.covers(pages(0, 5)));
}

TEST_F(CountedRangesTest, NothingIsLeftOfARangeThatItsKeeperCannotHaveWhole) {
    EXPECT_TRUE(ranges.attach(pages(4, 6)));
    recorder.refuse_at = recorder.made + 1;  // after the piece, when the one before it was made
    EXPECT_FALSE(ranges.attach(pages(0, 9)));
    EXPECT_EQ(recorder.known, (Pieces{{4, 6}}));
    EXPECT_EQ(ranges.attached(), 1U);
    EXPECT_FALSE(ranges.retire(pages(0, 9)));
    detach(pages(4, 6));
    EXPECT_TRUE(recorder.known.empty());
}

TEST_F(CountedRangesTest, ARetiredRangeStaysKnownButIsNotTakenAgain) {
    EXPECT_TRUE(ranges.attach(pages(0, 4)));
    EXPECT_TRUE(ranges.retire(pages(0, 4)));
    EXPECT_EQ(recorder.known, (Pieces{{0, 4}}));
    EXPECT_EQ(ranges.retired(), 1U);
    EXPECT_FALSE(ranges.covers(pages(0, 4)));
    EXPECT_FALSE(ranges.attach(pages(0, 4)));
    EXPECT_FALSE(ranges.retire(pages(0, 4)));
    ranges.release_retired();
    EXPECT_TRUE(recorder.known.empty());
    EXPECT_EQ(ranges.pieces(), 0U);
    EXPECT_TRUE(ranges.attach(pages(0, 4)));
}

TEST_F(CountedRangesTest, ARangeInsideAPieceEndsWithoutIt) {
    EXPECT_TRUE(ranges.attach(pages(0, 8)));
    EXPECT_TRUE(ranges.attach(bytes(2 * kPage + 8, 16)));
    detach(bytes(2 * kPage + 8, 16));
    EXPECT_TRUE(ranges.covers(pages(0, 8)));
    EXPECT_TRUE(ranges.attach(pages(0, 8)));
}

TEST_F(CountedRangesTest, RangesThatAreNoneAreRefused) {
    EXPECT_FALSE(ranges.attach({}));
    EXPECT_FALSE(ranges.attach(bytes(5, 0)));
    EXPECT_FALSE(ranges.covers({}));
    const auto* const last = reinterpret_cast<const std::uint8_t*>(~std::uintptr_t{0} - 10);
    EXPECT_FALSE(ranges.attach({last, 10}));
    EXPECT_FALSE(ranges.attach({last, ~std::size_t{0}}));
    EXPECT_FALSE(ranges.covers({last, 10}));
    EXPECT_FALSE(ranges.retire(pages(0, 1)));
    EXPECT_EQ(recorder.made, 0);
}

TEST_F(CountedRangesTest, WhatIsLeftEndsWithThem) {
    Recorder other;
    {
        CountedRanges short_lived(other);
        EXPECT_TRUE(short_lived.attach(pages(0, 2)));
        EXPECT_TRUE(short_lived.attach(pages(4, 5)));
        EXPECT_TRUE(short_lived.retire(pages(4, 5)));
        EXPECT_EQ(other.known.size(), 2U);
    }
    EXPECT_TRUE(other.known.empty());
}

// Compares with a count for each page: only attached or retired pages are registered, and covered pages are registered.
TEST_F(CountedRangesTest, AnyOrderOfOverlappingRangesIsCountedRight) {
    constexpr std::uintptr_t kPages = 24;
    std::uint64_t state = 7;
    const auto draw = [&state](std::uint64_t below) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        return (state >> 33U) % below;
    };
    std::vector<CountedRanges::Range> attached;
    for (int step = 0; step < 20'000; ++step) {
        if (draw(2) == 0 || attached.empty()) {
            const std::uintptr_t begin = draw(kPages);
            const CountedRanges::Range wanted = pages(begin, begin + 1 + draw(kPages - begin));
            if (ranges.attach(wanted)) {
                attached.push_back(wanted);
                ASSERT_TRUE(ranges.covers(wanted));
            }
        } else {
            const auto which = attached.begin() + static_cast<std::ptrdiff_t>(draw(attached.size()));
            detach(*which);
            attached.erase(which);
        }
        Pieces known = recorder.known;
        std::sort(known.begin(), known.end());
        for (std::size_t i = 0; i < known.size(); ++i) {
            ASSERT_TRUE(i == 0 || known[i - 1].second <= known[i].first);
        }
        for (const CountedRanges::Range& range : attached) {
            const auto [begin, end] = Recorder::name(range);
            std::uintptr_t at = begin;
            for (const auto& piece : known) {
                at = piece.first <= at && at < piece.second ? piece.second : at;
            }
            ASSERT_GE(at, end);
        }
        for (std::uintptr_t page = 0; page < kPages; ++page) {
            const bool is_attached = std::any_of(attached.begin(), attached.end(), [page](const auto& range) {
                const auto [begin, end] = Recorder::name(range);
                return begin <= page && page < end;
            });
            ASSERT_TRUE(is_attached || !ranges.covers(pages(page, page + 1)));
        }
        ASSERT_EQ(known.empty(), attached.empty());
    }
}

}  // namespace
}  // namespace cairn::mem
