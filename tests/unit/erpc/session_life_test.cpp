// Whether a peer lives is told by what it says now, not by copies of what it said once.
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
    // The host's session with the peer, which answers its first call and its first Ping.
    void begin_as_server() {
        const SessionId session = host.connect(peer.port, now);
        turn();
        Control accepted = answer(ControlType::Connect, ControlType::Accepted);
        accepted.first_request = 800;
        accepted.path_mtu_bytes = RawPeer::kPathMtuBytes;
        peer.send(to_host, accepted, now, accepted.payload_bytes(RawPeer::kPacketBytes));
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

}  // namespace
}  // namespace cairn::erpc
