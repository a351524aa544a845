// The emulated context cache: the queue pairs that wait, and for how long.
#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using enum WorkOpcode;

struct Waits {
    std::uint64_t count = 0;
    Duration sum{};
};
Waits waits;

void wait(Duration span) noexcept {
    ++waits.count;
    waits.sum = waits.sum + span;
}

struct EmulatedContexts : EnginePair {
    static constexpr std::size_t kPairs = 5;

    void begin(std::uint32_t contexts) {
        EngineConfig config;
        config.context_cache = {contexts, nanoseconds(300), wait};
        start(config);
        waits = {};
        ends.clear();
        for (std::size_t i = 0; i < kPairs; ++i) {
            ends.push_back(connect());
        }
    }
    // Makes one short WRITE on each of these queue pairs, in this order; each is acknowledged before the next one.
    void write(std::initializer_list<std::size_t> order, std::uint32_t bytes = 8) {
        for (const std::size_t one : order) {
            ASSERT_EQ(a->post(*ends[one].first, request(RdmaWrite), 0, bytes), PostVerdict::Posted);
            run();
        }
    }
    std::uint64_t hits() const { return a->engine.counters().of(EngineCounter::ContextHits); }
    std::uint64_t misses() const { return a->engine.counters().of(EngineCounter::ContextMisses); }

    std::vector<Ends> ends;
};

TEST_F(EmulatedContexts, WaitsForAContextThatIsNotThere) {
    begin(3);
    write({0, 1, 2});
    EXPECT_EQ(misses(), 3U);
    write({0, 1, 2, 2, 1, 0});
    EXPECT_EQ(misses(), 3U);
    EXPECT_EQ(hits(), 6U);
    EXPECT_EQ(waits.count, 3U);
    EXPECT_EQ(waits.sum, nanoseconds(900));
}

TEST_F(EmulatedContexts, TheLeastRecentlyUsedGivesWay) {
    begin(3);
    write({0, 1, 2, 0, 3});  // 1 gives way
    EXPECT_EQ(misses(), 4U);
    write({0, 2, 3});
    EXPECT_EQ(misses(), 4U);
    write({1});  // 0 gives way
    EXPECT_EQ(misses(), 5U);
    write({2, 3, 1});
    EXPECT_EQ(misses(), 5U);
    write({0});
    EXPECT_EQ(misses(), 6U);
}

TEST_F(EmulatedContexts, InTurnOneMoreThanThereIsRoomForMissesAlways) {
    begin(4);
    for (int round = 0; round < 10; ++round) {
        write({0, 1, 2, 3, 4});
    }
    EXPECT_EQ(misses(), 50U);
    EXPECT_EQ(hits(), 0U);
}

TEST_F(EmulatedContexts, TheNextPacketsOfAMessageFindTheContext) {
    begin(1);
    write({0}, 3 * 4096);
    EXPECT_EQ(misses(), 1U);
    EXPECT_EQ(hits(), 2U);
}

// Acknowledgements and answers to READs need no context.
TEST_F(EmulatedContexts, WhatComesAndItsAnswersNeedNone) {
    begin(1);
    write({0, 1, 2, 3, 4});
    EXPECT_EQ(b->engine.counters().of(EngineCounter::ContextMisses), 0U);
    ASSERT_EQ(a->post(*ends[0].first, request(RdmaRead), 0, 64), PostVerdict::Posted);
    run();
    EXPECT_EQ(misses(), 6U);
    EXPECT_EQ(
        b->engine.counters().of(EngineCounter::ContextMisses) + b->engine.counters().of(EngineCounter::ContextHits),
        0U);
    EXPECT_EQ(done(a->sends).size(), 6U);
}

TEST_F(EmulatedContexts, AQueuePairThatEndsLeavesItsPlace) {
    begin(2);
    write({0, 1});
    a->engine.destroy_rc(*ends[0].first);
    write({2, 1, 2});
    EXPECT_EQ(misses(), 3U);
}

TEST_F(EmulatedContexts, DatagramsHaveTheirQueuePairsContext) {
    begin(1);
    UdQueuePair& datagrams = *a->engine.create_ud(a->pd, {}, {a->sends, a->receives}).value();
    const QpAttributes values;
    ASSERT_EQ(datagrams.modify(QpState::Init, AttributeSet::of(Attribute::Pkey, Attribute::Qkey), values),
              std::nullopt);
    ASSERT_EQ(datagrams.modify(QpState::Rtr, {}, values), std::nullopt);
    ASSERT_EQ(datagrams.modify(QpState::Rts, AttributeSet::of(Attribute::SendPsn), values), std::nullopt);
    SendRequest one;
    one.opcode = Send;
    const UdAddress to{a->port.open_path({a->port.local_address(), b->port.local_address(), 0xc000, 0}, now), Qpn{0x99},
                       Qkey{}};
    for (const std::uint64_t expected : {1U, 1U}) {
        ASSERT_EQ(datagrams.post_send({one, to}), PostVerdict::Posted);
        a->engine.wake(datagrams);
        run();
        EXPECT_EQ(misses(), expected);
    }
    write({0});
    EXPECT_EQ(misses(), 2U);
    a->engine.destroy_ud(datagrams);
    write({0});
    EXPECT_EQ(misses(), 2U);
}

TEST_F(EmulatedContexts, NobodyWaitsUnlessAskedTo) {
    begin(0);
    write({0, 1, 2, 3, 4});
    EXPECT_EQ(waits.count + misses() + hits(), 0U);
}

TEST(EmulatedContextsDeathTest, AnEmulationThatCannotWaitIsABug) {
    telemetry::CounterSet<EngineCounter> counters;
    EXPECT_DEATH(ContextCache({1, nanoseconds(1), nullptr}, counters), "wait");
}

}  // namespace
}  // namespace cairn::roce
