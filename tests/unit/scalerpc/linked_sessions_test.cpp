// The sessions that have something to do.
#include "rpc/linked/linked_sessions.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace cairn::rpc {
namespace {

class LinkedSessionsTest : public testing::Test {
protected:
    std::vector<std::uint16_t> taken() {
        std::vector<std::uint16_t> numbers;
        sessions.take_listed([&numbers](LinkedSession& session) { numbers.push_back(session.id.number()); });
        return numbers;
    }
    LinkedSessions<LinkedSession> sessions{3};
};

TEST_F(LinkedSessionsTest, EachIsTakenOnceInTheOrderOfTheList) {
    LinkedSession* const a = sessions.add();
    LinkedSession* const b = sessions.add();
    sessions.list(*b);
    sessions.list(*a);
    sessions.list(*b);
    EXPECT_EQ(taken(), (std::vector<std::uint16_t>{1, 0}));
    EXPECT_FALSE(sessions.any_listed());
    EXPECT_TRUE(taken().empty());
}

TEST_F(LinkedSessionsTest, ASessionThatCannotSendIsNoReasonForATurn) {
    LinkedSession* const a = sessions.add();
    sessions.stall(*a);
    EXPECT_FALSE(sessions.any_listed());
    sessions.relist_stalled();
    EXPECT_TRUE(sessions.any_listed());
    EXPECT_EQ(taken(), std::vector<std::uint16_t>{0});
    sessions.relist_stalled();
    EXPECT_FALSE(sessions.any_listed());
}

// A look may give reasons to look again.
TEST_F(LinkedSessionsTest, WhatPeersWroteIsLookedAtOnceATime) {
    LinkedSession* const a = sessions.add();
    LinkedSession* const b = sessions.add();
    sessions.note_written(*b);
    sessions.note_written(*a);
    sessions.note_written(*b);
    EXPECT_FALSE(sessions.any_listed());
    std::vector<std::uint16_t> looked;
    const auto look = [this, &looked, b](LinkedSession& session) {
        looked.push_back(session.id.number());
        if (looked.size() == 1) {
            sessions.note_written(*b);
        }
    };
    sessions.take_written(look);
    EXPECT_EQ(looked, (std::vector<std::uint16_t>{1, 0}));
    sessions.take_written(look);
    EXPECT_EQ(looked, (std::vector<std::uint16_t>{1, 0, 1}));
    sessions.take_written(look);
    EXPECT_EQ(looked.size(), 3U);
}

TEST_F(LinkedSessionsTest, WhoHasGoneIsNotTaken) {
    LinkedSession* const a = sessions.add();
    LinkedSession* const b = sessions.add();
    sessions.list(*a);
    sessions.stall(*b);
    sessions.remove(*a);
    sessions.remove(*b);
    sessions.relist_stalled();
    EXPECT_TRUE(taken().empty());
    EXPECT_EQ(sessions.count(), 0U);
}

TEST_F(LinkedSessionsTest, TheNumberThatWasFreeLongestIsNext) {
    EXPECT_EQ(sessions.add()->id.number(), 0);
    sessions.remove(*sessions.find(SessionId{0}));
    EXPECT_EQ(sessions.add()->id.number(), 1);
    EXPECT_EQ(sessions.add()->id.number(), 2);
    LinkedSession* const again = sessions.add();
    EXPECT_EQ(again->id.number(), 0);
    EXPECT_EQ(again->id, SessionId{0}.successor());
    EXPECT_EQ(sessions.find(again->id), again);
    EXPECT_EQ(sessions.find(SessionId{0}), nullptr) << "the name of one that has ended";
    EXPECT_EQ(sessions.find(again->id.successor()), nullptr);
    EXPECT_EQ(sessions.add(), nullptr);
}

// As many as there may be, with numbers that increase and are reused, as an engine gives them.
TEST(QpnTableTest, SaysWhoseAQueuePairIsWhateverCameAndWent) {
    for (const std::uint32_t most : {1U, 3U, 64U}) {
        QpnTable table(most);
        std::map<std::uint32_t, std::uint16_t> expected;
        std::mt19937 random(most);
        for (int i = 0; i < 20'000; ++i) {
            const auto qpn = static_cast<std::uint32_t>(1 + random() % 300 * (random() % 2 == 0 ? 1 : 64));
            if (const auto found = expected.find(qpn); found != expected.end()) {
                table.remove(Qpn{qpn});
                expected.erase(found);
            } else if (expected.size() < most) {
                expected[qpn] = static_cast<std::uint16_t>(i);
                table.add(Qpn{qpn}, SessionId{static_cast<std::uint16_t>(i)});
            }
            const auto asked = static_cast<std::uint32_t>(1 + random() % 300);
            const auto found = expected.find(asked);
            ASSERT_EQ(table.find(Qpn{asked}), found == expected.end() ? QpnTable::kNone : found->second);
        }
        for (const auto& [qpn, session] : expected) {
            EXPECT_EQ(table.find(Qpn{qpn}), session);
        }
    }
}

}  // namespace
}  // namespace cairn::rpc
