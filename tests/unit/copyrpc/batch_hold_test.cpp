// Batches that wait for more messages.
#include "rpc/copyrpc/batch_hold.hpp"

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

constexpr HoldConfig kFour{4, microseconds(10)};

struct CopyrpcBatchHold : testing::Test {
    BatchHold hold;
    Instant now{1'000'000};

    // Sends batches of one message at this distance.
    void leave(int batches, Duration apart) {
        for (int i = 0; i < batches; ++i) {
            now = now + apart;
            hold.on_batch(1, now);
        }
    }
};

TEST_F(CopyrpcBatchHold, NothingIsHeldUntilMessagesAreKnownToComeOften) {
    EXPECT_EQ(hold.until(kFour, 1, now), now);
    leave(100, microseconds(1));
    EXPECT_EQ(hold.until(kFour, 1, now), now + kFour.most);
    leave(1, milliseconds(1));
    EXPECT_EQ(hold.until(kFour, 1, now), now) << "after silence";
}

TEST_F(CopyrpcBatchHold, ABatchWithADeadlineLeavesAtOnce) {
    leave(100, microseconds(1));
    hold.hurry();
    EXPECT_EQ(hold.until(kFour, 1, now), now);
    hold.on_batch(1, now = now + microseconds(1));
    EXPECT_GT(hold.until(kFour, 1, now), now) << "the next one has none";
}

TEST_F(CopyrpcBatchHold, WhatIsLikelyToComeTooLateIsNotAwaited) {
    leave(200, microseconds(4));  // 3 more take 12 us
    EXPECT_EQ(hold.until(kFour, 1, now), now);
    EXPECT_GT(hold.until(kFour, 2, now), now);
}

TEST_F(CopyrpcBatchHold, ABatchLeavesOnceItHasItsMessagesOrItsTimeIsOver) {
    leave(100, microseconds(1));
    const Instant began = now;
    EXPECT_EQ(hold.until(kFour, 1, now), began + kFour.most);
    now = now + microseconds(3);
    EXPECT_EQ(hold.until(kFour, 3, now), began + kFour.most) << "since the first one came";
    EXPECT_EQ(hold.until(kFour, 4, now), now);
    EXPECT_EQ(hold.until(kFour, 5, now), now);
}

TEST_F(CopyrpcBatchHold, AMessageOfALargeBatchCameSoonAfterTheOneBefore) {
    for (int i = 0; i < 100; ++i) {
        now = now + microseconds(20);
        hold.on_batch(10, now);
    }
    EXPECT_GT(hold.until(kFour, 1, now), now);
}

EndpointConfig holding() {
    EndpointConfig config;
    config.hold = {4, microseconds(100)};
    return config;
}

class CopyrpcHolding : public TwoHosts {
protected:
    CopyrpcHolding() : TwoHosts(holding(), EndpointConfig{}), session(connect()) {}
    // Posts a call a turn. Returns the batches that the client sent for them.
    std::uint64_t batches_for(std::uint64_t calls) {
        const std::uint64_t before = client.endpoint->statistics().batches_sent;
        for (std::uint64_t i = 0; i < calls; ++i) {
            EXPECT_EQ(post(session, next++).verdict, PostVerdict::Posted);
            run(microseconds(10), microseconds(10));
        }
        return client.endpoint->statistics().batches_sent - before;
    }

    SessionId session;
    std::uint64_t next = 0;
};

TEST_F(CopyrpcHolding, CallsThatComeOftenLeaveTogether) {
    (void)batches_for(100);
    EXPECT_LT(batches_for(400), 150U);
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 500U);
}

// The worker may sleep until then.
TEST_F(CopyrpcHolding, TheLastOnesAreHeldNoLongerThanAllowed) {
    (void)batches_for(101);
    EXPECT_LT(results.size(), 101U);
    EXPECT_LE(client.worker->next_deadline(), now + microseconds(100));
    run(microseconds(150), microseconds(10));
    EXPECT_EQ(count(CallStatus::Ok), 101U);
}

TEST_F(CopyrpcHolding, ACallThatComesAloneLeavesAtOnce) {
    (void)batches_for(100);
    run(milliseconds(50));
    EXPECT_EQ(batches_for(1), 1U);
}

class CopyrpcHoldingByReads : public TwoHosts {
protected:
    static EndpointConfig config() {
        EndpointConfig config = holding();
        config.flow = Flow::Read;
        return config;
    }
    CopyrpcHoldingByReads() : TwoHosts(config()) {}
};

TEST_F(CopyrpcHoldingByReads, AHeldBatchAsksForNoRoom) {
    const SessionId session = connect();
    for (std::uint64_t tag = 0; tag < 400; ++tag) {
        ASSERT_EQ(post(session, tag).verdict, PostVerdict::Posted);
        run(microseconds(10), microseconds(10));
    }
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 400U);
    EXPECT_LT(client.endpoint->statistics().words_read, client.endpoint->statistics().batches_sent / 10);
}

TEST(CopyrpcHoldConfig, HeldForTooLongIsRefused) {
    Host host("10.0.0.1", 1, {});
    EndpointConfig config;
    config.hold = {4, milliseconds(2)};
    EXPECT_FALSE(Endpoint::create(config, *host.device, *host.home, host.pool).ok());
}

}  // namespace
}  // namespace cairn::copyrpc
