// lib/telemetry: histogram and counters.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "lib/telemetry/counters.hpp"
#include "lib/telemetry/histogram.hpp"

namespace cairn::telemetry {

#define CAIRN_TEST_COUNTERS(X)                           \
    X(Received, "received", "packets that came in")      \
    X(BadIcrc, "bad_icrc", "packets damaged on the way") \
    X(TxFull, "tx_queue_full_2", "the port takes packets too slowly")

CAIRN_DECLARE_COUNTERS(TestCounter, CAIRN_TEST_COUNTERS);

namespace {

TEST(Histogram, CutsTheWholeRangeIntoBucketsWithoutGapOrOverlap) {
    for (std::size_t i = 0; i + 1 < Histogram::kBuckets; ++i) {
        const std::uint64_t highest = Histogram::highest_in(i);
        ASSERT_EQ(Histogram::bucket_of(highest), i);
        ASSERT_EQ(Histogram::bucket_of(highest + 1), i + 1);
    }
}

TEST(Histogram, HasBucketsNoWiderThanASixtyFourthOfTheirValues) {
    for (std::size_t i = 1; i < Histogram::kBuckets; ++i) {
        const std::uint64_t lowest = Histogram::highest_in(i - 1) + 1;
        ASSERT_LE(Histogram::highest_in(i) - lowest, lowest / 64) << "bucket " << i;
    }
}

TEST(Histogram, AnswersPercentilesWithinItsError) {
    Histogram histogram;
    std::vector<std::uint64_t> values;
    std::uint64_t value = 3;
    for (int i = 0; i < 5'000; ++i) {
        value = value * 6364136223846793005U + 1442695040888963407U;
        values.push_back(value >> (static_cast<unsigned>(i) % 60U));
        histogram.record(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double q : {0.0002, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto rank = static_cast<std::size_t>(std::ceil(q * 5'000 - 1e-6));
        const std::uint64_t exact = values[rank - 1];
        EXPECT_GE(histogram.percentile(q), exact) << q;
        EXPECT_LE(histogram.percentile(q) - exact, exact / 64) << q;
    }
    EXPECT_EQ(histogram.percentile(0), values.front());
    EXPECT_EQ(histogram.percentile(1), values.back());
    EXPECT_EQ(histogram.count(), 5'000U);
}

TEST(Histogram, CountsSmallValuesExactly) {
    Histogram histogram;
    for (std::uint64_t i = 1; i <= 100; ++i) {
        histogram.record(i);
    }
    EXPECT_EQ(histogram.percentile(0.5), 50U);
    EXPECT_EQ(histogram.percentile(0.07), 7U);  // 0.07 * 100 is more than 7 in binary
    EXPECT_EQ(histogram.percentile(0.071), 8U);
    EXPECT_EQ(histogram.min(), 1U);
    EXPECT_EQ(histogram.max(), 100U);
    EXPECT_DOUBLE_EQ(histogram.mean(), 50.5);
}

TEST(Histogram, NeverAnswersMoreThanTheMaximum) {
    Histogram histogram;
    histogram.record(1'000'001);
    EXPECT_EQ(histogram.percentile(0.5), 1'000'001U);
    histogram.record(std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(histogram.percentile(1), std::numeric_limits<std::uint64_t>::max());
}

TEST(Histogram, WithoutValuesAnswersZero) {
    const Histogram histogram;
    EXPECT_EQ(histogram.percentile(0.99), 0U);
    EXPECT_EQ(histogram.max(), 0U);
    EXPECT_EQ(histogram.min(), 0U);
    EXPECT_EQ(histogram.mean(), 0.0);
}

TEST(Histogram, CutsFractionsOutsideItsRange) {
    Histogram histogram;
    histogram.record(5);
    histogram.record(9);
    EXPECT_EQ(histogram.percentile(-1), 5U);
    EXPECT_EQ(histogram.percentile(2), 9U);
    EXPECT_EQ(histogram.percentile(std::nan("")), 5U);
}

TEST(Histogram, MergedEqualsAllRecordedInOne) {
    Histogram left;
    Histogram right;
    Histogram both;
    for (std::uint64_t i = 0; i < 1'000; ++i) {
        (i % 3 == 0 ? left : right).record(i * i);
        both.record(i * i);
    }
    left.merge(right);
    left.merge(Histogram{});
    EXPECT_EQ(left.count(), both.count());
    EXPECT_EQ(left.min(), both.min());
    EXPECT_EQ(left.max(), both.max());
    EXPECT_EQ(left.mean(), both.mean());
    for (int percent = 0; percent <= 100; ++percent) {
        EXPECT_EQ(left.percentile(percent / 100.0), both.percentile(percent / 100.0));
    }
    left.clear();
    EXPECT_EQ(left.count(), 0U);
    EXPECT_EQ(left.percentile(0.5), 0U);
}

TEST(Counters, CountEachForItself) {
    CounterSet<TestCounter> counters;
    counters.count(TestCounter::BadIcrc);
    counters.count(TestCounter::BadIcrc, 4);
    counters.count(TestCounter::Received, 100);
    EXPECT_EQ(counters.of(TestCounter::BadIcrc), 5U);
    EXPECT_EQ(counters.of(TestCounter::Received), 100U);
    EXPECT_EQ(counters.of(TestCounter::TxFull), 0U);
    EXPECT_EQ(counters.total(), 105U);
}

TEST(Counters, AddUpAcrossWorkersAndSubtractAcrossTime) {
    CounterSet<TestCounter> first;
    CounterSet<TestCounter> second;
    first.count(TestCounter::Received, 3);
    const auto before = first.snapshot();
    first.count(TestCounter::Received, 4);
    second.count(TestCounter::TxFull, 2);
    auto sum = first.snapshot();
    sum += second.snapshot();
    EXPECT_EQ(sum.of(TestCounter::Received), 7U);
    EXPECT_EQ(sum.of(TestCounter::TxFull), 2U);
    EXPECT_EQ(first.snapshot().since(before).of(TestCounter::Received), 4U);
}

TEST(Counters, SayInColumnsWhatIsNotZeroAndWhatItMeans) {
    CounterSet<TestCounter> counters;
    EXPECT_EQ(text_of(counters.snapshot()), "");
    counters.count(TestCounter::BadIcrc, 12345);
    counters.count(TestCounter::TxFull);
    EXPECT_EQ(text_of(counters.snapshot()),
              "  bad_icrc         12345  packets damaged on the way\n"
              "  tx_queue_full_2      1  the port takes packets too slowly\n");
}

TEST(Counters, ListEverythingInJson) {
    CounterSet<TestCounter> counters;
    counters.count(TestCounter::TxFull, ~std::uint64_t{0});
    EXPECT_EQ(json_of(counters.snapshot()), R"({"received":0,"bad_icrc":0,"tx_queue_full_2":18446744073709551615})");
}

TEST(Counters, RefuseNamesThatJsonWouldHaveToEscape) {
    EXPECT_TRUE(well_formed(counter_texts(TestCounter{})));
    EXPECT_FALSE(well_formed(std::array<CounterText, 1>{{{"Bad Name", "x"}}}));
    EXPECT_FALSE(well_formed(std::array<CounterText, 1>{{{"", "x"}}}));
    EXPECT_FALSE(well_formed(std::array<CounterText, 1>{{{"name", ""}}}));
}

TEST(Counters, AreReadWholeWhileAnotherThreadCounts) {
    CounterSet<TestCounter> counters;
    constexpr std::uint64_t kStep = (std::uint64_t{1} << 32U) + 1;  // both halves of the word change together
    std::atomic<bool> done = false;
    std::thread writer([&] {
        for (int i = 0; i < 100'000; ++i) {
            counters.count(TestCounter::Received, kStep);
        }
        done.store(true);
    });
    bool always_whole = true;
    while (!done.load()) {
        always_whole = always_whole && counters.of(TestCounter::Received) % kStep == 0;
    }
    writer.join();
    EXPECT_TRUE(always_whole);
    EXPECT_EQ(counters.of(TestCounter::Received), 100'000 * kStep);
}

TEST(Counters, OfTwoThreadsShareNoCacheLine) {
    static_assert(alignof(CounterSet<TestCounter>) == 64);
    static_assert(sizeof(CounterSet<TestCounter>) % 64 == 0);
    const auto sets = std::make_unique<CounterSet<TestCounter>[]>(2);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&sets[1]) - reinterpret_cast<std::uintptr_t>(&sets[0]), 64U);
}

}  // namespace
}  // namespace cairn::telemetry
