// A peer's packets count only if they are plausible: copies of earlier ones do not show that it lives, and it answers
// nothing that was not sent.
#include <gtest/gtest.h>

#include "tests/unit/erpc/host.hpp"
#include "tests/unit/erpc/raw_peer.hpp"

namespace cairn::erpc {
namespace {

constexpr Duration kBetweenCopies = milliseconds(10);

class SessionLife : public testing::Test {
protected:
    SessionLife() {
        host.port.join(peer.port);
        peer.port.join(host.port);
        host.endpoint->set_session_callback(
            [](void* context, SessionId, SessionEvent event, RefuseReason) {
                static_cast<SessionLife*>(context)->events.push_back(event);
            },
            this);
    }
    void turn() {
        host.turn(now);
        peer.turn(now);
        now = now + milliseconds(1);
    }
    // Begins the host's session with the peer, which answers its first call and its first Ping.
    void begin_as_server() {
        session = host.connect(peer.port, now);
        turn();
        (void)peer.accept(800, now);
        turn();
        Call call;
        call.request = request;
        EXPECT_EQ(host.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
        turn();
        response = peer.heard.back().header;
        response.type = PacketType::Response;
        response.session = session;
        peer.send(to_host, response, request, now);
        while (!peer.last(ControlType::Ping)) {
            turn();
        }
        pong = answer(ControlType::Ping, ControlType::Pong);
        pong.first_request = 800;
        peer.send(to_host, pong, now);
        turn();
        ASSERT_EQ(events, std::vector{SessionEvent::Connected});
        ASSERT_EQ(host.endpoint->calls_pending(), 0U);
    }
    // Makes the host's next call, of several packets, one for each of its credits. Returns the header by which the peer
    // returns credits of it.
    Header call_with_many_packets() {
        Call call;
        call.request = large;
        EXPECT_EQ(host.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
        peer.heard.clear();
        turn();
        Header credit = peer.heard.back().header;
        credit.type = PacketType::CreditReturn;
        credit.session = session;
        return credit;
    }
    [[nodiscard]] Control answer(ControlType to, ControlType type) const {
        Control control = peer.last(to)->control();
        std::swap(control.sender_session, control.receiver_session);
        control.type = type;
        return control;
    }

    Host host{"10.0.0.1", 11};
    RawPeer peer{"10.0.0.2"};
    roce::UdAddress to_host = peer.address_of(host.port);
    Instant now{1'000'000'000};
    std::vector<std::uint8_t> request = std::vector<std::uint8_t>(8);
    const std::vector<std::uint8_t> large = std::vector<std::uint8_t>(20'000);
    SessionId session{};  // the host's number
    Header response{};
    Control pong{};
    std::vector<SessionEvent> events;
};

TEST_F(SessionLife, CopiesOfOldAnswersDoNotStandForASilentServer) {
    begin_as_server();
    for (const Instant end = now + kPeerTimeout * 2; now < end && events.size() == 1;) {
        if (now.ns % kBetweenCopies.ns == 0) {
            peer.send(to_host, response, request, now);
            peer.send(to_host, pong, now);
        }
        turn();
    }
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events.back(), SessionEvent::PeerLost);
}

TEST_F(SessionLife, AServerIsToldThatItsClientLivesWhateverTheClientHears) {
    begin_as_server();
    peer.heard.clear();
    Instant asked = now;
    for (const Instant end = now + kPeerTimeout * 2; now < end;) {
        if (now.ns % kBetweenCopies.ns == 0) {
            peer.send(to_host, response, request, now);
        }
        turn();
        if (peer.last(ControlType::Ping)) {
            Control alive = answer(ControlType::Ping, ControlType::Pong);
            alive.first_request = 800;
            peer.send(to_host, alive, now);
            peer.heard.clear();
            EXPECT_LE(now - asked, kPeerTimeout / 2);
            asked = now;
        }
    }
    EXPECT_LE(now - asked, kPeerTimeout / 2);
    EXPECT_EQ(events.size(), 1U);
}

TEST_F(SessionLife, CopiesOfAnOldRequestDoNotKeepTheSessionOfASilentClient) {
    host.endpoint->set_handler(
        0, [](void*, const Request& asked) { asked.endpoint.respond(asked.handle, asked.now); }, nullptr);
    const Control accepted = peer.open(host, to_host, 77, now);
    ASSERT_EQ(accepted.type, ControlType::Accepted);
    Header asks;
    asks.type = PacketType::Request;
    asks.session = accepted.sender_session;
    asks.message_bytes = static_cast<std::uint32_t>(request.size());
    asks.request_number = accepted.first_request + kSlotsPerSession;
    for (const Instant end = now + kPeerTimeout * 3; now < end && host.endpoint->sessions_open() != 0;) {
        if (now.ns % kBetweenCopies.ns == 0) {
            peer.send(to_host, asks, request, now);
        }
        turn();
    }
    EXPECT_EQ(host.endpoint->statistics().requests_handled, 1U);
    EXPECT_EQ(host.endpoint->sessions_open(), 0U);
}

// A server that keeps saying that it gave a request up does not set the rate of its client.
TEST_F(SessionLife, ARequestThatIsGivenUpBeginsAnewOnceInATimeoutAndASmallOneNever) {
    begin_as_server();
    for (const std::span<const std::uint8_t> asked : {std::span<const std::uint8_t>(request), std::span(large)}) {
        Call call;
        call.request = asked;
        ASSERT_EQ(host.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    turn();
    Control refusal = answer(ControlType::Connect, ControlType::RequestRefused);
    refusal.receiver_session = session;
    refusal.reason = RefuseReason::GivenUp;
    for (int i = 0; i < 40; ++i) {
        for (const RawPeer::Heard& each : std::vector(peer.heard)) {
            if (each.header.kind != Kind::Control) {
                refusal.request_number = each.header.request_number;
                peer.send(to_host, refusal, now);
            }
        }
        peer.heard.clear();
        turn();
    }
    EXPECT_GE(host.endpoint->statistics().calls_restarted, 1U);
    EXPECT_LE(host.endpoint->statistics().calls_restarted, 40 / 4 + 1U);
    host.endpoint->check_invariants();
}

TEST_F(SessionLife, CopiesOfACreditReturnDoNotStandForASilentServer) {
    begin_as_server();
    Header credit = call_with_many_packets();
    credit.packet_number = 0;
    credit.message_bytes = 1;
    for (const Instant end = now + kPeerTimeout * 2; now < end && events.size() == 1;) {
        if (now.ns % kBetweenCopies.ns == 0) {
            peer.send(to_host, credit, {}, now);
        }
        turn();
    }
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events.back(), SessionEvent::PeerLost);
}

TEST_F(SessionLife, WhatWasNotSentIsNotTakenForAnswered) {
    begin_as_server();
    Header credit = call_with_many_packets();
    const std::uint16_t sent = host.config.credits;
    ASSERT_EQ(peer.heard.size(), sent);
    const std::uint64_t before = host.endpoint->statistics().drops.of(Drop::BadSize);
    peer.heard.clear();
    credit.packet_number = 0;
    credit.message_bytes = sent + 1U;
    peer.send(to_host, credit, {}, now);
    credit.packet_number = sent;
    credit.message_bytes = 1;
    peer.send(to_host, credit, {}, now);
    turn();
    EXPECT_EQ(host.endpoint->statistics().drops.of(Drop::BadSize), before + 2);
    EXPECT_TRUE(peer.heard.empty());
    credit.packet_number = static_cast<std::uint16_t>(sent - 1);
    credit.message_bytes = sent;
    peer.send(to_host, credit, {}, now);
    turn();
    ASSERT_EQ(peer.heard.size(), sent);
    EXPECT_EQ(peer.heard.front().header.packet_number, sent);
}

}  // namespace
}  // namespace cairn::erpc
