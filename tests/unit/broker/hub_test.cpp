// What the broker of an address decides, step by step: who gets which slot, who is refused, what goes where.
#include "lib/broker/hub.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "lib/wire/bth.hpp"

namespace cairn::broker {
namespace {

class HubTest : public testing::Test, protected Hands {
protected:
    struct Sent {
        std::uint64_t to = 0;
        Message message{};
        friend bool operator==(const Sent&, const Sent&) = default;
    };

    Opening open() override { return taken ? Opening::Taken : (++sockets, Opening::Open); }
    Growth grow() override {
        if (growth == Growth::Grown) {
            ++sockets;
        }
        return growth;
    }
    std::optional<std::uint16_t> adopt(ClientId) override {
        if (brought) {
            sockets = std::max(sockets, *brought);
            return sockets;
        }
        return std::nullopt;
    }
    void drain(Slot slot) override { drained.push_back(slot.value); }
    bool send(ClientId client, const Message& message) override {
        if (full) {
            return false;
        }
        if (const Refused* const refused = std::get_if<Refused>(&message)) {
            refusals.emplace_back(client.value, refused->why);
        } else if (const Lent* const lent = std::get_if<Lent>(&message)) {
            lendings.emplace_back(client.value, *lent);
        } else {
            strays.push_back(client.value);
        }
        return true;
    }
    bool send_sockets(ClientId client) override {
        copied.push_back(client.value);
        return true;
    }
    void end(ClientId client) override { ended.push_back(client.value); }

    void connect(std::uint64_t id) { hub.on_connected(ClientId{id}, now); }
    void say(std::uint64_t id, const Message& message) { hub.on_message(ClientId{id}, message, now); }
    // Returns the slot; 0: none was lent.
    unsigned join(std::uint64_t id) {
        const std::size_t before = lendings.size();
        connect(id);
        say(id, Join{});
        return lendings.size() == before ? 0U : lendings.back().second.slot.value;
    }
    void pass(Duration span) {
        now = now + span;
        hub.on_timeout(now);
    }
    static Stray stray_for(std::uint32_t qpn) {
        static std::array<std::uint8_t, 16> bytes;
        reinterpret_cast<wire::RawBth*>(bytes.data())->dest_qpn.set(qpn);
        Stray stray;
        stray.bytes = bytes;
        return stray;
    }
    std::uint64_t count(Counter counter) { return hub.counters().of(counter); }

