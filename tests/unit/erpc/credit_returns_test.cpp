// The credit returns of a server: one for each message with packets in a burst, and their contents.
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/erpc/host.hpp"
#include "tests/unit/erpc/raw_peer.hpp"

namespace cairn::erpc {
namespace {

constexpr std::uint8_t kType = 7;
constexpr std::uint32_t kPackets = 15;  // of a request

class CreditReturns : public testing::Test {
protected:
    CreditReturns() {
        server.port.join(client.port);
        client.port.join(server.port);
        server.endpoint->set_handler(
            kType,
            [](void* context, const Request& request) {
                ++*static_cast<int*>(context);
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload.first(8), request.now));
            },
            &executed);
        accepted = client.open(server, to_server, 1, now);
        EXPECT_EQ(accepted.type, ControlType::Accepted);
    }
    [[nodiscard]] std::uint64_t request_number(std::uint32_t slot) const noexcept {
        return accepted.first_request + kSlotsPerSession + slot;
    }
    // Sends a packet of the request in `slot`. The server does not read it yet.
    void send(std::uint32_t slot, std::uint32_t packet) {
        Header header;
        header.request_type = kType;
        header.session = accepted.sender_session;
        header.message_bytes = kPackets * RawPeer::kPacketBytes;
        header.packet_number = static_cast<std::uint16_t>(packet);
        header.request_number = request_number(slot);
        client.send(to_server, header, payload, now);
    }
    // Lets the server take all packets in one burst. Returns its packets of this type.
    std::vector<Header> answers(PacketType type) {
        client.heard.clear();
        server.turn(now);
        client.turn(now);
        std::vector<Header> found;
        for (const RawPeer::Heard& each : client.heard) {
            if (each.header.kind == Kind::Data && each.header.type == type) {
                found.push_back(each.header);
            }
        }
        EXPECT_EQ(found.size(), client.heard.size()) << "the server sends something else, too";
        return found;
    }
    static void expect_credits(const Header& header, std::uint64_t request, std::uint32_t newest,
                               std::uint32_t in_order) {
        const CreditReturn said = CreditReturn::of(header);
        EXPECT_EQ(header.request_number, request);
        EXPECT_EQ(said.newest, newest);
        EXPECT_EQ(said.in_order, in_order);
    }

    Host server{"10.0.0.2", 22};
    RawPeer client{"10.0.0.1"};
    roce::UdAddress to_server = client.address_of(server.port);
    Instant now{1'000'000'000};
    Control accepted{};
    int executed = 0;
    const std::vector<std::uint8_t> payload = std::vector<std::uint8_t>(RawPeer::kPacketBytes);
};

TEST_F(CreditReturns, ABurstOfPacketsOfOneMessageIsAnsweredByOneCreditReturn) {
    std::uint32_t sent = 0;
    for (const std::uint32_t burst : {8U, 1U, 5U}) {
        for (const std::uint32_t end = sent + burst; sent < end; ++sent) {
            send(0, sent);
        }
        const std::vector<Header> returned = answers(PacketType::CreditReturn);
        ASSERT_EQ(returned.size(), 1U) << burst;
        expect_credits(returned[0], request_number(0), sent - 1, sent);
    }
}

TEST_F(CreditReturns, TwoMessagesInOneBurstAreAnsweredByOneCreditReturnEach) {
    for (std::uint32_t packet = 0; packet < 6; ++packet) {
        send(0, packet);
        send(1, packet);
    }
    const std::vector<Header> returned = answers(PacketType::CreditReturn);
    ASSERT_EQ(returned.size(), 2U);
    expect_credits(returned[0], request_number(0), 5, 6);
    expect_credits(returned[1], request_number(1), 5, 6);
}

TEST_F(CreditReturns, PacketsThatCameTwiceOrAheadOfAGapMakeNoFurtherOnes) {
    for (const std::uint32_t packet : {0U, 1U, 1U, 4U, 3U}) {
        send(0, packet);
    }
    const std::vector<Header> returned = answers(PacketType::CreditReturn);
    ASSERT_EQ(returned.size(), 1U);
    expect_credits(returned[0], request_number(0), 1, 2);  // the session is not selective
}

TEST_F(CreditReturns, ABurstThatCompletesItsMessageIsAnsweredByTheResponseAlone) {
    for (std::uint32_t packet = 0; packet < kPackets; ++packet) {
        send(0, packet);
    }
    EXPECT_EQ(answers(PacketType::Response).size(), 1U);
    EXPECT_EQ(executed, 1);
}

}  // namespace
}  // namespace cairn::erpc
