// The refusals of ledgers to peers that break the rules, and the times at which ledgers have something to send.
#include <gtest/gtest.h>

#include "rpc/copyrpc/receive_ledger.hpp"
#include "rpc/copyrpc/send_ledger.hpp"

namespace cairn::copyrpc {
namespace {

TEST(LedgerRules, SayWhenAPeerBreaksTheRules) {
    const RingShape ring(128);
    const auto takes = [&ring](std::uint32_t first, BatchImmediate said, bool returned = false) {
        ReceiveLedger receive(ring, 4);
        EXPECT_TRUE(receive.on_batch({first, false}));
        (void)receive.read(first, false);
        if (returned) {
            (void)receive.take_returned();
        }
        return receive.on_batch(said);
    };
    EXPECT_TRUE(takes(100, {28, false}));
    EXPECT_FALSE(takes(100, {29, false})) << "it goes beyond the ring's end, and on over the first one";
    EXPECT_TRUE(takes(100, {28, false}, true));
    EXPECT_FALSE(takes(100, {29, false}, true)) << "it goes beyond the ring's end";
    EXPECT_FALSE(takes(100, {0, false})) << "it has no header";
    EXPECT_TRUE(takes(16, {1, false}));
    EXPECT_FALSE(takes(16, {1, true})) << "it wastes the ring, and begins where the first one has not been returned";
    EXPECT_FALSE(takes(100, {101, true})) << "it is written over the first one";
    EXPECT_FALSE(takes(128, {1, true})) << "it wastes a whole ring";
    EXPECT_FALSE(takes(16, {BatchImmediate::kWraps - 1, false}));
    EXPECT_FALSE(takes(16, {BatchImmediate::kWraps - 1, true}));
}

TEST(LedgerRules, CountTheReceiveRequestsOfAPeer) {
    ReceiveLedger receive(RingShape(128), 4);
    for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(receive.on_batch({1, false}));
        (void)receive.read(1, false);
    }
    EXPECT_FALSE(receive.on_batch({1, false})) << "there is no fifth one";
    EXPECT_EQ(receive.take_receives(), 4U);
    EXPECT_TRUE(receive.on_batch({1, false}));
}

TEST(LedgerRules, TellOfFreeSpaceFromAnEighthOfTheRingOn) {
    ReceiveLedger receive(RingShape(128), 64);
    const auto take = [&receive](std::uint32_t blocks) {
        EXPECT_TRUE(receive.on_batch({blocks, false}));
        (void)receive.read(blocks, false);
    };
    take(15);
    EXPECT_FALSE(receive.has_news());
    take(1);
    EXPECT_TRUE(receive.has_news());
    EXPECT_EQ(receive.take_returned(), 16U);
    EXPECT_FALSE(receive.has_news());
}

TEST(LedgerRules, SayWhenAPeerClaimsCreditThatItCannotHave) {
    const RingShape ring(128);
    const auto believes = [&ring](std::uint32_t returned, std::uint32_t granted, std::uint32_t receives) {
        SendLedger send(ring, ring, 4);
        (void)send.take_request(3, 2);
        (void)send.take_batch();
        (void)send.take_request(2, 2);
        return send.on_header(returned, granted, receives);
    };
    EXPECT_TRUE(believes(4, 64, 1));
    EXPECT_FALSE(believes(5, 0, 0)) << "more than was sent";
    EXPECT_FALSE(believes(0, 65, 0)) << "more than three whole promises";
    EXPECT_FALSE(believes(0, 0, 2)) << "more receive requests than there are";
    EXPECT_FALSE(believes(0xffffffffU, 0, 0));
    EXPECT_FALSE(believes(0, 0xffffffffU, 0));
    EXPECT_FALSE(believes(0, 0, 0xffffffffU));
}

TEST(LedgerRules, SayWhenAPeerAsksForMoreThanItWasPromised) {
    SendLedger send(RingShape(128), RingShape(128), 4);
    EXPECT_FALSE(send.on_request(0)) << "its answer would have no room";
    EXPECT_FALSE(send.on_request(1)) << "nor this one's";
    EXPECT_TRUE(send.on_request(30));
    EXPECT_FALSE(send.on_request(3));
    EXPECT_FALSE(send.on_request(0xffffffffU));
    EXPECT_TRUE(send.on_request(2));
}

// With Flow::Read no promise bounds an answer. An answer longer than any ring would wait for room for ever.
TEST(LedgerRules, SayWhenAPeerAsksForAnAnswerThatNeverFits) {
    SendLedger send(RingShape(128), RingShape(128), 4, Flow::Read);
    EXPECT_FALSE(send.on_request(1));
    EXPECT_TRUE(send.on_request(24));
    EXPECT_FALSE(send.on_request(25));
    EXPECT_FALSE(send.on_request(0xffffU));
    for (int i = 1; i < 32; ++i) {
        EXPECT_TRUE(send.on_request(2));
    }
    EXPECT_FALSE(send.on_request(2)) << "more answers than were promised";
}

TEST(LedgerRules, RefuseWhatNeverFits) {
    const RingShape ring(128);
    const SendLedger send(ring, ring, 4);
    EXPECT_EQ(send.judge_request(16, 24), Room::Fits);
    EXPECT_EQ(send.judge_request(17, 2), Room::TooLong);
    EXPECT_EQ(send.judge_request(1, 25), Room::TooLong);
}

// A peer's word with Flow::Read, also after 2^32 blocks.
TEST(LedgerRules, JudgeAWord) {
    SendLedger send(RingShape(128), RingShape(128), 4, Flow::Read);
    const auto send_batch = [&send] {
        (void)send.take_request(15, 2);
        (void)send.take_batch();
        send.on_answer(2);
    };
    for (std::uint32_t sent = 0; sent < 20; ++sent) {
        send_batch();
        ConsumerWord word{send.sent_blocks(), sent + 1};
        EXPECT_FALSE(send.on_word({word.blocks + 1, word.batches}));
        EXPECT_FALSE(send.on_word({word.blocks, word.batches + 1}));
        EXPECT_TRUE(send.on_word(word));
        EXPECT_EQ(send.in_flight(), 0U);
        EXPECT_TRUE(send.on_word({word.blocks - 1, word.batches - 1})) << "it is older";
        EXPECT_EQ(send.in_flight(), 0U);
        EXPECT_EQ(send.receives(), 4U);
    }
}

TEST(LedgerRules, PositionsGoOnBehindTheLastOf32Bits) {
    constexpr std::uint64_t kNearly = (std::uint64_t{1} << 32U) - 64;
    SendLedger send(RingShape(128), RingShape(128), 4, Flow::Read);
    send.begin_at({kNearly});
    for (int i = 0; i < 16; ++i) {
        (void)send.take_request(7, 2);
        (void)send.take_batch();
        send.on_answer(2);
        EXPECT_TRUE(send.on_word({send.sent_blocks(), static_cast<std::uint32_t>(i + 1)}));
        EXPECT_EQ(send.in_flight(), 0U);
    }
    EXPECT_LT(send.sent_blocks(), 128U);
}

}  // namespace
}  // namespace cairn::copyrpc
