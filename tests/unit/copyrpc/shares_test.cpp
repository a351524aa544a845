// The share of a server's places that one host gets, for any number of sessions that it opens.
#include <algorithm>

#include "tests/unit/copyrpc/crowd.hpp"
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

constexpr std::uint16_t kPlaces = 24;
constexpr std::uint16_t kMostOfOne = 18;

class CopyrpcShares : public TwoHosts {
protected:
    CopyrpcShares() : TwoHosts(greedy(), few_places()) {
        other.port.join(server.port);
        server.port.join(other.port);
    }
    static EndpointConfig greedy() {
        EndpointConfig config = small_config(400);
        config.sessions_max = 128;
        return config;
    }
    static EndpointConfig few_places() {
        EndpointConfig config = small_config(400);
        config.sessions_max = kPlaces;
        config.host_sessions_max = 0;
        return config;
    }
    void run_all(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(20)) {
            client.turn(now);
            server.turn(now);
            other.turn(now);
        }
    }
    SessionId begin(Host& host) {
        return host.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).value();
    }
    static std::int64_t told(const Host& host, SessionEvent event) {
        return std::count(host.events.begin(), host.events.end(), event);
    }
    void ask_in_the_name_of(Crowd& crowd, const char* address) const {
        RawHello raw;
        Hello{RingShape::kLeastBytes, Hello::kLeastReceives}.emit(raw);
        crowd.ask(net::IpAddress::parse(address).value(), {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)},
                  now);
    }
    void serve_with(const EndpointConfig& config) {
        server.endpoint.reset();
        server.endpoint = Endpoint::create(config, *server.device, *server.home, server.pool).value();
        server.endpoint->set_handler(
            kEcho, [](void*, const Request&) {}, nullptr);
        ASSERT_TRUE(server.endpoint->listen(kService).ok());
    }
    void expect_that_others_are_served() {
        other.events.clear();
        (void)begin(other);
        run_all(milliseconds(5));
        EXPECT_EQ(other.events, std::vector{SessionEvent::Connected});
    }

    Host other{"10.0.0.3", 33, small_config(400)};
};

TEST_F(CopyrpcShares, OneHostLeavesAQuarterOfThePlacesToOthers) {
    for (int i = 0; i < 2 * kPlaces; ++i) {
        (void)begin(client);
        run_all(milliseconds(2));
    }
    EXPECT_EQ(told(client, SessionEvent::Connected), kMostOfOne);
    EXPECT_EQ(told(client, SessionEvent::Refused), 2 * kPlaces - kMostOfOne);
    EXPECT_EQ(server.endpoint->sessions_open(), kMostOfOne);
    EXPECT_EQ(server.endpoint->statistics().links.refused, 2U * kPlaces - kMostOfOne);
    expect_that_others_are_served();
}

// No session is open when they ask. Each learns its fate at once: no session opens first and then ends.
TEST_F(CopyrpcShares, OneHostThatAsksForAllAtOnceGetsNoMore) {
    for (int i = 0; i < 2 * kPlaces; ++i) {
        (void)begin(client);
    }
    run_all(milliseconds(20));
    EXPECT_EQ(told(client, SessionEvent::Connected), kMostOfOne);
    EXPECT_EQ(told(client, SessionEvent::Refused), 2 * kPlaces - kMostOfOne);
    EXPECT_EQ(told(client, SessionEvent::Disconnected), 0);
    EXPECT_EQ(server.endpoint->statistics().links.opened, kMostOfOne);
    EXPECT_EQ(server.endpoint->statistics().links.refused, 2U * kPlaces - kMostOfOne);
    expect_that_others_are_served();
}

// Neither share is known before some sessions of both hosts are open. A third host still finds a place.
TEST_F(CopyrpcShares, TwoHostsThatAskForAllAtOnceLeaveAPlace) {
    for (int i = 0; i < kPlaces; ++i) {
        (void)begin(client);
        (void)begin(other);
    }
    run_all(milliseconds(20));
    EXPECT_GT(told(client, SessionEvent::Connected), 0);
    EXPECT_GT(told(other, SessionEvent::Connected), 0);
    EXPECT_LT(server.endpoint->statistics().links.opened, kPlaces);
}