    bool taken = false;
    bool full = false;
    Growth growth = Growth::Grown;
    std::optional<std::uint16_t> brought{};
    std::uint16_t sockets = 0;
    std::vector<unsigned> drained;
    std::vector<std::uint64_t> copied;
    std::vector<std::uint64_t> strays;
    std::vector<std::uint64_t> ended;
    std::vector<std::pair<std::uint64_t, Lent>> lendings;
    std::vector<std::pair<std::uint64_t, Refusal>> refusals;
    HubConfig config{};
    Instant now{seconds(100).ns};
    Hub hub{*this, config, now};
};

TEST_F(HubTest, ProgramsGetSlotsOneBehindTheOtherAndAllSocketsSoFar) {
    EXPECT_EQ(join(1), 1U);
    EXPECT_EQ(lendings.back().second.sockets, 2U);
    EXPECT_EQ(join(2), 2U);
    EXPECT_EQ(lendings.back().second.sockets, 3U);
    EXPECT_EQ(copied, (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(drained, (std::vector<unsigned>{1, 2}));  // before anybody reads there
    EXPECT_EQ(count(Counter::Lent), 2U);
}

TEST_F(HubTest, ASlotRestsBeforeItIsLentAgain) {
    EXPECT_EQ(join(1), 1U);
    hub.on_lost(ClientId{1}, now);
    EXPECT_EQ(join(2), 2U);
    pass(config.rest - nanoseconds(1));
    EXPECT_EQ(join(3), 3U);
    pass(nanoseconds(1));
    EXPECT_EQ(join(4), 1U);
    EXPECT_EQ(sockets, 4U);
    EXPECT_EQ(drained, (std::vector<unsigned>{1, 2, 3, 1}));
}

TEST_F(HubTest, OfSeveralThatRestedTheOneThatIsFreeForLongestIsLent) {
    for (const std::uint64_t id : {1U, 2U, 3U}) {
        join(id);
    }
    say(2, Leave{});
    pass(milliseconds(1));
    say(1, Leave{});
    say(3, Leave{});
    pass(config.rest);
    EXPECT_EQ(join(4), 2U);
}

TEST_F(HubTest, WithAllSlotsThereNobodyRests) {
    for (std::uint64_t id = 1; id < kMostSockets; ++id) {
        ASSERT_EQ(join(id), id);
    }
    EXPECT_EQ(join(1000), 0U);
    EXPECT_EQ(refusals.back(), (std::pair<std::uint64_t, Refusal>{1000, Refusal::Full}));
    EXPECT_EQ(ended.back(), 1000U);
    hub.on_lost(ClientId{77}, now);
    EXPECT_EQ(join(1001), 77U);
}

TEST_F(HubTest, WithoutFurtherSocketsOneThatDidNotRestIsBetterThanNone) {
    EXPECT_EQ(join(1), 1U);
    say(1, Leave{});
    growth = Growth::Refused;
    EXPECT_EQ(join(2), 1U);
    EXPECT_EQ(join(3), 0U);
    EXPECT_EQ(refusals.back().second, Refusal::NoResources);
}

TEST_F(HubTest, WhoFindsThePortTakenWaitsForOthersToComeBack) {
    taken = true;
    EXPECT_EQ(join(1), 0U);
    EXPECT_TRUE(refusals.empty());
    EXPECT_EQ(hub.next_deadline(), now + config.again);
    brought = 5;
    connect(2);
    say(2, Rejoin{Slot{3}, 5});
    say(2, Sockets{4});
    EXPECT_TRUE(lendings.empty());
    say(2, Sockets{1});
    ASSERT_EQ(lendings.size(), 1U);
    EXPECT_EQ(lendings.back(), (std::pair<std::uint64_t, Lent>{2, {Slot{3}, 0}}));
    pass(config.again);
    ASSERT_EQ(lendings.size(), 2U);
    EXPECT_EQ(lendings.back(), (std::pair<std::uint64_t, Lent>{1, {Slot{5}, 6}}));  // the others may be somebody's
    EXPECT_EQ(count(Counter::Rejoined), 1U);
}

TEST_F(HubTest, WhoWaitsInVainIsTold) {
    taken = true;
    join(1);
    pass(config.patience - nanoseconds(1));
    EXPECT_TRUE(refusals.empty());
    pass(config.again);
    ASSERT_EQ(refusals.size(), 1U);
    EXPECT_EQ(refusals.back().second, Refusal::PortTaken);
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{1}));
}

TEST_F(HubTest, SocketsThatNobodySpeaksForAreNotLentBehind) {
    brought = 2;
    connect(1);
    say(1, Rejoin{Slot{1}, 2});
    say(1, Sockets{2});
    growth = Growth::Hidden;
    join(2);
    EXPECT_EQ(lendings.size(), 1U);
    EXPECT_EQ(count(Counter::Hidden), 1U);
    pass(config.patience);
    EXPECT_EQ(refusals.back(), (std::pair<std::uint64_t, Refusal>{2, Refusal::NoAnswer}));
    growth = Growth::Grown;
    EXPECT_EQ(join(3), 2U);
}

TEST_F(HubTest, NobodyComesBackToASlotOfAnother) {
    brought = 3;
    EXPECT_EQ(join(1), 1U);
    connect(2);
    say(2, Rejoin{Slot{1}, 2});
    say(2, Sockets{2});
    EXPECT_EQ(lendings.size(), 1U);
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{2}));
    EXPECT_EQ(count(Counter::Garbage), 1U);
    brought.reset();
    connect(3);
    say(3, Rejoin{Slot{2}, 3});
    say(3, Sockets{3});
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{2, 3}));
}

