// The medium for tests of crashes: the writes that may be lost, and those that may not.
#include "tests/support/recording_medium.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace cairn::test {
namespace {

using Image = RecordingMedium::Image;

constexpr std::size_t kBytes = std::size_t{64} << 10U;
constexpr int kCrashes = 400;

class Recording : public testing::Test {
protected:
    void store(std::size_t at, std::uint64_t value) {
        std::memcpy(medium_->memory().data() + at, &value, sizeof value);
    }
    void flush(std::size_t at, std::size_t bytes = 8) { medium_->flush(medium_->memory().data() + at, bytes); }
    void persist(std::size_t at, std::uint64_t value) {
        store(at, value);
        flush(at);
        medium_->fence();
    }
    static std::uint64_t word(const Image& image, std::size_t at) {
        std::uint64_t value = 0;
        std::memcpy(&value, image.data() + at, sizeof value);
        return value;
    }
    // Returns the values that a word may have after a crash at this moment.
    std::set<std::uint64_t> possible(std::size_t at) {
        std::set<std::uint64_t> values;
        for (int i = 0; i < kCrashes; ++i) {
            values.insert(word(medium_->crash(random_), at));
        }
        return values;
    }

    std::unique_ptr<RecordingMedium> medium_ = RecordingMedium::of_zeros(kBytes);
    sim::Random random_{1};
};

using Values = std::set<std::uint64_t>;

TEST_F(Recording, AStoreThatIsNotFlushedMayComeAndNeedNot) {
    store(256, 7);
    EXPECT_EQ(word(medium_->crash_none(), 256), 0U);
    EXPECT_EQ(word(medium_->crash_all(), 256), 7U);
    EXPECT_EQ(possible(256), (Values{0, 7}));
    medium_->fence();
    EXPECT_EQ(word(medium_->crash_none(), 256), 0U);
}

TEST_F(Recording, AFlushThatIsNotFencedMayComeAndNeedNot) {
    store(256, 7);
    flush(256);
    EXPECT_EQ(word(medium_->crash_none(), 256), 0U);
    EXPECT_EQ(possible(256), (Values{0, 7}));
    EXPECT_EQ(medium_->unfenced_lines(), 1U);
}

TEST_F(Recording, WhatIsFlushedAndFencedIsAlwaysThere) {
    persist(256, 7);
    EXPECT_EQ(word(medium_->crash_none(), 256), 7U);
    EXPECT_EQ(possible(256), (Values{7}));
    EXPECT_EQ(medium_->unfenced_lines(), 0U);
}

TEST_F(Recording, AStoreAfterTheFlushIsNotMadeDurableByTheFence) {
    store(256, 7);
    flush(256);
    store(256, 8);
    EXPECT_EQ(possible(256), (Values{0, 7, 8}));
    medium_->fence();
    EXPECT_EQ(word(medium_->crash_none(), 256), 7U);
    EXPECT_EQ(possible(256), (Values{7, 8}));
}

TEST_F(Recording, OfTwoFlushesOfALineTheLaterOneCounts) {
    store(256, 7);
    flush(256);
    store(256, 8);
    flush(256);
    medium_->fence();
    EXPECT_EQ(possible(256), (Values{8}));
}

TEST_F(Recording, AStoreThatWasTakenBackMayHaveComeAllTheSame) {
    store(256, 7);
    flush(256);
    store(256, 0);
    EXPECT_EQ(possible(256), (Values{0, 7}));
}

TEST_F(Recording, AFlushTakesTheLinesThatHoldItsBytesAndNoOthers) {
    for (std::size_t at = 0; at < 512; at += 8) {
        store(at, 7);
    }
    flush(127, 66);  // from the last byte of line 1 to the first of line 3
    flush(400, 0);
    EXPECT_EQ(medium_->flushed_lines(), 3U);
    medium_->fence();
    const Image image = medium_->crash_none();
    for (std::size_t at = 0; at < 512; at += 8) {
        EXPECT_EQ(word(image, at), at >= 64 && at < 256 ? 7U : 0U) << at;
    }
}

TEST_F(Recording, ACopyIsDurableAfterTheFenceAndItsNeighboursAreNot) {
    const std::vector<std::uint8_t> source(200, 9);
    store(248, 7);
    store(456, 7);
    medium_->copy_nt(medium_->memory().data() + 256, source.data(), source.size());
    EXPECT_EQ(word(medium_->crash_all(), 256), 0x0909090909090909U);
    EXPECT_EQ(possible(448), (Values{0, 0x0909090909090909U}));
    medium_->fence();
    EXPECT_EQ(possible(256), (Values{0x0909090909090909U}));
    EXPECT_EQ(possible(448), (Values{0x0909090909090909U}));
    EXPECT_EQ(possible(456), (Values{0, 7}));
    EXPECT_EQ(word(medium_->crash_none(), 248), 0U);
    EXPECT_EQ(medium_->flushed_lines(), 4U);
}

TEST_F(Recording, LinesTearBetweenWordsOfEightBytesAndNeverWithin) {
    std::uint8_t* const line = medium_->memory().data() + 128;
    std::memset(line, 0xff, 64);
    flush(128, 64);
    std::memset(line, 0xee, 64);
    std::set<std::uint64_t> words;
    std::set<bool> whole;
    for (int i = 0; i < kCrashes; ++i) {
        const Image image = medium_->crash(random_);
        for (std::size_t at = 128; at < 192; at += 8) {
            words.insert(word(image, at));
        }
        whole.insert(std::memcmp(image.data() + 128, image.data() + 136, 56) == 0);
    }
    EXPECT_EQ(words, (Values{0, 0xeeeeeeeeeeeeeeeeU, 0xffffffffffffffffU}));
    EXPECT_EQ(whole, (std::set<bool>{false, true}));
}

TEST_F(Recording, LinesComeIndependentlyOfTheirOrder) {
    store(0, 1);
    store(32768, 2);
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    for (int i = 0; i < kCrashes; ++i) {
        const Image image = medium_->crash(random_);
        seen.emplace(word(image, 0), word(image, 32768));
    }
    EXPECT_EQ(seen.size(), 4U);
}

TEST_F(Recording, SomeCrashesLoseNearlyAllAndSomeNearlyNothing) {
    for (std::size_t at = 0; at < kBytes; at += 8) {
        store(at, 7);
    }
    std::set<std::uint64_t> arrived;
    for (int i = 0; i < kCrashes; ++i) {
        const Image image = medium_->crash(random_);
        std::uint64_t words = 0;
        for (std::size_t at = 0; at < kBytes; at += 8) {
            words += word(image, at) == 7 ? 1U : 0U;
        }
        arrived.insert(words * 10 / (kBytes / 8));
    }
    EXPECT_TRUE(arrived.contains(0)) << "no crash loses nearly all";
    EXPECT_TRUE(arrived.contains(9)) << "no crash loses nearly nothing";
}

TEST_F(Recording, AHookSeesEachFenceBeforeItActs) {
    std::vector<std::uint64_t> numbers;
    std::vector<std::uint64_t> durable;
    medium_->set_on_fence([&] {
        numbers.push_back(medium_->fences());
        durable.push_back(word(medium_->crash_none(), 256));
    });
    persist(256, 7);
    persist(256, 8);
    medium_->set_on_fence({});
    persist(256, 9);
    EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(durable, (std::vector<std::uint64_t>{0, 7}));
    EXPECT_EQ(medium_->fences(), 3U);
}

TEST_F(Recording, ARestartFindsTheImageAndHoldsItForDurable) {
    persist(256, 7);
    store(512, 8);
    medium_ = RecordingMedium::restart(medium_->crash_none());
    EXPECT_EQ(medium_->granularity(), fs::Granularity::CacheLine);
    EXPECT_EQ(medium_->memory().size(), kBytes);
    EXPECT_EQ(word(medium_->crash_all(), 256), 7U);
    EXPECT_EQ(word(medium_->crash_all(), 512), 0U);
    store(256, 9);
    EXPECT_EQ(word(medium_->crash_none(), 256), 7U);
}

TEST_F(Recording, OneSeedGivesOneCrash) {
    for (std::size_t at = 0; at < kBytes; at += 72) {
        store(at, at);
    }
    sim::Random again{1};
    EXPECT_EQ(medium_->crash(random_), medium_->crash(again));
}

TEST_F(Recording, WhatIsOutsideOfTheMemoryIsABug) {
    std::uint8_t* const end = medium_->memory().data() + kBytes;
    const std::uint8_t source[16] = {};
    medium_->flush(end, 0);
    medium_->flush(end - 1, 1);
    EXPECT_DEATH(medium_->flush(end - 1, 2), "recording_medium");
    EXPECT_DEATH(medium_->flush(medium_->memory().data() - 1, 1), "recording_medium");
    EXPECT_DEATH(medium_->flush(medium_->memory().data(), kBytes + 1), "recording_medium");
    EXPECT_DEATH(medium_->copy_nt(end - 8, source, 16), "recording_medium");
    EXPECT_DEATH(medium_->copy_nt(end - 16, end - 12, 8), "recording_medium");
}

}  // namespace
}  // namespace cairn::test
