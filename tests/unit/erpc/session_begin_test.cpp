// The begin of sessions: the resources of an unknown host, the proof of an address, and the limits of each host.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/erpc/host.hpp"
#include "tests/unit/erpc/raw_peer.hpp"

namespace cairn::erpc {
namespace {

constexpr std::uint8_t kCount = 7;

class SessionBegin : public testing::Test {
protected:
    SessionBegin() {
        stranger.port.join(server.port);
        server.port.join(stranger.port);
        client.port.join(server.port);
        server.port.join(client.port);
        serve();
        client.endpoint->set_session_callback(
            [](void* context, SessionId, SessionEvent event, RefuseReason reason) {
                static_cast<SessionBegin*>(context)->events.emplace_back(event, reason);
            },
            this);
    }
    void serve() {
        server.endpoint->set_handler(
            kCount,
            [](void* context, const Request& request) {
                ++static_cast<SessionBegin*>(context)->executed;
                static_cast<void>(request.endpoint.reserve(request.handle, 8));
                request.endpoint.respond(request.handle, request.now);
            },
            this);
    }
    void restart_server(std::uint64_t seed) {
        server.restart(seed);
        serve();
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client.turn(now);
            server.turn(now);
        }
    }
    [[nodiscard]] Header first_request_of(const Control& accepted) const {
        Header header;
        header.request_type = kCount;
        header.message_bytes = 8;
        header.session = accepted.sender_session;
        header.request_number = (accepted.first_request + kSlotsPerSession) & kRequestNumberMask;
        return header;
    }
    [[nodiscard]] std::uint32_t pins() {
        std::uint32_t pinned = 0;
        for (std::uint16_t udp_port = 0; udp_port < 200; ++udp_port) {
            pinned += server.port
                          .open_path({server.port.local_address(), stranger.port.local_address(),
                                      static_cast<std::uint16_t>(0xc000 + udp_port), 0},
                                     now)
                          ->pins();
        }
        return pinned;
    }

