// Completion, receive and send queues; timers.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {
namespace {

Completion completion(std::uint64_t wr_id, Qpn qpn = Qpn{1}, bool solicited = false) {
    Completion made;
    made.wr_id = wr_id;
    made.qpn = qpn;
    made.solicited = solicited;
    return made;
}

TEST(RcCompletionQueue, KeepsOrderAndIsOverrunForGoodBeyondItsSlots) {
    CompletionQueue queue(3);
    for (std::uint64_t round = 0; round < 10; ++round) {
        EXPECT_TRUE(queue.push(completion(round * 2)));
        EXPECT_TRUE(queue.push(completion(round * 2 + 1)));
        const std::vector<Completion> got = RcHost::drain(queue);
        ASSERT_EQ(got.size(), 2U);
        EXPECT_EQ(got[0].wr_id, round * 2);
        EXPECT_EQ(got[1].wr_id, round * 2 + 1);
    }
    for (std::uint64_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(queue.push(completion(i)));
    }
    EXPECT_FALSE(queue.overrun());
    EXPECT_FALSE(queue.push(completion(3)));
    EXPECT_TRUE(queue.overrun());
    EXPECT_EQ(RcHost::drain(queue).size(), 3U);
    EXPECT_FALSE(queue.push(completion(4)));
}

TEST(RcCompletionQueue, ForgetsOneQueuePairsOnly) {
    CompletionQueue queue(8);
    for (std::uint64_t i = 0; i < 6; ++i) {
        EXPECT_TRUE(queue.push(completion(i, Qpn{static_cast<std::uint32_t>(i % 2)})));
    }
    queue.forget(Qpn{1});
    const std::vector<Completion> left = RcHost::drain(queue);
    ASSERT_EQ(left.size(), 3U);
    EXPECT_EQ(left[1].wr_id, 2U);
    EXPECT_EQ(left[2].wr_id, 4U);
}

TEST(RcCompletionQueue, AnEventIsMadeOnceAndForWhatWasAsked) {
    CompletionQueue queue(16);
    EXPECT_TRUE(queue.push(completion(0)));
    EXPECT_FALSE(queue.take_event());
    queue.arm(CompletionQueue::Arm::Solicited);
    EXPECT_TRUE(queue.push(completion(1)));
    EXPECT_FALSE(queue.take_event());
    EXPECT_TRUE(queue.push(completion(2, Qpn{1}, true)));
    EXPECT_TRUE(queue.take_event());
    EXPECT_FALSE(queue.take_event());
    EXPECT_TRUE(queue.push(completion(3, Qpn{1}, true)));
    EXPECT_FALSE(queue.take_event());  // not armed again
    EXPECT_EQ(RcHost::drain(queue).size(), 4U);
    queue.arm(CompletionQueue::Arm::Next);
    queue.arm(CompletionQueue::Arm::Solicited);  // the stronger wish stays
    EXPECT_TRUE(queue.push(completion(4)));
    EXPECT_TRUE(queue.take_event());
    queue.arm(CompletionQueue::Arm::Solicited);
    Completion failed = completion(5);
    failed.status = CompletionStatus::Flushed;
    EXPECT_TRUE(queue.push(failed));
    EXPECT_TRUE(queue.take_event());
}

// A program that polled before a completion came, and then arms and sleeps, would miss it.
TEST(RcCompletionQueue, WhatCameBehindTheLastEventAndWasNotPolledMakesOneAtOnce) {
    using Arm = CompletionQueue::Arm;
    CompletionQueue queue(16);
    EXPECT_TRUE(queue.push(completion(0)));
    queue.arm(Arm::Next);
    EXPECT_TRUE(queue.take_event());
    queue.arm(Arm::Next);  // the event reported it
    EXPECT_FALSE(queue.take_event());
    EXPECT_TRUE(queue.push(completion(1)));
    EXPECT_TRUE(queue.take_event());
    EXPECT_TRUE(queue.push(completion(2, Qpn{2})));
    EXPECT_TRUE(queue.push(completion(3, Qpn{1}, true)));
    queue.forget(Qpn{1});  // leaves one, which no event reported
    queue.arm(Arm::Solicited);
    EXPECT_FALSE(queue.take_event());
    queue.arm(Arm::Next);
    EXPECT_TRUE(queue.take_event());
    EXPECT_EQ(RcHost::drain(queue).size(), 1U);
    queue.arm(Arm::Next);
    EXPECT_FALSE(queue.take_event());
}

TEST(RcReceiveQueue, RefusesWhatItCannotHoldAndTellsItsLimit) {
    ReceiveQueue queue(3, 2);
    const std::vector<Sge> sges{{0, 3, {}}, {0, 4, {}}, {0, 5, {}}};
    EXPECT_EQ(queue.post({1, sges}), PostVerdict::TooManySges);
    for (std::uint64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(queue.post({i, std::span(sges).first(2)}), PostVerdict::Posted);
    }
    EXPECT_EQ(queue.post({9, {}}), PostVerdict::QueueFull);
    EXPECT_EQ(queue.front().bytes, 7U);
    queue.set_limit(2);
    EXPECT_EQ(queue.take().wr_id, 0U);
    EXPECT_FALSE(queue.take_limit_event());
    EXPECT_EQ(queue.take().wr_id, 1U);
    EXPECT_TRUE(queue.take_limit_event());
    EXPECT_EQ(queue.take().wr_id, 2U);
    EXPECT_FALSE(queue.take_limit_event());
    EXPECT_TRUE(queue.empty());
}

TEST(RcSendQueue, TheWordOfAnAtomicWriteNeedsNoInlineBytes) {
    SendQueue queue(2, 1, 0);
    const std::array<std::uint8_t, 9> bytes{1, 2, 3, 4, 5, 6, 7, 8, 9};
    SendRequest request;
    request.opcode = WorkOpcode::AtomicWrite;
    request.is_inline = true;
    request.inline_bytes = bytes;
    EXPECT_EQ(queue.post(request), PostVerdict::BadInline);
    request.inline_bytes = std::span(bytes).first(7);
    EXPECT_EQ(queue.post(request), PostVerdict::BadAtomic);
    request.inline_bytes = std::span(bytes).first(8);
    EXPECT_EQ(queue.post(request), PostVerdict::Posted);
    EXPECT_EQ(queue.inline_at(queue.head())[7], 8);
    request.opcode = WorkOpcode::RdmaWrite;
    EXPECT_EQ(queue.post(request), PostVerdict::BadInline);
}

TEST(RcSendQueue, EveryMisuseIsADefinedError) {
    SendQueue queue(2, 2, 16);
    const std::vector<Sge> sges{{0, 8, {}}, {0, 8, {}}, {0, 8, {}}};
    const std::vector<std::uint8_t> bytes(17);
    const auto post = [&](auto&& change) {
        SendRequest request;
        request.sges = std::span(sges).first(1);
        change(request);
        return queue.post(request);
    };
    EXPECT_EQ(post([&](SendRequest& r) { r.sges = sges; }), PostVerdict::TooManySges);
    EXPECT_EQ(post([&](SendRequest& r) { r.opcode = WorkOpcode::Count; }), PostVerdict::BadOpcode);
    EXPECT_EQ(post([&](SendRequest& r) { r.is_inline = true, r.inline_bytes = bytes; }), PostVerdict::BadInline);
    EXPECT_EQ(post([&](SendRequest& r) { r.is_inline = true, r.opcode = WorkOpcode::RdmaRead; }),
              PostVerdict::BadInline);
    EXPECT_EQ(post([&](SendRequest& r) { r.opcode = WorkOpcode::FetchAdd, r.sges = std::span(sges).first(2); }),
              PostVerdict::BadAtomic);
    const std::vector<Sge> seven{{0, 7, {}}};
    EXPECT_EQ(post([&](SendRequest& r) { r.opcode = WorkOpcode::CompareSwap, r.sges = seven; }),
              PostVerdict::BadAtomic);
    const std::vector<Sge> huge{{0, kMaxMessageBytes, {}}, {0, 1, {}}};
    EXPECT_EQ(post([&](SendRequest& r) { r.sges = huge; }), PostVerdict::TooLong);
    const std::vector<Sge> wraps{{0, 0xffffffffU, {}}, {0, 2, {}}};
    EXPECT_EQ(post([&](SendRequest& r) { r.sges = wraps; }), PostVerdict::TooLong);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(post([](SendRequest&) {}), PostVerdict::Posted);
    EXPECT_EQ(post([&](SendRequest& r) { r.is_inline = true, r.inline_bytes = std::span(bytes).first(16); }),
              PostVerdict::Posted);
    EXPECT_EQ(post([](SendRequest&) {}), PostVerdict::QueueFull);
    EXPECT_EQ(queue.inline_at(queue.head() + 1).size(), 16U);
}

// The first slots of two queues of one size may differ; those of one queue are the same.
TEST(RcSendQueue, AnEmptyOneBeginsWithTheSameSlotAndKeepsAllOthers) {
    SendQueue queue(32, 1, 16);
    queue.reuse_slots();
    const auto post = [&queue](std::uint64_t number) {
        SendRequest request;
        request.opcode = WorkOpcode::RdmaWrite;
        request.wr_id = number;
        request.is_inline = true;
        request.inline_bytes = {reinterpret_cast<const std::uint8_t*>(&number), sizeof(number)};
        return queue.post(request);
    };
    const auto is = [&queue](std::uint32_t position, std::uint64_t number) {
        std::uint64_t kept = 0;
        std::memcpy(&kept, queue.inline_at(position).data(), sizeof(kept));
        return queue.at(position).wr_id == number && kept == number;
    };
    const SendWqe* first = nullptr;
    std::uint64_t number = 0;
    for (std::uint32_t round = 0; round != 70; ++round) {
        const std::uint32_t many = 1 + round % 32;
        const std::uint32_t head = queue.head();
        for (std::uint32_t i = 0; i != many; ++i) {
            queue.fetch_next();
            ASSERT_EQ(post(number + i), PostVerdict::Posted);
        }
        ASSERT_EQ(queue.tail(), head + many);
        first = round == 0 ? &queue.at(head) : first;
        EXPECT_EQ(&queue.at(head), first);
        for (std::uint32_t i = 0; i != many; ++i) {
            ASSERT_TRUE(is(queue.head(), number + i));
            queue.pop();
        }
        number += many;
    }
}

TEST(RcTimers, AreThoseOfTheSpecification) {
    EXPECT_EQ(ack_timeout(0).ns, Instant::never().ns);
    EXPECT_EQ(ack_timeout(1).ns, 8'192);
    EXPECT_EQ(ack_timeout(31).ns, std::int64_t{4096} << 31U);
    EXPECT_EQ(rnr_delay(wire::RnrTimer{0}), microseconds(655'360));
    EXPECT_EQ(rnr_delay(wire::RnrTimer{1}), microseconds(10));
    EXPECT_EQ(rnr_delay(wire::RnrTimer{31}), microseconds(491'520));
    for (std::uint8_t code = 2; code < 32; ++code) {
        EXPECT_LT(rnr_delay(wire::RnrTimer{static_cast<std::uint8_t>(code - 1U)}), rnr_delay(wire::RnrTimer{code}));
    }
}

TEST(RcCompletionQueue, ResizedItKeepsWhatIsInIt) {
    CompletionQueue queue(4);
    std::uint64_t next_in = 0;
    std::uint64_t next_out = 0;
    for (const std::uint32_t slots : {7U, 3U, 64U, 5U, 5U, 4U}) {
        while (queue.size() < std::min(queue.slots(), 3U)) {
            ASSERT_TRUE(queue.push({next_in++}));
        }
        ASSERT_TRUE(queue.resize(slots).ok());
        EXPECT_EQ(queue.slots(), slots);
        while (queue.size() < slots) {
            ASSERT_TRUE(queue.push({next_in++}));
        }
        std::array<Completion, 2> some;
        while (queue.size() > 3) {
            for (const Completion& one : std::span(some).first(queue.poll(some))) {
                EXPECT_EQ(one.wr_id, next_out++);
            }
        }
    }
    EXPECT_FALSE(queue.resize(queue.size() - 1).ok());
    EXPECT_TRUE(queue.resize(queue.size()).ok());
    EXPECT_FALSE(queue.push({next_in}));
    EXPECT_FALSE(queue.resize(0).ok());
    EXPECT_FALSE(queue.resize(kMaxCompletionSlots + 1).ok());
    EXPECT_TRUE(queue.resize(100).ok());
    EXPECT_FALSE(queue.push({next_in}));  // lost completions stay lost
}

TEST(RcReceiveQueue, ALimitIsJudgedWhenItIsSet) {
    ReceiveQueue queue(3, 1);
    ASSERT_EQ(queue.post({1, {}}), PostVerdict::Posted);
    queue.set_limit(0);
    EXPECT_FALSE(queue.take_limit_event());
    queue.set_limit(1);
    EXPECT_FALSE(queue.take_limit_event());
    EXPECT_EQ(queue.limit(), 1U);
    queue.set_limit(2);
    EXPECT_TRUE(queue.take_limit_event());
    EXPECT_EQ(queue.limit(), 0U);
    (void)queue.take();
    EXPECT_FALSE(queue.take_limit_event());
}

TEST(RcReceiveQueue, ResizedItKeepsWhatIsInItAndItsLimit) {
    ReceiveQueue queue(3, 1);
    for (std::uint64_t id = 0; id < 3; ++id) {
        ASSERT_EQ(queue.post({id, {}}), PostVerdict::Posted);
    }
    EXPECT_EQ(queue.take().wr_id, 0U);
    queue.set_limit(2);
    EXPECT_FALSE(queue.resize(1).ok());
    EXPECT_FALSE(queue.resize(kMaxQueueSlots + 1).ok());
    ASSERT_TRUE(queue.resize(9).ok());
    for (std::uint64_t id = 3; id < 10; ++id) {
        ASSERT_EQ(queue.post({id, {}}), PostVerdict::Posted);
    }
    EXPECT_EQ(queue.post({10, {}}), PostVerdict::QueueFull);
    for (std::uint64_t id = 1; id < 10; ++id) {
        EXPECT_EQ(queue.take().wr_id, id);
        EXPECT_EQ(queue.take_limit_event(), id == 8);
    }
    EXPECT_TRUE(queue.resize(1).ok());
}

}  // namespace
}  // namespace cairn::roce::rc
