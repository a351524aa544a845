// Each connection is among its worker's counters, with the reason why it ended or did not open.
#include <map>
#include <string>

#include "tests/unit/scalerpc/host.hpp"

namespace cairn::scalerpc {
namespace {

class LinkCounting : public testing::Test {
protected:
    static EndpointConfig config() {
        EndpointConfig config;
        config.sessions_max = 4;
        config.peer_timeout = milliseconds(100);
        return config;
    }
    LinkCounting() {
        client.port.join(server.port);
        server.port.join(client.port);
        EXPECT_TRUE(server.endpoint->listen(kService).ok());
        server.endpoint->set_handler(
            7, [](void*, const rpc::Request<Endpoint>&) {}, nullptr);
    }
    SessionId connect(std::uint16_t port = kService) {
        const auto session = client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), port, now);
        EXPECT_TRUE(session.ok());
        run(milliseconds(20));
        return session.value();
    }
    void run(Duration span, bool server_lives = true) {
        for (const Instant end = now + span; now < end; now = now + microseconds(100)) {
            client.turn(now);
            if (server_lives) {
                server.turn(now);
            }
        }
    }
    // The connections in the worker's registry, by reason, without those that are 0.
    using Told = std::map<std::string, std::uint64_t>;
    static Told told(const Host& host) {
        Told found;
        host.worker->counters().visit([&](const telemetry::CounterText& text, std::uint64_t value) {
            const std::string name(text.name);
            for (const char* each : {"opened", "ended_here", "ended_there", "peers_lost", "rejected", "unanswered",
                                     "displaced", "refused"}) {
                if (value != 0 && name == std::string("scalerpc_") + each) {
                    found[each] = value;
                }
            }
        });
        return found;
    }

    Instant now{1'000'000'000};
    Host client{"10.0.0.1", 11, config()};
    Host server{"10.0.0.2", 22, config()};
};

TEST_F(LinkCounting, TellsWhichEndEndedASession) {
    const SessionId first = connect();
    (void)connect();
    EXPECT_EQ(told(client), (Told{{"opened", 2}}));
    EXPECT_EQ(told(server), (Told{{"opened", 2}}));
    client.endpoint->disconnect(first, now);
    run(milliseconds(20));
    client.endpoint->disconnect(first, now);  // again
    EXPECT_EQ(told(client), (Told{{"opened", 2}, {"ended_here", 1}}));
    EXPECT_EQ(told(server), (Told{{"opened", 2}, {"ended_there", 1}}));
}

TEST_F(LinkCounting, TellsOfPeersThatFellSilent) {
    (void)connect();
    run(milliseconds(400), false);
    EXPECT_EQ(told(client), (Told{{"opened", 1}, {"peers_lost", 1}}));
}

// The server's host refuses it, and its endpoint does not learn of it.
TEST_F(LinkCounting, TellsOfServicesThatAreNotThere) {
    (void)connect(kService + 1);
    EXPECT_EQ(told(client), (Told{{"rejected", 1}}));
    EXPECT_EQ(told(server), Told{});
}

TEST_F(LinkCounting, TellsOfConnectionsThatItRefused) {
    Host idle("10.0.0.3", 33, config());  // without a handler
    idle.port.join(client.port);
    client.port.join(idle.port);
    ASSERT_TRUE(idle.endpoint->listen(kService).ok());
    ASSERT_TRUE(client.endpoint->connect(net::IpAddress::parse("10.0.0.3").value(), kService, now).ok());
    for (int i = 0; i < 500; ++i, now = now + microseconds(20)) {
        client.turn(now);
        idle.turn(now);
    }
    EXPECT_EQ(told(idle), (Told{{"refused", 1}}));
    EXPECT_EQ(told(client), (Told{{"rejected", 1}}));
}

TEST_F(LinkCounting, TellsOfPeersThatDoNotAnswerAtAll) {
    const auto session = client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now);
    ASSERT_TRUE(session.ok());
    for (int i = 0; i < 20000 && client.events.empty(); ++i, now = now + milliseconds(5)) {
        client.turn(now);
    }
    EXPECT_EQ(told(client), (Told{{"unanswered", 1}}));
}

// Several peers, and then one host.
TEST_F(LinkCounting, PeersLeaveThePlacesThatAreKeptAndOneHostLeavesSomeToOthers) {
    EndpointConfig kept = config();
    kept.own_sessions = 1;
    kept.host_sessions_max = 2;
    Host keeper("10.0.0.4", 44, kept);
    Host third("10.0.0.3", 33, config());
    for (Host* const host : {&client, &third}) {
        host->port.join(keeper.port);
        keeper.port.join(host->port);
    }
    ASSERT_TRUE(keeper.endpoint->listen(kService).ok());
    keeper.endpoint->set_handler(
        7, [](void*, const rpc::Request<Endpoint>&) {}, nullptr);
    const auto run_three = [&] {
        for (const Instant end = now + milliseconds(20); now < end; now = now + microseconds(100)) {
            client.turn(now);
            third.turn(now);
            keeper.turn(now);
        }
    };
    for (Host* const host : {&client, &third}) {
        for (int i = 0; i < 3; ++i) {
            ASSERT_TRUE(host->endpoint->connect(net::IpAddress::parse("10.0.0.4").value(), kService, now).ok());
            run_three();
        }
    }
    EXPECT_EQ(told(client), (Told{{"opened", 2}, {"rejected", 1}})) << "its share";
    EXPECT_EQ(told(third), (Told{{"opened", 1}, {"rejected", 2}})) << "one place is kept";
    EXPECT_TRUE(keeper.endpoint->connect(net::IpAddress::parse("10.0.0.1").value(), kService, now).ok());
    EXPECT_FALSE(keeper.endpoint->connect(net::IpAddress::parse("10.0.0.1").value(), kService, now).ok());
}

}  // namespace
}  // namespace cairn::scalerpc
