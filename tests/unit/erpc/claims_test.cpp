// Peers that claim more bytes than they send: no handler and no answer gets a byte that its own client did not send.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/erpc/raw_peer.hpp"
#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {
namespace {

constexpr std::uint8_t kSecret = 0xa7;

class Claims : public TwoHosts {
protected:
    void SetUp() override {
        TwoHosts::SetUp();
        peer.port.join(server.port);
        server.port.join(peer.port);
        server.endpoint->set_handler(
            kEcho,
            [](void* context, const Request& request) {
                auto& self = *static_cast<Claims*>(context);
                self.seen.emplace_back(request.payload.begin(), request.payload.end());
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            this);
        // The pool and the packet buffers contain the bytes of an honest client.
        session = connect();
        for (const std::size_t bytes : {40U, 900U, 3000U, 40U, 900U, 3000U}) {
            requests[0].assign(bytes, kSecret);
            Call call;
            call.type = kEcho;
            call.request = requests[0];
            ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
            run(milliseconds(1));
        }
        client.endpoint->disconnect(session, now);
        run(milliseconds(1));
        seen.clear();
        to = peer.address_of(server.port);
        opened = peer.open(server, to, 0x1234, now);
        ASSERT_EQ(opened.type, ControlType::Accepted);
    }
    // Sends a packet of the peer's n-th request.
    void send(std::uint64_t n, std::uint32_t claimed, std::uint16_t packet, std::size_t brought) {
        Header header;
        header.request_type = kEcho;
        header.session = opened.sender_session;
        header.message_bytes = claimed;
        header.packet_number = packet;
        header.request_number = opened.first_request + n * kSlotsPerSession;
        peer.send(to, header, std::vector<std::uint8_t>(brought, 1), now);
        server.turn(now);
        peer.turn(now);
        now = now + milliseconds(1);
    }
    [[nodiscard]] std::uint64_t bad_sizes() { return server.endpoint->statistics().of(Drop::BadSize); }

    RawPeer peer{"10.0.0.7"};
    SessionId session{};
    roce::UdAddress to{};
    Control opened{};
    std::vector<std::vector<std::uint8_t>> seen;
};

TEST_F(Claims, ARequestOfOnePacketIsAllThere) {
    send(1, 40, 0, 40);
    send(2, 40, 0, 40);  // its bytes identify it from now on
    ASSERT_EQ(seen.size(), 2U);
    send(3, 40, 0, 36);
    send(3, 44, 0, 40);
    send(3, 43, 0, 40);
    send(3, 900, 0, 0);
    send(3, 900, 0, 40);
    EXPECT_EQ(bad_sizes(), 5U);
    EXPECT_EQ(seen.size(), 2U);
    send(3, 40, 0, 40);
    EXPECT_EQ(seen, std::vector(3, std::vector<std::uint8_t>(40, 1)));
}

TEST_F(Claims, ARequestOfSeveralPacketsIsAllThere) {
    constexpr std::uint32_t kFull = 1024 - sizeof(RawHeader);
    send(1, 2 * kFull + 100, 0, kFull);
    send(1, 2 * kFull + 100, 1, kFull - 4);  // the second one is short,
    send(1, 2 * kFull + 100, 1, 0);
    send(1, 2 * kFull + 90, 1, kFull);  // or of a message of another length,
    send(1, 3 * kFull + 100, 1, kFull);
    send(1, kFull, 0, kFull);  // or of one of a single packet
    EXPECT_EQ(bad_sizes(), 5U);
    EXPECT_TRUE(seen.empty());
    send(1, 2 * kFull + 100, 1, kFull);
    send(1, 2 * kFull + 100, 2, 96);
    EXPECT_EQ(bad_sizes(), 6U);
    EXPECT_TRUE(seen.empty());
    send(1, 2 * kFull + 100, 2, 100);
    EXPECT_EQ(seen, std::vector(1, std::vector<std::uint8_t>(2 * kFull + 100, 1)));
    for (const RawPeer::Heard& heard : peer.heard) {
        EXPECT_EQ(std::count(heard.payload.begin(), heard.payload.end(), kSecret), 0);
    }
}

}  // namespace
}  // namespace cairn::erpc