    Host server{"10.0.0.2", 22};
    Host client{"10.0.0.1", 11};
    RawPeer stranger{"10.0.0.9"};
    Instant now{1'000'000'000};
    int executed = 0;
    std::vector<std::pair<SessionEvent, RefuseReason>> events;
    const std::vector<std::uint8_t> payload = std::vector<std::uint8_t>(8);
};

TEST_F(SessionBegin, AStrangerThatProvesNothingLeavesNothingAndGetsNoMoreThanItSent) {
    for (std::uint16_t udp_port = 0; udp_port < 200; ++udp_port) {
        const roce::UdAddress to = stranger.address_of(server.port, static_cast<std::uint16_t>(0xc000 + udp_port));
        stranger.ask(to, 1000 + udp_port, 0, now);
        stranger.ask(to, 1000 + udp_port, 77, now);
        Control control;
        for (const ControlType type : {ControlType::Disconnect, ControlType::Ping, ControlType::Disconnected,
                                       ControlType::Pong, ControlType::Refused, ControlType::Challenge}) {
            control.type = type;
            control.token = udp_port;
            stranger.send(to, control, now);
        }
        Header header;
        for (const PacketType type :
             {PacketType::Request, PacketType::Rfr, PacketType::CreditReturn, PacketType::Response}) {
            header.type = type;
            header.message_bytes = 8;
            header.session = SessionId{udp_port};
            stranger.send(to, header, payload, now);
        }
        for (int i = 0; i < 4; ++i) {
            server.turn(now);
            stranger.turn(now);
        }
        ASSERT_LE(stranger.heard_bytes, stranger.sent_bytes);
    }
    EXPECT_EQ(stranger.last(ControlType::Accepted), std::nullopt);
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
    EXPECT_EQ(pins(), 0U);
    EXPECT_EQ(server.pool->live(), 0U);
    EXPECT_EQ(executed, 0);
}

TEST_F(SessionBegin, AStrangerThatOverheardATokenIsNotInItsClientsWay) {
    constexpr std::uint64_t kToken = 4711;
    EXPECT_EQ(stranger.open(server, stranger.address_of(server.port), kToken, now).type, ControlType::Accepted);
    RawPeer other("10.0.0.7");
    other.port.join(server.port);
    server.port.join(other.port);
    EXPECT_EQ(other.open(server, other.address_of(server.port), kToken, now).type, ControlType::Accepted);
    Control ping;
    ping.token = kToken;
    other.send(other.address_of(server.port), ping, now);
    server.turn(now);
    other.turn(now);
    EXPECT_TRUE(other.last(ControlType::Pong));
}

TEST_F(SessionBegin, ACookieIsGoodForItsAddressQueuePairAndTokenAndNotForLong) {
    RawPeer neighbour("10.0.0.9", Qpn{0x101});  // another queue pair of the same host
    const roce::UdAddress to = stranger.address_of(server.port);
    stranger.ask(to, 5, 0, now);
    server.turn(now);
    stranger.turn(now);
    const std::uint64_t cookie = stranger.last(ControlType::Challenge)->control().cookie;
    const auto taken = [&](RawPeer& peer, const roce::UdAddress& address, std::uint64_t token, std::uint64_t shown) {
        peer.port.join(server.port);
        peer.ask(address, token, shown, now);
        server.turn(now);
        return server.endpoint->sessions_open() != 0;
    };
    EXPECT_FALSE(taken(stranger, to, 6, cookie)) << "another token";
    EXPECT_FALSE(taken(stranger, to, 5, cookie ^ 2U)) << "another cookie";
    EXPECT_FALSE(taken(stranger, stranger.address_of(server.port, 0xc001), 5, cookie)) << "another UDP port";
    EXPECT_FALSE(taken(neighbour, neighbour.address_of(server.port), 5, cookie)) << "another queue pair";
    now = now + kCookieLife * 2;
    EXPECT_FALSE(taken(stranger, to, 5, cookie)) << "an old one";
    now = now - kCookieLife * 2 + kCookieLife;
    EXPECT_TRUE(taken(stranger, to, 5, cookie));
}

TEST_F(SessionBegin, ASessionOpensOverFullPacketsInBothDirections) {
    const roce::UdAddress to = stranger.address_of(server.port);
    stranger.ask(to, 5, 0, now);
    server.turn(now);
    stranger.turn(now);
    Control small;
    small.type = ControlType::Connect;
    small.credits = 8;
    small.path_mtu_bytes = RawPeer::kPathMtuBytes;
    small.token = 5;
    small.cookie = stranger.last(ControlType::Challenge)->control().cookie;
    stranger.send(to, small, now);
    server.turn(now);
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
    EXPECT_EQ(server.endpoint->statistics().of(Drop::Malformed), 1U);
    EXPECT_EQ(stranger.open(server, to, 5, now).type, ControlType::Accepted);
    EXPECT_EQ(stranger.heard.back().header.message_bytes, RawPeer::kPacketBytes);
}

TEST_F(SessionBegin, APathThatDoesNotCarryFullPacketsOpensNoneAndSaysWhy) {
    for (test::WirePort* const narrow : {&client.port, &server.port}) {
        client.port.carries_most = server.port.carries_most = port::kMaxUdpPayloadBytes;
        narrow->carries_most = 900;
        events.clear();
        client.connect(server, now);
        run(kPeerTimeout + milliseconds(50));
        ASSERT_EQ(events.size(), 1U);
        EXPECT_EQ(events[0].first, SessionEvent::PeerLost);
        EXPECT_EQ(events[0].second, RefuseReason::PathTooNarrow);
        run(kPeerTimeout * 2);
        EXPECT_EQ(server.endpoint->sessions_open(), 0U);
    }
}

TEST_F(SessionBegin, WhoServesNothingTakesNoSession) {
    stranger.port.join(client.port);
    client.port.join(stranger.port);
    const Control answer = stranger.open(client, stranger.address_of(client.port), 5, now);
    EXPECT_EQ(answer.type, ControlType::Refused);
    EXPECT_EQ(answer.reason, RefuseReason::NotServing);
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
}

TEST_F(SessionBegin, ARecordedSessionExecutesNothingAtARestartedServerNorAtTheSameOne) {
    const roce::UdAddress to = stranger.address_of(server.port);
    stranger.ask(to, 5, 0, now);
    server.turn(now);
    stranger.turn(now);
    const std::uint64_t cookie = stranger.last(ControlType::Challenge)->control().cookie;
    Control accepted;
    Control end;
    end.type = ControlType::Disconnect;
    end.token = 5;
    const auto replay = [&](const Control& of) {
        stranger.ask(to, 5, 0, now);
        stranger.ask(to, 5, cookie, now);
        stranger.send(to, first_request_of(of), payload, now);
        stranger.send(to, end, now);
        server.turn(now);
        stranger.turn(now);
    };
    stranger.ask(to, 5, cookie, now);
    server.turn(now);
    stranger.turn(now);
    accepted = stranger.last(ControlType::Accepted)->control();
    replay(accepted);
    ASSERT_EQ(executed, 1);
    for (int i = 0; i < 10; ++i) {  // its cookie is still valid: the session opens, with other numbers
        replay(accepted);
    }
    EXPECT_EQ(executed, 1);
    restart_server(33);
    stranger.heard.clear();
    for (int i = 0; i < 10; ++i) {
        replay(accepted);
    }
    EXPECT_EQ(executed, 1);
    EXPECT_EQ(stranger.last(ControlType::Accepted), std::nullopt);
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
}

TEST_F(SessionBegin, ASourceThatTakesAllItCanLeavesRoomForOthers) {
    std::uint64_t token = 1;
    const auto take_all = [&](RawPeer& peer) {
        std::size_t opened = 0;
        for (std::uint16_t i = 0; i < Host::kSessionsMax * 2; ++i) {  // from ever new ports
            const roce::UdAddress to = peer.address_of(server.port, static_cast<std::uint16_t>(0xd000 + i));
            opened += peer.open(server, to, token++, now).type == ControlType::Accepted ? 1U : 0U;
        }
        return opened;
    };
    EXPECT_EQ(take_all(stranger), std::size_t{Host::kSessionsMax} * 3 / 4);
    for (int i = 0; i < 4; ++i) {
        client.connect(server, now);
    }
    run(milliseconds(100));
    EXPECT_EQ(events.size(), 4U);
    for (const auto& [event, reason] : events) {
        EXPECT_EQ(event, SessionEvent::Connected);
    }
    RawPeer other("10.0.0.10");
    other.port.join(server.port);
    server.port.join(other.port);
    EXPECT_EQ(take_all(other), (std::size_t{Host::kSessionsMax} / 4 - 4) * 3 / 4);
    RawPeer third("10.0.0.11");
    third.port.join(server.port);
    server.port.join(third.port);
    EXPECT_GE(take_all(third), 1U);
    now = now + kPeerTimeout * 2;  // a leap, and then the peers' silence
    run(kPeerTimeout * 2 + milliseconds(100));
    EXPECT_EQ(server.endpoint->sessions_open(), 4U);
    EXPECT_EQ(take_all(stranger), std::size_t{Host::kSessionsMax - 4} * 3 / 4);
}

TEST(ServerSessions, OneHostMayHaveTwentyThousandOfALargeTable) {
    constexpr std::size_t kPlaces = 32767;
    ServerSessions sessions(kPlaces, {1, 2});
    RawPeer server("10.0.0.2");
    RawPeer peer("10.0.0.9");
    const roce::UdAddress client = server.address_of(peer.port);
    const net::IpAddress source = peer.port.local_address();
    const net::IpAddress other = net::IpAddress::from_v4(0x0a000063);
    std::uint32_t opened = 0;
    while (sessions.may_open(source, kPlaces - opened)) {
        sessions.open(client, opened, opened);
        ++opened;
    }
    EXPECT_GE(opened, 20'000U);
    EXPECT_LE(opened, kPlaces * 3 / 4 + 1);
    EXPECT_TRUE(sessions.may_open(other, 1));
    EXPECT_FALSE(sessions.may_open(other, 0));
    for (std::uint32_t i = 0; i < opened; ++i) {
        EXPECT_EQ(sessions.find(client, i), i);
        sessions.end(client, i);
        EXPECT_EQ(sessions.find(client, i), kNone);
    }
    EXPECT_TRUE(sessions.may_open(source, 1));
}

// Tokens that fall into one chain of a table of, for example, 65,537 buckets if it hashes them without a secret.
TEST(ServerSessions, TokensThatCollideWithoutASecretDoNotWithOne) {
    constexpr std::uint64_t kBuckets = 65537;
    const KeyedHash hash{{3, 4}};
    std::map<std::uint64_t, int> chains;
    int longest = 0;
    for (std::uint64_t i = 0; i < 4096; ++i) {
        longest = std::max(longest, ++chains[hash(i * kBuckets) % kBuckets]);
    }
    EXPECT_LT(longest, 8);
}

}  // namespace
}  // namespace cairn::erpc
