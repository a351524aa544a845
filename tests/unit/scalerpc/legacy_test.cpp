// Types that take longer than a slice.
#include <utility>

#include "tests/unit/scalerpc/threads.hpp"

namespace cairn::scalerpc {
namespace {

Instant fake_time{1'000'000};  // NOLINT: what the endpoint's clock shows

// A few late answers may be due to the host; many are due to the type.
TEST_F(ScalerpcBackground, ATypeThatIsOftenAnsweredAfterItsSliceGoesToAThread) {
    begin_with_threads(small(64), 1);
    server->endpoint->set_handler(
        kSlow,
        [](void* context, const RequestOf& request) {
            static_cast<std::vector<rpc::KeptRequest>*>(context)->push_back(request.keep());
        },
        &kept);
    ASSERT_TRUE(server->endpoint->set_legacy_handler(kSlow, echo, &in_background, 200).ok());
    const auto ask = [this](Duration answered_after) {
        post(0, 64, kSlow);
        run(microseconds(50));
        ASSERT_EQ(kept.size(), 1U);
        run(answered_after);
        EXPECT_TRUE(server->endpoint->refuse(kept[0], now));
        kept.clear();
        run(milliseconds(1));
    };
    for (int i = 0; i < 3; ++i) {
        ask(milliseconds(1));
    }
    for (int i = 0; i < 5; ++i) {
        ask(microseconds(10));
    }
    EXPECT_EQ(counted().legacy_types, 0U);
    ask(milliseconds(1));
    ask(milliseconds(1));
    EXPECT_EQ(counted().legacy_types, 0U) << "the first ones are long ago";
    ask(milliseconds(1));
    ask(milliseconds(1));
    EXPECT_EQ(counted().legacy_types, 1U);
    post(0, 64, kSlow);
    run(milliseconds(1));
    EXPECT_TRUE(kept.empty());
    (void)threads->run_one();
    run(milliseconds(3));
    EXPECT_EQ(in_background, 1);
    EXPECT_EQ(counted().legacy_requests, 1U);
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
}

class ScalerpcLongHandlers : public ScalerpcBackground {
protected:
    void begin_with_clock() {
        EndpointConfig config = small(64);
        config.clock = [] { return fake_time; };
        begin_with_threads(config, 1);
        server->endpoint->set_handler(
            kSlow,
            [](void* context, const RequestOf& request) {
                auto& self = *static_cast<ScalerpcLongHandlers*>(context);
                ++self.in_worker;
                fake_time = fake_time + self.takes;
                request.endpoint.answer(request.handle, request.payload, request.now);
            },
            this);
        ASSERT_TRUE(server->endpoint->set_legacy_handler(kSlow, echo, &in_background, 200).ok());
    }
    void ask(int times, Duration each) {
        takes = each;
        for (int i = 0; i < times; ++i) {
            post(0, 64, kSlow);
            run(microseconds(100));
            (void)threads->run_one();
            run(microseconds(100));
        }
    }
    // Starts again with new counts.
    void expect_executed(int by_worker, int by_threads) {
        EXPECT_EQ(std::exchange(in_worker, 0), by_worker);
        EXPECT_EQ(std::exchange(in_background, 0), by_threads);
        EXPECT_EQ(count(CallStatus::Ok), results.size());
    }

    Duration takes{};
};

TEST_F(ScalerpcLongHandlers, AStallGivesNoTypeToThreads) {
    begin_with_clock();
    ask(3, milliseconds(3));
    ask(8, microseconds(100));
    ask(3, milliseconds(3));
    expect_executed(14, 0);
    EXPECT_EQ(counted().legacy_types + counted().legacy_requests, 0U);
}

TEST_F(ScalerpcLongHandlers, TheyRunOnThreadsAndAreTriedAgain) {
    begin_with_clock();
    ask(6, microseconds(101));
    expect_executed(4, 2);
    EXPECT_EQ(counted().legacy_types, 1U);
    run(seconds(1));
    ask(3, microseconds(101));
    expect_executed(1, 2);
    EXPECT_EQ(counted().legacy_types, 2U);
    EXPECT_EQ(counted().legacy_requests, 4U);
    run(seconds(1));
    ask(8, microseconds(10));
    ask(3, microseconds(101));
    expect_executed(11, 0);
}

// A request may wait for a thread when its type is tried again.
TEST_F(ScalerpcLongHandlers, RequestsThatWaitForAThreadGetOne) {
    begin_with_clock();
    ask(4, microseconds(101));
    for (int i = 0; i < 4; ++i) {
        post(0, 64, kSlow);
    }
    run(milliseconds(1100));
    post(0, 64, kSlow);
    run(milliseconds(1));
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(threads->run_one());
        run(milliseconds(1));
    }
    expect_executed(5, 4);
}

}  // namespace
}  // namespace cairn::scalerpc
