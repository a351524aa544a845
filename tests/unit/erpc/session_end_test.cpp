// The end of sessions, and the hosts that may end them: guessing does not suffice.
#include <gtest/gtest.h>

#include "tests/unit/erpc/host.hpp"
#include "tests/unit/erpc/raw_peer.hpp"

namespace cairn::erpc {
namespace {

// Returns SplitMix64's output for an input.
std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31U);
}
std::uint64_t unmix(std::uint64_t value) {
    const auto unshift = [](std::uint64_t of, unsigned bits) {
        for (unsigned done = bits; done < 64; done *= 2) {
            of ^= of >> done;
        }
        return of;
    };
    value = unshift(value, 31) * 0x319642b2d24d8ec3U;
    return unshift(unshift(value, 27) * 0x96de1b173f119089U, 30);
}

TEST(ForgedEnds, ATokenDoesNotFollowFromThoseBeforeIt) {
    ASSERT_EQ(unmix(mix(0x0123456789abcdefU)), 0x0123456789abcdefU);
    Host client("10.0.0.1", 11);
    RawPeer server("10.0.0.2");
    client.port.join(server.port);
    server.port.join(client.port);
    const Instant now{1'000'000'000};
    std::vector<std::uint64_t> tokens;
    for (int i = 0; i < 8; ++i) {
        (void)client.connect(server.port, now);
        client.turn(now);
        server.turn(now);
        tokens.push_back(server.last(ControlType::Connect)->control().token);
    }
    for (std::size_t i = 1; i < tokens.size(); ++i) {
        EXPECT_NE(tokens[i], mix(unmix(tokens[i - 1]) + 0x9e3779b97f4a7c15U)) << "SplitMix64";
        EXPECT_NE(tokens[i] - tokens[i - 1], tokens[1] - tokens[0] + (i == 1 ? 1 : 0)) << "a counter";
    }
}

class SessionEnd : public testing::Test {
protected:
    SessionEnd() {
        for (RawPeer* const peer : {&forger, &liar}) {
            for (Host* const host : {&client, &server}) {
                peer->port.join(host->port);
                host->port.join(peer->port);
            }
        }
        client.port.join(server.port);
        server.port.join(client.port);
        server.endpoint->set_handler(
            kEcho,
            [](void* context, const Request& asked) {
                auto& self = *static_cast<SessionEnd*>(context);
                static_cast<void>(asked.endpoint.reserve(asked.handle, 8));
                if (self.answers) {
                    asked.endpoint.respond(asked.handle, asked.now);
                } else {
                    self.kept.push_back(asked.keep());
                }
            },
            this);
        client.endpoint->set_session_callback(
            [](void* context, SessionId, SessionEvent event, RefuseReason) {
                static_cast<SessionEnd*>(context)->events.push_back(event);
            },
            this);
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client.turn(now);
            server.turn(now);
        }
    }
    void post(SessionId session) {
        Call call;
        call.type = kEcho;
        call.request = request;
        call.context = this;
        call.completion = [](void* context, const CallResult& result) {
            auto& self = *static_cast<SessionEnd*>(context);
            self.ok += result.status == CallStatus::Ok ? 1 : 0;
        };
        EXPECT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    // Opens a path of the forger's port whose packets claim to come from `as`.
    static roce::UdAddress spoofed(RawPeer& peer, const Host& as, const Host& to) {
        return {peer.port.open_path({as.port.local_address(), to.port.local_address(), 0xc000, 0}, {}), Qpn{0x100},
                RawPeer::kQkey};
    }

    static constexpr std::uint8_t kEcho = 7;
    Host server{"10.0.0.2", 22};
    Host client{"10.0.0.1", 11};
    RawPeer forger{"10.0.0.9"};
    RawPeer liar{"10.0.0.8"};
    Instant now{1'000'000'000};
    bool answers = true;
    std::vector<rpc::KeptRequest> kept;
    int ok = 0;
    std::vector<std::uint8_t> request = std::vector<std::uint8_t>(8);
    std::vector<SessionEvent> events;
};

TEST_F(SessionEnd, ASpoofedPacketWithoutTheTokenEndsNothingAndAnswersNothing) {
    const SessionId session = client.connect(server, now);
    run(milliseconds(5));
    answers = false;
    post(session);
    run(milliseconds(1));
    const roce::UdAddress to_client = spoofed(forger, server, client);
    const roce::UdAddress to_server = spoofed(liar, client, server);
    const std::uint64_t before = client.endpoint->statistics().of(Drop::UnknownSession);
    std::uint64_t guesses = 0;
    for (std::uint64_t guess = 0; guess < 64; ++guess) {
        Control control;
        control.sender_session = control.receiver_session = session;
        control.token = guess * 0x0101010101010101U;
        control.first_request = guess * kSlotsPerSession;
        for (const ControlType type : {ControlType::Disconnected, ControlType::Refused, ControlType::Pong}) {
            control.type = type;
            forger.send(to_client, control, now);
            ++guesses;
        }
        control.type = ControlType::Disconnect;
        liar.send(to_server, control, now);
        Header header;
        header.type = PacketType::Response;
        header.session = session;
        header.message_bytes = 8;
        header.request_number = guess * 0x10101010101U;
        forger.send(to_client, header, request, now);
        run(microseconds(50));
    }
    run(milliseconds(5));
    EXPECT_EQ(client.endpoint->statistics().of(Drop::UnknownSession) - before - 64, guesses)
        << "and the answers to what was said in its name";
    EXPECT_EQ(client.endpoint->statistics().of(Drop::StaleResponse), 64U);
    EXPECT_EQ(server.endpoint->statistics().of(Drop::UnknownSession), 64U);
    EXPECT_EQ(ok, 0);
    EXPECT_EQ(events, std::vector<SessionEvent>{SessionEvent::Connected});
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
}

TEST_F(SessionEnd, ASessionGivenUpWhileItConnectsLeavesNothingAtTheServer) {
    (void)client.connect(server, now);  // the next one gets another number than a client first assumes
    run(milliseconds(5));
    ASSERT_EQ(server.endpoint->sessions_open(), 1U);
    for (int turns = 0; turns < 8; ++turns) {
        const SessionId session = client.connect(server, now);
        for (int i = 0; i < turns; ++i) {
            now = now + microseconds(50);
            (i % 2 == 0 ? client : server).turn(now);
        }
        client.endpoint->disconnect(session, now);
        run(milliseconds(5));
        EXPECT_EQ(server.endpoint->sessions_open(), 1U) << turns;
        EXPECT_EQ(client.endpoint->sessions_open(), 1U) << turns;
    }
}

TEST_F(SessionEnd, ASessionThatALateConnectOpenedEndsAsNobodyUsesIt) {
    Control accepted;
    accepted.type = ControlType::Accepted;
    accepted.sender_session = SessionId{3};
    accepted.token = 99;
    forger.send(forger.address_of(client.port), accepted, now, RawPeer::kPacketBytes);
    client.turn(now);
    forger.turn(now);
    const auto answer = forger.last(ControlType::Disconnect);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->control().token, 99U);
    EXPECT_EQ(answer->control().receiver_session, SessionId{3});
    EXPECT_EQ(answer->header.message_bytes, sizeof(RawControl));
}

TEST_F(SessionEnd, ASessionThatEndedAtTheServerAndWasOpenedAnewIsLostToItsClient) {
    const roce::UdAddress to{
        client.port.open_path({client.port.local_address(), forger.port.local_address(), 0xc000, 0}, now), Qpn{0x100},
        Qkey{0x205}};
    (void)client.endpoint->connect(to, now);
    client.turn(now);
    forger.turn(now);
    (void)forger.accept(800, now);
    const RawPeer::Heard asked = forger.accept(800, now);
    client.turn(now);
    EXPECT_EQ(events, std::vector<SessionEvent>{SessionEvent::Connected});
    Control answer = forger.accepted;
    answer.type = ControlType::Pong;
    answer.first_request = 808;
    forger.send(asked.from, answer, now);
    client.turn(now);
    EXPECT_EQ(events, (std::vector<SessionEvent>{SessionEvent::Connected, SessionEvent::PeerLost}));
}

TEST_F(SessionEnd, AnEndpointThatEndsTellsItsPeers) {
    for (int i = 0; i < 40; ++i) {
        client.connect(server, now);
    }
    run(milliseconds(5));
    EXPECT_EQ(server.endpoint->sessions_open(), 40U);
    client.endpoint.reset();
    for (int i = 0; i < 4; ++i) {
        server.turn(now);
    }
    EXPECT_EQ(server.endpoint->sessions_open(), 0U);
    client.restart(12);
    client.connect(server, now);
    run(milliseconds(5));
    EXPECT_EQ(client.endpoint->sessions_open(), 1U);
    server.endpoint.reset();
    client.turn(now);
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
}

// The request numbers of a session wrap around to 0.
TEST_F(SessionEnd, NoSessionEndsWithItsNumbers) {
    const roce::UdAddress to{
        client.port.open_path({client.port.local_address(), forger.port.local_address(), 0xc000, 0}, now), Qpn{0x100},
        Qkey{0x205}};
    const SessionId session = client.endpoint->connect(to, now).value();
    client.turn(now);
    forger.turn(now);
    const RawPeer::Heard asked = forger.accept(kFirstRequestMask - kSlotsPerSession * 2, now);
    client.turn(now);
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < 4; ++i) {
        forger.heard.clear();
        post(session);
        client.turn(now);
        forger.turn(now);
        Header header = forger.heard.back().header;
        numbers.push_back(header.request_number);
        header.type = PacketType::Response;
        header.session = session;
        forger.send(asked.from, header, request, now);
        client.turn(now);
    }
    EXPECT_EQ(ok, 4);
    EXPECT_EQ(numbers, (std::vector<std::uint64_t>{kFirstRequestMask - 8, kFirstRequestMask, 0, 8}));
}

}  // namespace
}  // namespace cairn::erpc