TEST_F(CopyrpcShares, NoSessionOpensBeyondANumberThatWasConfigured) {
    EndpointConfig config = few_places();
    config.host_sessions_max = 5;
    serve_with(config);
    for (int i = 0; i < kPlaces; ++i) {
        (void)begin(client);
    }
    run_all(milliseconds(20));
    EXPECT_EQ(told(client, SessionEvent::Connected), 5);
    EXPECT_EQ(told(client, SessionEvent::Refused), kPlaces - 5);
    EXPECT_EQ(told(client, SessionEvent::Disconnected), 0);
}

TEST_F(CopyrpcShares, WhoAsksInTheNameOfAHostTakesNoneOfItsPlaces) {
    Crowd crowd{server.port};
    for (int i = 0; i < 2 * kPlaces; ++i) {
        ask_in_the_name_of(crowd, "10.0.0.1");
        run_all(microseconds(100));
    }
    for (int i = 0; i < kMostOfOne; ++i) {
        (void)begin(client);
        run_all(milliseconds(2));
    }
    EXPECT_EQ(told(client, SessionEvent::Connected), kMostOfOne);
}

TEST_F(CopyrpcShares, WhoOnlyAsksIsToldToNobody) {
    std::vector<SessionEvent> guests;
    server.endpoint->set_guest_callback(
        [](void* into, SessionId, SessionEvent event) {
            static_cast<std::vector<SessionEvent>*>(into)->push_back(event);
        },
        &guests);
    Crowd crowd{server.port};
    ask_in_the_name_of(crowd, "10.0.0.1");  // the real host answers that it has not asked
    run_all(milliseconds(5));
    EXPECT_EQ(server.endpoint->statistics().links.rejected, 1U);
    EXPECT_TRUE(guests.empty());
    client.endpoint->disconnect(begin(client), now);
    const SessionId session = begin(client);
    run_all(milliseconds(5));
    client.endpoint->disconnect(session, now);
    run_all(milliseconds(5));
    EXPECT_EQ(guests, (std::vector{SessionEvent::Connected, SessionEvent::Disconnected}));
}

// The host does not run yet, so the server does not learn that it has not asked.
TEST_F(CopyrpcShares, RequestsThatNobodyAnswersTakeNoShareForLong) {
    Crowd crowd{server.port};
    for (int i = 0; i < kMostOfOne; ++i) {
        ask_in_the_name_of(crowd, "10.0.0.4");
    }
    run_all(milliseconds(150));
    Host late{"10.0.0.4", 44, small_config(400)};
    late.port.join(server.port);
    server.port.join(late.port);
    (void)begin(late);
    for (int i = 0; i < 250; ++i, now = now + microseconds(20)) {
        late.turn(now);
        server.turn(now);
    }
    EXPECT_EQ(late.events, std::vector{SessionEvent::Connected});
}

// The requests are refused at once if all places are taken.
TEST_F(CopyrpcShares, RequestsThatTakeAllPlacesTakeNoShare) {
    Crowd crowd{server.port};
    for (int i = 0; i < kPlaces; ++i) {
        ask_in_the_name_of(crowd, i < kMostOfOne ? "10.0.0.4" : "10.0.0.5");
    }
    run_all(microseconds(100));
    Host late{"10.0.0.4", 44, small_config(400)};
    late.port.join(server.port);
    server.port.join(late.port);
    (void)begin(late);
    for (int i = 0; i < 250; ++i, now = now + microseconds(20)) {
        late.turn(now);
        server.turn(now);
    }
    EXPECT_EQ(late.events, std::vector{SessionEvent::Connected});
}

TEST_F(CopyrpcShares, AShareIsGivenBackWithItsSessions) {
    for (int round = 0; round < 3; ++round) {
        client.events.clear();
        std::vector<SessionId> sessions;
        for (int i = 0; i < kMostOfOne; ++i) {
            sessions.push_back(begin(client));
            run_all(milliseconds(2));
        }
        EXPECT_EQ(told(client, SessionEvent::Connected), kMostOfOne) << round;
        for (const SessionId session : sessions) {
            client.endpoint->disconnect(session, now);
        }
        run_all(milliseconds(20));
    }
}

// The places that the server keeps for its own sessions are not shared among its peers.
TEST_F(CopyrpcShares, PlacesKeptForOwnSessionsAreNoPartOfShares) {
    EndpointConfig config = few_places();
    config.own_sessions = kPlaces / 2;
    serve_with(config);
    for (int i = 0; i < kPlaces; ++i) {
        (void)begin(client);
        run_all(milliseconds(2));
    }
    EXPECT_EQ(told(client, SessionEvent::Connected), kMostOfOne / 2);
    expect_that_others_are_served();
}

}  // namespace
}  // namespace cairn::copyrpc
