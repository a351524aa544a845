// Clients that take turns: each one is served, no request is executed twice, and the rest of a slice goes to the next
// one.
#include "rpc/scalerpc/slices.hpp"

#include "tests/unit/scalerpc/many_clients.hpp"

namespace cairn::scalerpc {
namespace {

class SlicesOfServer : public ManyClients {};

TEST_F(SlicesOfServer, OneGroupIsNeverSwitched) {
    begin(small(16), 6);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i);
    }
    run(milliseconds(20));
    again = false;
    run(milliseconds(5));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(counted().switches, 0U);
    EXPECT_EQ(server->endpoint->slices().groups().size(), 1U);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        EXPECT_GT(done[i], 100U) << i;
    }
    EXPECT_LT(counted().requests_fetched, 50U) << "in its slice a client writes";
    check();
}

TEST_F(SlicesOfServer, GroupsTakeTurnsAndEverybodyIsServed) {
    begin(small(64), 40);
    EXPECT_GT(server->endpoint->slices().groups().size(), 2U);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i);
        post(i);
    }
    run(milliseconds(100));
    again = false;
    run(milliseconds(20));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_GT(counted().switches, 100U);
    EXPECT_GT(counted().fetches, 100U);
    std::uint64_t least = ~0ULL;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        least = std::min(least, done[i]);
        most = std::max(most, done[i]);
    }
    EXPECT_GT(least, 50U);
    EXPECT_LT(most, least * 4) << "nobody is favoured by much";
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    check();
}

TEST_F(SlicesOfServer, AnIdleServerSwitchesNothing) {
    begin(small(64), 40);
    run(milliseconds(20));
    const std::uint64_t before = counted().switches;
    run(milliseconds(50));
    EXPECT_EQ(counted().switches, before);
    post(3);
    run(milliseconds(2));
    EXPECT_EQ(count(CallStatus::Ok), 1U);
    check();
}

TEST_F(SlicesOfServer, ARequestThatIsAnsweredInALaterSliceIsAnswered) {
    begin(small(64), 40);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i, 32, kKeep);
    }
    run(milliseconds(10));
    ASSERT_EQ(kept.size(), sessions.size());
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i);
    }
    run(milliseconds(10));
    EXPECT_EQ(count(CallStatus::Ok), sessions.size());
    requests.clear();
    for (const RequestHandle& handle : kept) {
        EXPECT_TRUE(server->endpoint->refuse(handle, now));
    }
    run(milliseconds(10));
    EXPECT_EQ(count(CallStatus::AnswerLost), sessions.size());
    EXPECT_EQ(server->endpoint->server().requests_kept(), 0U);
    check();
}

// Before its first request was READ, or later; other clients wait for their slices or not.
TEST_F(SlicesOfServer, AClientThatAsksMoreBeforeItHasAnAnswerIsToldOfItsSlice) {
    for (const std::uint32_t clients : {12U, 40U}) {
        SCOPED_TRACE(clients);
        sessions.clear();
        results.clear();
        begin(small(64), clients);
        EXPECT_EQ(server->endpoint->slices().groups().size() == 1, clients == 12);
        for (std::size_t i = 0; i < 12; ++i) {
            post(i, 32, kKeep);
            run(microseconds(5) * static_cast<std::int64_t>(i));
            post(i);
            run(milliseconds(2));
            EXPECT_EQ(kept.size(), i + 1);
            EXPECT_EQ(count(CallStatus::Ok), i + 1);
        }
        for (const RequestHandle& handle : kept) {
            EXPECT_TRUE(server->endpoint->refuse(handle, now));
        }
        run(milliseconds(2));
        EXPECT_EQ(count(CallStatus::AnswerLost), 12U);
        check();
        kept.clear();
    }
}

TEST_F(SlicesOfServer, ClientsComeAndGo) {
    begin(small(64), 40);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i);
    }
    run(milliseconds(5));
    again = false;
    for (std::size_t i = 0; i < 30; ++i) {
        client->endpoint->disconnect(sessions[i], now);
        run(microseconds(200));
    }
    run(milliseconds(200));
    EXPECT_EQ(server->endpoint->sessions_open(), 10U);
    EXPECT_LE(server->endpoint->slices().groups().size(), 2U);
    for (std::size_t i = 30; i < 40; ++i) {
        post(i);
    }
    run(milliseconds(10));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    check();
}

TEST_F(SlicesOfServer, RawWriteServesAllAtAnyTime) {
    EndpointConfig config = small(64);
    config.features = kRawWrite;
    begin(config, 40);
    again = true;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        post(i);
        post(i);
    }
    run(milliseconds(10));
    again = false;
    run(milliseconds(5));
    EXPECT_EQ(client->endpoint->calls_pending(), 0U);
    EXPECT_EQ(counted().switches + counted().fetches, 0U);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        EXPECT_GT(done[i], 100U) << i;
    }
    check();
}

// Each optimisation can be off by itself.
TEST_F(SlicesOfServer, EveryChoiceOfFeaturesServesEverybody) {
    for (std::uint32_t bits = 0; bits < 32; ++bits) {
        sessions.clear();
        done.clear();
        executed.clear();
        results.clear();
        EndpointConfig config = small(32);
        const auto has = [bits](std::uint32_t bit) { return (bits >> bit & 1U) != 0; };
        config.features = {has(0), has(1), has(2), has(3), has(4), has(0)};
        begin(config, 20);
        again = true;
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            post(i);
        }
        run(milliseconds(10));
        again = false;
        run(milliseconds(10));
        EXPECT_EQ(client->endpoint->calls_pending(), 0U) << bits;
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            EXPECT_GT(done[i], 5U) << bits << ": " << i;
        }
        check();
        client.reset();
        server.reset();
    }
}

// A notice goes with an answer if its client asks again. Other clients get it alone.
class NoticesAlone : public ManyClients {
protected:
    // Returns how many there are. Some of 32 clients ask once in a millisecond, which is longer than a group waits; the
    // others ask again and again.
    std::uint64_t count_beside(std::uint32_t quiet) {
        begin(small(64), 32);
        again = true;
        for (std::size_t i = quiet; i < sessions.size(); ++i) {
            post(i);
        }
        run(milliseconds(10));
        const std::uint64_t before = counted().notices_alone;
        const std::array<std::uint8_t, 32> bytes{};
        Call once;
        once.type = kEcho;
        once.request = bytes;
        for (std::uint32_t i = 0; i < kTimes; ++i) {
            for (std::size_t session = 0; session < quiet; ++session) {
                EXPECT_EQ(client->endpoint->post(sessions[session], once, now).verdict, PostVerdict::Posted);
            }
            run(milliseconds(1));
        }
        again = false;
        return counted().notices_alone - before;
    }

    static constexpr std::uint32_t kTimes = 40;
};

TEST_F(NoticesAlone, AreNoneWhereClientsAskAgainAtOnce) {
    const std::uint64_t alone = count_beside(0);
    EXPECT_LE(alone, counted().switches / 50);
    EXPECT_GT(counted().switches, 300U);
}

TEST_F(NoticesAlone, GoToClientsThatAskOnceInTheirSlices) {
    constexpr std::uint32_t kQuiet = 8;
    const std::uint64_t alone = count_beside(kQuiet);
    EXPECT_GE(alone, kTimes * kQuiet * 8 / 10);
    EXPECT_LE(alone, kTimes * kQuiet * 15 / 10);
}

}  // namespace
}  // namespace cairn::scalerpc
