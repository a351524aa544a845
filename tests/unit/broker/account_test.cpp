// A program's account of its claims and its broker: which messages it still has to send, in which order, and how often.
#include <gtest/gtest.h>

#include <vector>

#include "lib/broker/account.hpp"
#include "tests/unit/broker/message_bytes.hpp"

namespace cairn::broker {
namespace {

using Messages = std::vector<Bytes>;

template <class... Said>
Messages these(const Said&... said) {
    return {bytes_of(said)...};
}

constexpr wire::ServiceId kService{0x0106'1f90};
constexpr wire::ServiceId kOther{0x0106'1f91};

class AccountTest : public testing::Test {
protected:
    Messages unsaid() {
        Messages all;
        while (const std::optional<Message> next = account.next()) {
            all.push_back(bytes_of(*next));
            account.on_said();
        }
        return all;
    }
    void ask_and_get(wire::ServiceId service, bool shares) {
        const std::uint32_t ask = account.ask(service, shares);
        EXPECT_EQ(unsaid(), these(Claim{ask, service, shares}));
        EXPECT_FALSE(account.is_answered(ask));
        account.hear({ask, service, true});
        EXPECT_TRUE(account.is_answered(ask));
        EXPECT_EQ(account.close(ask), true);
    }

    Account account;
};

TEST_F(AccountTest, WhatIsNewIsSaidInItsOrderAndOnce) {
    account.leave({2, {}, {}});
    account.manage();
    account.leave({1, {}, {}});
    account.manage();
    EXPECT_EQ(unsaid(), these(Will{2, {}, {}}, Manage{}, Will{1, {}, {}}));
    EXPECT_FALSE(account.next().has_value());
}

TEST_F(AccountTest, WhatChangedIsSaidAsItIsNow) {
    Will will{1, {}, {}};
    account.leave(will);
    account.leave({2, {}, {}});
    will.mad.fill(7);
    account.leave(will);
    EXPECT_EQ(unsaid(), these(will, Will{2, {}, {}}));
    account.revoke(1);
    EXPECT_EQ(unsaid(), these(Revoke{1}));
    account.revoke(1);
    EXPECT_EQ(unsaid(), Messages{});
    account.leave({2, {}, {}});
    account.revoke(2);
    EXPECT_EQ(unsaid(), these(Revoke{2}));
}

TEST_F(AccountTest, WhatCameAndWentUnsaidIsNotSpokenOf) {
    account.leave({1, {}, {}});
    account.revoke(1);
    account.release(kService);
    EXPECT_EQ(account.close(account.ask(kService, false)), std::nullopt);
    EXPECT_EQ(unsaid(), Messages{});
}

TEST_F(AccountTest, ANewBrokerIsToldWhatThereIs) {
    ask_and_get(kService, true);
    ask_and_get(kOther, false);
    account.release(kOther);
    account.leave({1, {}, {}});
    account.leave({2, {}, {}});
    account.manage();
    unsaid();
    const std::uint32_t ask = account.ask(kOther, false);
    unsaid();
    account.revoke(1);
    account.begin();
    const Messages all = these(Manage{}, Claim{0, kService, true}, Will{2, {}, {}}, Claim{ask, kOther, false});
    EXPECT_EQ(unsaid(), all);
    account.begin();
    account.revoke(2);  // not sent yet
    EXPECT_EQ(unsaid(), these(Manage{}, Claim{0, kService, true}, Claim{ask, kOther, false}));
    account.release(kService);
    EXPECT_EQ(unsaid(), these(Release{kService}));
    ask_and_get(kService, true);
    account.begin();
    account.release(kService);
    EXPECT_EQ(unsaid(), these(Manage{}, Claim{ask, kOther, false}));
    account.hear({ask, kOther, true});
    account.begin();  // answered, though no one has looked yet
    EXPECT_EQ(unsaid(), these(Manage{}, Claim{0, kOther, false}));
    EXPECT_EQ(account.close(ask), true);
}

TEST_F(AccountTest, ARefusalChangesNothing) {
    ask_and_get(kService, true);
    const std::uint32_t ask = account.ask(kService, false);
    unsaid();
    account.hear({ask, kService, false});
    EXPECT_EQ(account.close(ask), false);
    EXPECT_EQ(unsaid(), Messages{});
    account.release(kService);
    EXPECT_EQ(unsaid(), these(Release{kService}));
}

// The broker gets the release after the question, and would take back what it granted.
TEST_F(AccountTest, AReleaseWaitsForWhatIsAsked) {
    ask_and_get(kService, true);
    std::uint32_t ask = account.ask(kService, false);
    account.release(kService);
    EXPECT_EQ(unsaid(), these(Claim{ask, kService, false}));
    account.hear({ask, kService, true});
    EXPECT_EQ(account.close(ask), true);
    EXPECT_EQ(unsaid(), Messages{});
    for (const bool is_answered : {true, false}) {
        ask_and_get(kService, false);
        ask = account.ask(kService, true);
        account.release(kService);
        unsaid();
        if (is_answered) {
            account.hear({ask, kService, false});
        }
        EXPECT_EQ(account.close(ask).has_value(), is_answered);
        EXPECT_EQ(unsaid(), these(Release{kService}));
    }
}

TEST_F(AccountTest, AReleaseGoesBeforeWhatIsAskedLater) {
    ask_and_get(kService, true);
    account.release(kService);
    const std::uint32_t ask = account.ask(kService, false);
    EXPECT_EQ(unsaid(), these(Release{kService}, Claim{ask, kService, false}));
    account.hear({ask, kService, true});
    EXPECT_EQ(account.close(ask), true);
    EXPECT_EQ(unsaid(), Messages{});
}

TEST_F(AccountTest, ALateGrantIsUndoneUnlessTheServiceIsAskedForAgain) {
    const std::uint32_t late = account.ask(kService, true);
    unsaid();
    EXPECT_EQ(account.close(late), std::nullopt);
    const std::uint32_t again = account.ask(kService, false);
    unsaid();
    account.hear({late, kService, true});
    EXPECT_EQ(unsaid(), Messages{});
    account.hear({again, kService, false});  // others share it
    EXPECT_EQ(account.close(again), false);
    EXPECT_EQ(unsaid(), these(Release{kService}));
    account.hear({late, kService, false});
    EXPECT_EQ(unsaid(), Messages{});
}

}  // namespace
}  // namespace cairn::broker
