// The stages of a turn in the report of cairn-rpcbench, with a clock that stands still unless the test advances it.
#include "apps/rpcbench/stage_watch.hpp"

#include <gtest/gtest.h>

#include "tests/support/wire_port.hpp"

namespace cairn::rpcbench {
namespace {

struct StillClock {
    static inline Instant time{1000};
    [[nodiscard]] Instant now() const noexcept { return time; }
};

// The system's part of a turn: it reads, runs a handler, and composes.
class Stand final : public worker::Tenant {
public:
    explicit Stand(HandlerWatch& watch) : watch_(watch) {}
    bool on_turn(Instant) noexcept override {
        pass(2);
        watch_.begin_handler();
        pass(30);
        watch_.end_handler();
        pass(3);
        if (tells) {
            watch_.on_taken();
        }
        pass(400);
        return true;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }
    static void pass(std::int64_t ns) { StillClock::time = StillClock::time + Duration{ns}; }

    bool tells = true;

private:
    HandlerWatch& watch_;
};

class StageWatchTest : public testing::Test {
protected:
    void turn(bool worked = true) {
        watch.begin_turn();
        Stand::pass(1000);
        (void)worker->turn(Instant{});  // the watch's own turn ends the receiving, then comes the stand's
        watch.end_handling();
        Stand::pass(20000);
        watch.end_turn(worked);
    }

    test::WirePort port{"10.0.0.1", 64};
    std::unique_ptr<worker::Worker> worker = worker::Worker::create(port, roce::kDatagramsOnly, {}).value();
    StageWatch<StillClock> watch{*worker};
    Stand stand{watch};
    worker::Tenancy tenancy = worker->add(stand);
};

TEST_F(StageWatchTest, TellsEachStageOnceAndItsPartsBeside) {
    turn();
    turn();
    watch.look(4);
    const StageTimes& times = watch.times();
    EXPECT_EQ(times.receive.ns, 2 * 1000);
    EXPECT_EQ(times.handle.ns, 2 * 435);
    EXPECT_EQ(times.send.ns, 2 * 20000);
    EXPECT_EQ(times.idle.ns, 0);
    EXPECT_EQ(times.handler.ns, 2 * 30);
    EXPECT_EQ(times.judge.ns, 2 * 5);
    EXPECT_EQ(times.compose.ns, 2 * 400);
    EXPECT_EQ(times.calls, 4U);
}

TEST_F(StageWatchTest, OfASystemThatDoesNotTellItKnowsNoParts) {
    stand.tells = false;
    turn();
    watch.look(1);
    EXPECT_EQ(watch.times().handle.ns, 435);
    EXPECT_EQ(watch.times().handler.ns, 30);
    EXPECT_EQ(watch.times().judge.ns, 0);
    EXPECT_EQ(watch.times().compose.ns, 0);
}

TEST_F(StageWatchTest, ATurnWithoutWorkIsIdleAndTimeWithoutCallsDoesNotCount) {
    turn(false);
    watch.look(1);
    EXPECT_EQ(watch.times().idle.ns, 21435);
    EXPECT_EQ(watch.times().receive.ns + watch.times().handle.ns + watch.times().send.ns, 0);
    EXPECT_EQ(watch.times().handler.ns + watch.times().judge.ns + watch.times().compose.ns, 0);
    turn();
    watch.look(1);  // no more
    EXPECT_EQ(watch.times().receive.ns, 0);
}

}  // namespace
}  // namespace cairn::rpcbench
