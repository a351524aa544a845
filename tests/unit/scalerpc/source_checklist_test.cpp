// The demands of the source design on an implementation (its sections 5 and 17), with its names.
#include <algorithm>

#include "tests/unit/scalerpc/many_clients.hpp"

namespace cairn::scalerpc {
namespace {

class ScalerpcSourceChecklist : public ManyClients {
protected:
    [[nodiscard]] const Slices& slices() const { return server->endpoint->slices(); }
    void keep_all_busy() {
        again = true;
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            post(i);
        }
    }
    void step() { run(microseconds(5)); }
};

// I1: only clients of the current slice are served. There is one slice at a time.
TEST_F(ScalerpcSourceChecklist, I1_OnlyTheActiveGroupIsServed) {
    begin(small(64), 40);
    keep_all_busy();
    for (int i = 0; i < 2000; ++i) {
        step();
        for (const std::uint8_t pool : {std::uint8_t{0}, std::uint8_t{1}}) {
            for (const Session* const session : slices().pools().tenants(pool)) {
                const bool serving = session->guest->state == GuestState::Serving;
                ASSERT_TRUE(!serving || pool == slices().slice().pool);
                ASSERT_TRUE(!serving || session->guest->served == slices().slice().number);
            }
        }
    }
    EXPECT_GT(counted().switches, 50U);
    again = false;
}

// I2: a pool has the blocks of one group, and no more for more clients.
TEST(ScalerpcSourceChecklistSizes, I2_ThePoolHasTheCapacityOfOneGroup) {
    EndpointConfig few;
    few.shape = {256, 4};
    few.groups.size = 40;
    few.sessions_max = 60;
    EndpointConfig many = few;
    many.sessions_max = 4096;
    EXPECT_EQ(Pools::slots_for(few), 60U);
    EXPECT_EQ(Pools::slots_for(many), 60U);
    EXPECT_EQ(Pools::bytes_for(few), Pools::bytes_for(many));
    many.features.sharing = false;
    EXPECT_GE(Pools::slots_for(many), 4096U) << "this is what sharing saves";
}

// I3: requests from before the switch are answered or kept, never forgotten.
TEST_F(ScalerpcSourceChecklist, I3_NothingIsUnprocessedAtTheSwitch) {
    begin(small(64), 40);
    keep_all_busy();
    run(milliseconds(20));
    again = false;
    run(milliseconds(20));
    EXPECT_GT(counted().switches, 100U);
    EXPECT_EQ(counted().requests_handled, executed.size());
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    check();
}

TEST(ScalerpcSourceChecklistStates, I4_I5_StatesChangeForTheirReasonsOnly) {
    using S = CallerState;
    using C = CallerCause;
    int allowed = 0;
    for (const S from : {S::Idle, S::Warmup, S::Process}) {
        for (const S to : {S::Idle, S::Warmup, S::Process}) {
            for (const C why : {C::Entry, C::Grant, C::Notice}) {
                const bool may = may_become(from, to, why);
                allowed += may ? 1 : 0;
                if (to == S::Process) {
                    EXPECT_EQ(may, why == C::Grant && from != S::Process) << "I4";
                }
                if (from == S::Process && to != S::Process) {
                    EXPECT_EQ(may, why == C::Notice && to == S::Idle) << "I5";
                }
            }
        }
    }
    EXPECT_EQ(allowed, 7);
}

TEST_F(ScalerpcSourceChecklist, PrioritiesAreUpdatedEverySlice) {
    begin(small(64), 20);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i, i < 10 ? 16 : 160);
    }
    run(milliseconds(20));
    again = false;
    double small_ones = 0;
    double large_ones = 0;
    for (std::uint16_t i = 0; i < 20; ++i) {
        const double priority = slices().groups().priority_of(SessionId{i});
        EXPECT_GT(priority, 0) << i;
        (i < 10 ? small_ones : large_ones) += priority;
    }
    EXPECT_GT(small_ones, 0);
    EXPECT_GT(large_ones, 0);
    run(milliseconds(20));
    post(0);
    run(milliseconds(2));
    for (std::size_t i = 1; i < sessions.size(); ++i) {
        post(i);
    }
    run(milliseconds(10));
    EXPECT_LT(slices().groups().priority_of(SessionId{0}), small_ones / 20) << "one call in a long slice";
}

TEST_F(ScalerpcSourceChecklist, GroupsOutsideTheirRangeAreSplitOrMerged) {
    begin(small(64), 40);
    EXPECT_GT(slices().groups().splits(), 0U);
    slices().groups().check();
    for (std::size_t i = 0; i < 36; ++i) {
        client->endpoint->disconnect(sessions[i], now);
        run(microseconds(500));
        slices().groups().check();
    }
    EXPECT_GT(slices().groups().merges(), 0U);
    EXPECT_EQ(slices().groups().size(), 1U);
}

TEST_F(ScalerpcSourceChecklist, ASwitchDrainsThenNotifiesThenSwapsThePools) {
    begin(small(64), 40);
    keep_all_busy();
    std::uint64_t looked_at = 0;
    for (int i = 0; i < 4000; ++i) {
        const std::uint64_t before = counted().switches;
        const std::uint8_t pool = slices().slice().pool;
        step();
        if (counted().switches != before + 1) {
            continue;
        }
        ++looked_at;
        ASSERT_EQ(slices().slice().pool, 1 - pool) << "swapped";
        for (const Session* const session : slices().pools().tenants(pool)) {
            const GuestState state = session->guest->state;
            ASSERT_TRUE(state == GuestState::Leaving || state == GuestState::Fetching) << "told, or never served";
            ASSERT_NE(session->guest->served, slices().slice().number);
        }
        ASSERT_EQ(server->endpoint->server().requests_kept(), 0U) << "drained";
    }
    EXPECT_GT(looked_at, 50U);
    again = false;
}

TEST_F(ScalerpcSourceChecklist, InWarmupTheEntryNamesTheBatchAndTheServerReadsIt) {
    begin(small(16), 2);
    for (int i = 0; i < 3; ++i) {
        post(0);
    }
    run(milliseconds(1));
    EXPECT_EQ(count(CallStatus::Ok), 3U);
    EXPECT_EQ(counted().requests_fetched, 3U);
    EXPECT_EQ(counted().fetches, 1U) << "neighbouring small requests are one READ";
}

TEST_F(ScalerpcSourceChecklist, InProcessRequestsAreWrittenToThePool) {
    begin(small(16), 2);
    post(0);
    run(milliseconds(1));
    const std::uint64_t fetched = counted().requests_fetched;
    EXPECT_EQ(fetched, 1U);
    for (int i = 0; i < 50; ++i) {
        post(0);
        run(microseconds(50));
    }
    EXPECT_EQ(count(CallStatus::Ok), 51U);
    EXPECT_EQ(counted().requests_fetched, fetched);
}

}  // namespace
}  // namespace cairn::scalerpc
