// A shard on a worker without a network: channels that are opened, used, broken and closed.
#include "fs/daemon/shard_tenant.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/unit/fs_daemon/tenant_fixture.hpp"

namespace cairn::fs {
namespace {

using test::clock_now;

TEST_F(ShardTenantTest, ACallIsAnswered) {
    const auto channel = open();
    EXPECT_EQ(call<AttributesAnswer>(*channel, StatRequest{kRoot}).attributes.id, kRoot);
    EXPECT_EQ(counted(TenantCounter::Calls), 1U);
    EXPECT_EQ(counted(TenantCounter::Turns), 1U);
}

TEST_F(ShardTenantTest, AWorkerWithNothingToDoSleeps) {
    EXPECT_GT(tenant->next_deadline(), now + milliseconds(100));
    const auto channel = open();
    EXPECT_GT(tenant->next_deadline(), now + milliseconds(100));
    (void)ask(*channel, StatRequest{kRoot});
    EXPECT_LE(tenant->next_deadline(), now);
}

TEST_F(ShardTenantTest, AClientIsWhoItsSocketSays) {
    const auto channel = open(kClient, 0, 1000);
    const auto made = call<WalkAnswer>(*channel, CreateRequest{kRoot, S_IFREG | 0600, 0, true, "mine", ""});
    EXPECT_EQ(call<AttributesAnswer>(*channel, StatRequest{made.attributes.id}).attributes.uid, 1000U);
}

TEST_F(ShardTenantTest, ChannelsOfOneClientHaveSlotsOfTheirOwn) {
    const auto one = open(kClient, 0);
    const auto two = open(kClient, 1);
    // If channels shared slots, calls with the same slot and sequence number would be taken for a call and its retry.
    const auto create = [](Channel& channel, const char* name) {
        const std::uint32_t slot = *channel.end.take_slot();
        EXPECT_EQ(slot, 0U);
        const CreateRequest request{kRoot, S_IFREG | 0600, 0, true, name, ""};
        channel.end.ask(slot, put_request(channel.end.request(slot), {.sequence = 9}, request));
        return slot;
    };
    const std::uint32_t first = create(*one, "a");
    const std::uint32_t second = create(*two, "b");
    turn();
    EXPECT_NE(answer<WalkAnswer>(*one, first).attributes.id, answer<WalkAnswer>(*two, second).attributes.id);
    EXPECT_EQ(counted(TenantCounter::Repeated), 0U);
}

TEST_F(ShardTenantTest, ATurnTakesSoManyCallsAndNoChannelWaitsForAnother) {
    const auto greedy = open(1);
    const auto modest = open(2);
    for (int i = 0; i != 64; ++i) {
        (void)ask(*greedy, StatRequest{kRoot});
    }
    const std::uint32_t slot = ask(*modest, StatRequest{kRoot});
    turn();
    EXPECT_EQ(counted(TenantCounter::Calls), ShardTenant::kCallsATurn);
    turn();
    EXPECT_EQ(counted(TenantCounter::Calls), 65U);
    (void)answer<AttributesAnswer>(*modest, slot);
    const auto third = open(3);
    const auto refill = [&] {
        for (std::uint32_t each = 0; each != kShape.slots; ++each) {
            if (greedy->end.answer(each)) {
                greedy->end.give_back(each);
            }
        }
        while (const auto slot_left = greedy->end.take_slot()) {
            greedy->end.ask(*slot_left, put_request(greedy->end.request(*slot_left), {}, StatRequest{kRoot}));
        }
    };
    const std::uint32_t asked = ask(*third, StatRequest{kRoot});
    for (int i = 0; i != 3; ++i) {  // as many as there are channels
        refill();
        turn();
    }
    (void)answer<AttributesAnswer>(*third, asked);
}

TEST_F(ShardTenantTest, ACallOfManyTurnsIsAnswered) {
    const auto channel = open();
    SetAttributesRequest size = long_file(*channel);
    const std::uint64_t before = counted(TenantCounter::Turns);
    EXPECT_EQ(call<AttributesAnswer>(*channel, size).attributes.size, 0U);
    EXPECT_GT(counted(TenantCounter::Turns), before + 2);
}

TEST_F(ShardTenantTest, AClientThatGoesIsForgottenOnce) {
    const auto one = open(kClient, 0);
    const auto two = open(kClient, 1);
    const auto other = open(kClient + 1);
    (void)ask(*one, StatRequest{kRoot});
    tenant->drain(kClient);  // during a request
    turn();
    EXPECT_EQ(told(ShardNews::What::Drained), 1);
    tenant->forget(kClient);
    turn();
    EXPECT_EQ(told(ShardNews::What::Forgotten), 1);
    turn();
    EXPECT_EQ(heard.size(), 2U);
    EXPECT_EQ(call<AttributesAnswer>(*other, StatRequest{kRoot}).attributes.id, kRoot);
    EXPECT_GT(tenant->next_deadline(), now + milliseconds(1));
    // The place is used again, and actions of the dead client have no effect there.
    const auto next = open(kClient + 2);
    EXPECT_EQ(call<AttributesAnswer>(*next, StatRequest{kRoot}).attributes.id, kRoot);
}

TEST_F(ShardTenantTest, AClientThatHadNoChannelDrainsToo) {
    tenant->drain(kClient);
    turn();
    EXPECT_EQ(told(ShardNews::What::Drained), 1);
}

TEST_F(ShardTenantTest, AChannelStaysWhileACallIsUnanswered) {
    const auto channel = open();
    SetAttributesRequest size = long_file(*channel);
    size.size = 0;
    const std::uint32_t slot = ask(*channel, size);
    turn();
    ASSERT_TRUE(tenant->is_unanswered());
    tenant->drain(kClient);
    turn();
    EXPECT_EQ(told(ShardNews::What::Drained), 0);
    for (int i = 0; i != 1000 && told(ShardNews::What::Drained) == 0; ++i) {
        turn();
    }
    EXPECT_EQ(told(ShardNews::What::Drained), 1);
    EXPECT_EQ(answer<AttributesAnswer>(*channel, slot).attributes.size, 0U);
}

TEST_F(ShardTenantTest, ABrokenChannelIsToldOnceAndServedNoMore) {
    const auto channel = open();
    const auto other = open(kClient, 1);
    channel->memory.slot(3).asked.store(7);
    channel->memory.head().pending.store(~std::uint64_t{0});
    turn();
    EXPECT_EQ(told(ShardNews::What::Breach), 1);
    (void)ask(*channel, StatRequest{kRoot});
    turn();
    turn();
    EXPECT_EQ(told(ShardNews::What::Breach), 1);
    EXPECT_EQ(counted(TenantCounter::Breaches), 1U);
    EXPECT_EQ(counted(TenantCounter::Calls), 0U);
    EXPECT_GT(tenant->next_deadline(), now + milliseconds(1));  // its bits do not keep the shard awake
    tenant->drain(kClient);
    turn();
    EXPECT_EQ(told(ShardNews::What::Drained), 1);
}

TEST_F(ShardTenantTest, WhatIsNoRequestIsAnswered) {
    const auto channel = open();
    const std::uint32_t slot = *channel->end.take_slot();
    channel->end.ask(slot, 3);
    turn();
    EmptyAnswer none;
    const auto head = parse_answer(channel->end.answer(slot).value(), none);
    ASSERT_TRUE(head.has_value());
    EXPECT_EQ(head->error, kErrorMalformed);
}

TEST_F(ShardTenantTest, AtTheEndNoCallIsTaken) {
    const auto channel = open();
    tenant->stop_taking();
    const std::uint32_t slot = ask(*channel, StatRequest{kRoot});
    turn();
    EXPECT_FALSE(channel->end.answer(slot).has_value());
    EXPECT_FALSE(tenant->is_unanswered());
    EXPECT_TRUE(tenant->settle().ok());
}

TEST_F(ShardTenantTest, ACallWakesASleepingWorker) {
    const auto channel = open();
    std::atomic<bool> stop = false;
    std::atomic<int> sleeps = 0;
    std::thread shard([&] {
        while (!stop) {
            if (!worker->turn(clock_now())) {
                ++sleeps;
                worker->wait(clock_now(), clock_now() + seconds(100));
            }
        }
    });
    for (int i = 0; i != 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const std::uint32_t slot = ask(*channel, StatRequest{kRoot});
        for (int tries = 0; tries != 100 && !channel->end.answer(slot); ++tries) {
            channel->end.wait(milliseconds(100));
        }
        (void)answer<AttributesAnswer>(*channel, slot);
    }
    stop = true;
    tenant->wake();
    shard.join();
    EXPECT_LT(sleeps, 100);  // none of them was short
}

}  // namespace
}  // namespace cairn::fs
