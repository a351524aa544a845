// When a slice ends, as a table.
#include "rpc/scalerpc/slice.hpp"

#include <gtest/gtest.h>

#include <array>

namespace cairn::scalerpc {
namespace {

// A sleeper wakes for due work, and now and then.
TEST(ScalerpcNextLook, IsWhenSomethingIsDue) {
    SliceView view;
    view.length = microseconds(100);
    EXPECT_EQ(next_look(view), microseconds(25));
    view.elapsed = microseconds(50);
    EXPECT_EQ(next_look(view), microseconds(70)) << "the next one is to be read";
    view.elapsed = microseconds(80);
    EXPECT_EQ(next_look(view), microseconds(100)) << "the end";
    view.warming = true;
    view.elapsed = microseconds(60);
    EXPECT_EQ(next_look(view), microseconds(85));
    view.elapsed = microseconds(90);
    EXPECT_EQ(next_look(view), microseconds(100));
    view.elapsed = microseconds(100);
    EXPECT_EQ(next_look(view), microseconds(125)) << "it waits for its successor";
}

TEST(ScalerpcEpochs, NoSliceHasThatOfStagedBlocks) {
    EXPECT_EQ(next_epoch(1), 2U);
    EXPECT_EQ(next_epoch(0xffffffffU), 1U);
}

struct Case {
    const char* what;
    std::int64_t elapsed_us;
    std::int64_t quiet_us;
    bool warming;
    bool warm;
    bool deserted;
    std::int64_t warmed_us;
    SliceStep step;
};

// Slices of 400 us; clients ask each 40 us.
constexpr std::array kCases{
    Case{"in the middle", 200, 1, false, false, false, 0, SliceStep::Go},
    Case{"before its end", 361, 1, false, false, false, 0, SliceStep::Warm},
    Case{"quiet from the beginning", 201, 201, false, false, false, 0, SliceStep::Warm},
    Case{"quiet for less than half of it", 250, 199, false, false, false, 0, SliceStep::Go},
    Case{"everybody has gone", 50, 1, false, false, true, 0, SliceStep::Warm},
    Case{"the next one is read", 365, 1, true, false, false, 4, SliceStep::Go},
    Case{"the next one was read, and clients ask once more", 365, 1, true, true, false, 4, SliceStep::Close},
    Case{"the next one was read early", 250, 1, true, true, false, 4, SliceStep::Go},
    Case{"over, and the next one is ready", 400, 1, true, true, false, 40, SliceStep::Switch},
    Case{"over, and the next one is not", 400, 1, true, false, false, 40, SliceStep::Go},
    Case{"over for long, and the next one was just read", 700, 1, true, true, false, 39, SliceStep::Close},
    Case{"quiet, and the next one was just read", 250, 201, true, true, false, 4, SliceStep::Switch},
    Case{"quiet, and the next one is read", 250, 201, true, false, false, 4, SliceStep::Go},
    Case{"the next one is not ready for long", 800, 1, true, false, false, 400, SliceStep::Switch},
    Case{"everybody has gone, the next one is ready", 50, 1, true, true, true, 4, SliceStep::Switch},
};

TEST(ScalerpcSliceJudge, EndsSlicesWhenTheirTimeIsOver) {
    for (const Case& one : kCases) {
        SliceView view;
        view.elapsed = microseconds(one.elapsed_us);
        view.length = microseconds(400);
        view.quiet = microseconds(one.quiet_us);
        view.drain = microseconds(40);
        view.warming = one.warming;
        view.warm = one.warm;
        view.deserted = one.deserted;
        view.warmed_for = view.ready_for = microseconds(one.warmed_us);
        EXPECT_EQ(judge_slice(view), one.step) << one.what;
    }
}

TEST(ScalerpcSliceJudge, EndsSlicesOfACommonClockInTime) {
    SliceView view;
    view.elapsed = view.length = microseconds(400);
    view.drain = microseconds(40);
    view.warming = view.warm = true;
    view.ready_for = microseconds(1);
    EXPECT_EQ(judge_slice(view), SliceStep::Close);
    view.clocked = true;
    EXPECT_EQ(judge_slice(view), SliceStep::Switch);
}

TEST(ScalerpcSliceJudge, WaitsLongerForThoseWhoNeverAsk) {
    const Duration most = milliseconds(20);
    Patience patience;
    EXPECT_EQ(patience.length(microseconds(100), most), microseconds(100));
    for (int i = 0; i < 4; ++i) {
        patience.on_slice(false);
    }
    patience.on_slice(true);
    EXPECT_EQ(patience.length(microseconds(100), most), microseconds(800));
    EXPECT_EQ(patience.length(milliseconds(30), most), milliseconds(30)) << "it is never shortened";
    for (int i = 0; i < 100; ++i) {
        patience.on_slice(false);
    }
    EXPECT_EQ(patience.length(microseconds(100), most), most);
    for (int i = 0; i < Patience::kMostDoublings; ++i) {
        patience.on_slice(true);
    }
    EXPECT_EQ(patience.length(microseconds(100), most), microseconds(100));
    Slice slice;
    slice.length = milliseconds(20);
    slice.usual = microseconds(100);
    slice.on_request(Instant{} + milliseconds(5));
    slice.on_request(Instant{} + milliseconds(6));
    EXPECT_EQ(slice.length, microseconds(5100)) << "from the first request on it has its usual length";
}

// However slow clients are, others wait for some slices at most.
TEST(ScalerpcSliceJudge, WaitsForMostClientsForSomeSlicesAtMost) {
    const Duration most = milliseconds(20);
    Patience patience;
    EXPECT_EQ(patience.for_most(microseconds(100), most), Duration{});
    patience.on_heard(microseconds(150));
    EXPECT_EQ(patience.for_most(microseconds(100), most), microseconds(300));
    for (int i = 0; i < 100; ++i) {
        patience.on_heard(microseconds(20));
    }
    EXPECT_LT(patience.for_most(microseconds(100), most), microseconds(60)) << "it is forgotten";
    for (int i = 0; i < 200; ++i) {
        patience.on_heard(milliseconds(8));
    }
    EXPECT_EQ(patience.for_most(microseconds(100), most), milliseconds(1));
    EXPECT_EQ(patience.for_most(milliseconds(5), milliseconds(10)), milliseconds(10));
}

// One in four is very slow: the others have the same mean as before.
TEST(ScalerpcSliceJudge, WaitsForNoClientThatIsMuchSlowerThanMost) {
    const Duration slice = microseconds(100);
    Patience patience;
    for (int i = 0; i < 400; ++i) {
        patience.on_heard(i % 4 == 0 ? milliseconds(5) : microseconds(40));
    }
    EXPECT_LT(patience.for_most(slice, milliseconds(20)), microseconds(200));
    EXPECT_TRUE(patience.is_slow(milliseconds(5), slice));
    EXPECT_FALSE(patience.is_slow(microseconds(100), slice)) << "a slice is no time";
    for (int i = 0; i < 400; ++i) {
        patience.on_heard(i % 4 == 0 ? microseconds(40) : milliseconds(5));
    }
    EXPECT_FALSE(patience.is_slow(milliseconds(5), slice)) << "most are as slow";
}

// If reading a client's requests takes longer than a slice, every READ would be in vain.
TEST(ScalerpcSliceJudge, WaitsForSlowClientsForAsLongAsTheyNeed) {
    SliceView view;
    view.elapsed = view.warmed_for = microseconds(900);
    view.length = microseconds(400);
    view.warming = true;
    EXPECT_EQ(judge_slice(view), SliceStep::Switch);
    view.patience = microseconds(901);
    EXPECT_EQ(judge_slice(view), SliceStep::Go);
    view.warm = true;
    EXPECT_EQ(judge_slice(view), SliceStep::Switch) << "they are ready";
    view.warm = false;
    view.warmed_for = view.patience;
    EXPECT_EQ(judge_slice(view), SliceStep::Switch) << "somebody may be dead";
}

}  // namespace
}  // namespace cairn::scalerpc
