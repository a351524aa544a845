// Messages to the shards of other processes, and peers that do not take them.
#include "fs/daemon/peer_mail.hpp"

#include <gtest/gtest.h>

#include "tests/unit/fs_daemon/nodes_fixture.hpp"

namespace cairn::fs {
namespace {

class PeerMailTest : public test::NodesTest {
protected:
    enum class Way : std::uint8_t { Takes, Keeps, Refuses };

    PeerMailTest() {
        zero = node(0);
        mail = std::make_unique<PeerMail>(*zero->endpoint, zero->links, *zero->worker, zero->counters);
        begin_one(0);
    }
    ~PeerMailTest() override {
        zero->endpoint.reset();  // before the mail
    }
    void begin_one(std::uint64_t life) {
        one = node(1, test::kNodesKey, 1U << 20U, life);
        one->endpoint->set_handler(
            static_cast<std::uint8_t>(PeerCall::Tell),
            [](void* self, const copyrpc::Request& request) { static_cast<PeerMailTest*>(self)->on_message(request); },
            this);
        EXPECT_TRUE(wire.pass_until([&] { return zero->has(1) && one->has(0); }));
    }
    void on_message(const copyrpc::Request& request) {
        switch (way) {
            case Way::Takes:
                heard.emplace_back(request.payload.begin(), request.payload.end());
                EXPECT_TRUE(request.endpoint.answer(request.handle, {}, request.now));
                break;
            case Way::Keeps:
                kept.push_back(request.keep());
                break;
            case Way::Refuses:
                EXPECT_TRUE(request.endpoint.refuse(request.handle, request.now));
                break;
        }
    }
    void tell(std::uint8_t what, std::size_t bytes = 1) {
        mail->send(1, PeerCall::Tell, std::vector<std::uint8_t>(bytes, what));
    }
    [[nodiscard]] std::uint64_t counted(PeerCounter which) const { return zero->counted(which); }

    Way way = Way::Takes;
    std::vector<std::vector<std::uint8_t>> heard;
    std::vector<rpc::KeptRequest> kept;
    std::unique_ptr<test::Node> zero;
    std::unique_ptr<test::Node> one;
    std::unique_ptr<PeerMail> mail;
};

TEST_F(PeerMailTest, MessagesArriveWholeAndInOrder) {
    for (int i = 0; i != 200; ++i) {
        tell(static_cast<std::uint8_t>(i), 1U + static_cast<std::size_t>(i) * 20);
    }
    wire.pass(milliseconds(50));
    ASSERT_EQ(heard.size(), 200U);
    for (std::size_t i = 0; i != heard.size(); ++i) {
        EXPECT_EQ(heard[i], std::vector<std::uint8_t>(1 + i * 20, static_cast<std::uint8_t>(i)));
    }
    EXPECT_EQ(counted(PeerCounter::Told), 200U);
}

TEST_F(PeerMailTest, AMessageToAPeerThatIsNotThereIsGone) {
    zero->links.lose(1);
    tell(1);
    mail->send(7, PeerCall::Tell, {});  // there is no such shard
    EXPECT_EQ(counted(PeerCounter::Told), 0U);
    ASSERT_TRUE(wire.pass_until([&] { return zero->has(1); }));
    wire.pass(milliseconds(50));
    EXPECT_TRUE(heard.empty());
}

TEST_F(PeerMailTest, APeerForWhichTooManyBytesWaitIsGivenUp) {
    way = Way::Keeps;
    constexpr std::size_t kEach = 8U << 10U;
    for (std::size_t bytes = 0; bytes != PeerMail::kMostBytes; bytes += kEach) {
        ASSERT_TRUE(zero->has(1)) << bytes;
        tell(1, kEach);
    }
    EXPECT_TRUE(zero->has(1));
    EXPECT_EQ(counted(PeerCounter::Overflows), 0U);
    tell(1);
    EXPECT_FALSE(zero->has(1));
    EXPECT_EQ(zero->lost.size(), 1U);
    EXPECT_EQ(counted(PeerCounter::Overflows), 1U);
    // Waiting messages wait no more: the peer's next life has the same room.
    kill(one);
    kept.clear();
    begin_one(500);
    for (std::size_t bytes = 0; bytes != PeerMail::kMostBytes; bytes += kEach) {
        tell(1, kEach);
    }
    EXPECT_TRUE(zero->has(1));
    EXPECT_EQ(counted(PeerCounter::Overflows), 1U);
}

TEST_F(PeerMailTest, APeerForWhichTooManyMessagesWaitIsGivenUp) {
    way = Way::Keeps;
    for (std::uint32_t i = 0; i != PeerMail::kMostCalls; ++i) {
        tell(1);
        ASSERT_TRUE(zero->has(1)) << i;
    }
    tell(1);
    EXPECT_FALSE(zero->has(1));
    EXPECT_EQ(counted(PeerCounter::Overflows), 1U);
}

TEST_F(PeerMailTest, WhatIsTakenMakesRoom) {
    for (int round = 0; round != 40; ++round) {  // together more than may wait
        for (int i = 0; i != 100; ++i) {
            tell(1, 4096);
        }
        wire.pass(milliseconds(50));
        ASSERT_TRUE(zero->has(1)) << round;
    }
    EXPECT_EQ(heard.size(), 4000U);
}

TEST_F(PeerMailTest, APeerThatRefusesAMessageIsNone) {
    way = Way::Refuses;
    tell(1);
    ASSERT_TRUE(wire.pass_until([&] { return !zero->has(1); }));
    EXPECT_EQ(counted(PeerCounter::Overflows), 0U);
    way = Way::Takes;
    ASSERT_TRUE(wire.pass_until([&] { return zero->has(1); }));
    tell(2);
    wire.pass(milliseconds(50));
    EXPECT_EQ(heard.size(), 1U);
}

// A message of the peer's earlier life that ends late does not describe its next life, which began before.
TEST_F(PeerMailTest, MessagesOfAnEarlierLifeDoNotEndTheNextOne) {
    PeerMail back(*one->endpoint, one->links, *one->worker, one->counters);
    const auto keep = [this] {
        zero->endpoint->set_handler(
            static_cast<std::uint8_t>(PeerCall::Tell),
            [](void* all, const copyrpc::Request& request) {
                static_cast<std::vector<rpc::KeptRequest>*>(all)->push_back(request.keep());
            },
            &kept);
    };
    keep();
    for (int i = 0; i != 10; ++i) {
        back.send(0, PeerCall::Tell, {});
    }
    wire.pass(milliseconds(10));
    ASSERT_EQ(kept.size(), 10U);
    const SessionId before = *one->links.session_of(0);
    kept.clear();
    zero->endpoint.reset();
    mail.reset();
    kill(zero);
    zero = node(0, test::kNodesKey, 1U << 20U, 500);
    keep();
    wire.pass(milliseconds(100));
    ASSERT_TRUE(one->has(0));
    EXPECT_NE(*one->links.session_of(0), before);
    wire.pass(seconds(10));
    EXPECT_EQ(one->lost.size(), 1U);
    one->endpoint.reset();
}

}  // namespace
}  // namespace cairn::fs