TEST_F(HubTest, DatagramsGoToWhoHasTheirQueuePair) {
    join(1);
    join(2);
    hub.on_stray(stray_for(0xabcd02));
    EXPECT_EQ(strays, (std::vector<std::uint64_t>{2}));
    say(1, stray_for(0x1102));
    EXPECT_EQ(strays, (std::vector<std::uint64_t>{2, 2}));
    EXPECT_EQ(count(Counter::Forwarded), 2U);
    say(2, stray_for(0x1102));  // it knows itself what is its
    hub.on_stray(stray_for(0x1103));
    hub.on_stray(stray_for(1));
    Stray shorter = stray_for(0x1102);
    shorter.bytes = shorter.bytes.first(11);
    hub.on_stray(shorter);
    EXPECT_EQ(count(Counter::NoOwner), 4U);
    EXPECT_EQ(strays.size(), 2U);
    full = true;
    hub.on_stray(stray_for(0xabcd02));
    EXPECT_EQ(count(Counter::NoRoom), 1U);
    hub.on_lost(ClientId{2}, now);
    full = false;
    hub.on_stray(stray_for(0xabcd02));
    EXPECT_EQ(strays.size(), 2U);
}

TEST_F(HubTest, NonsenseEndsItsConnection) {
    join(1);
    say(1, Join{});
    connect(2);
    say(2, stray_for(0x101));
    connect(3);
    say(3, Sockets{1});
    connect(4);
    say(4, Rejoin{Slot{1}, 2});
    say(4, Sockets{3});
    connect(5);
    say(5, Lent{Slot{1}, 2});
    connect(6);
    say(6, Refused{});
    connect(7);
    hub.on_message(ClientId{7}, std::nullopt, now);
    connect(8);
    say(8, Rejoin{Slot{1}, 2});
    say(8, Rejoin{Slot{1}, 2});
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(count(Counter::Garbage), 8U);
    EXPECT_EQ(hub.clients(), 0U);
    say(8, Join{});  // what still comes of it is nobody's
    EXPECT_EQ(lendings.size(), 1U);
}

TEST_F(HubTest, WhoIsSilentMakesRoom) {
    for (std::uint64_t id = 1; id <= config.strangers; ++id) {
        connect(id);
    }
    connect(1000);
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{1000}));
    EXPECT_EQ(count(Counter::Crowded), 1U);
    say(1, Join{});  // members do not count
    connect(1001);
    EXPECT_EQ(hub.clients(), config.strangers + 1U);
    say(2, Rejoin{Slot{1}, 2});
    pass(config.silence);
    EXPECT_EQ(count(Counter::Silent), static_cast<std::uint64_t>(config.strangers));
    EXPECT_EQ(hub.clients(), 1U);
    EXPECT_EQ(hub.next_deadline(), Instant::never());
}

TEST_F(HubTest, WhoCannotBeToldHasNoSlot) {
    full = true;
    connect(1);
    say(1, Join{});
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{1}));
    EXPECT_EQ(hub.slots().state(Slot{1}), Slots::State::Free);
}

TEST_F(HubTest, WithoutProgramsItIsOverAfterAWhile) {
    EXPECT_FALSE(hub.is_over(now));
    EXPECT_EQ(hub.next_deadline(), now + config.idle);
    join(1);
    pass(config.idle * 3);
    EXPECT_FALSE(hub.is_over(now));
    hub.on_lost(ClientId{1}, now);
    EXPECT_FALSE(hub.is_over(now + config.idle - nanoseconds(1)));
    EXPECT_TRUE(hub.is_over(now + config.idle));
}

}  // namespace
}  // namespace cairn::broker
