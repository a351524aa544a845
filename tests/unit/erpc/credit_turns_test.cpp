// Messages of one session that are under way share its credits, so that the server does not give any of them up.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {
namespace {

// Two credits, and hosts that read the network only every 2 ms. One packet of each credit comes back per turn. The
// server keeps an unread answer for as long as 20 turns.
class CreditTurns : public TwoHosts {
protected:
    static constexpr Duration kTurn = milliseconds(2);
    static constexpr std::uint32_t kPacketBytes = 1024 - sizeof(RawHeader);

    void SetUp() override {
        for (Host* const host : {&client, &server}) {
            host->config.peer_timeout = kLeastPeerTimeout;
            host->config.credits = 2;
            host->restart(host == &client ? 11 : 22);
        }
        TwoHosts::SetUp();
        server.endpoint->set_handler(
            kEcho,
            [](void* context, const Request& request) {
                std::uint64_t tag = 0;
                std::memcpy(&tag, request.payload.data(), sizeof(tag));
                static_cast<CreditTurns*>(context)->kept.emplace(tag, request.keep());
            },
            this);
        session = connect();
        turns(5);
    }
    void turns(int count) {
        for (; count > 0; --count) {
            client.turn(now);
            server.turn(now);
            now = now + kTurn;
        }
    }
    // Sends a request of this many packets. It stays at the server until answer().
    void ask(std::uint64_t tag, std::uint32_t packets) {
        requests[tag] = std::vector<std::uint8_t>((packets - 1) * kPacketBytes + sizeof(tag));
        std::memcpy(requests[tag].data(), &tag, sizeof(tag));
        Call call;
        call.type = kEcho;
        call.request = requests[tag];
        call.context = this;
        call.tag = tag;
        call.completion = [](void* context, const CallResult& result) {
            static_cast<CreditTurns*>(context)->results[result.tag] = result.status;
        };
        ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    void answer(std::uint64_t tag, std::uint32_t packets) {
        ASSERT_EQ(kept.count(tag), 1U);
        ASSERT_EQ(server.endpoint->reserve(kept.at(tag), packets * kPacketBytes).size(), packets * kPacketBytes);
        ASSERT_TRUE(server.endpoint->respond(kept.at(tag), now));
        kept.erase(tag);
    }

    SessionId session{};
    std::map<std::uint64_t, rpc::KeptRequest> kept;  // requests without an answer, by tag
};

// The request of call 1 gave its credit to call 2 at its timeout.
TEST_F(CreditTurns, AnAnswerIsReadWhileALargeRequestOfItsSessionIsSent) {
    ask(1, 1);
    turns(1);
    ask(2, 400);
    turns(10);
    answer(1, 3);
    turns(20);
    EXPECT_EQ(results[1], CallStatus::Ok);
    EXPECT_EQ(kept.count(2), 0U) << "the large request is still under way";
    turns(400);
    answer(2, 1);
    turns(10);
    expect_all(2, CallStatus::Ok);
}

TEST_F(CreditTurns, AShortAnswerIsReadBesideALongOne) {
    ask(1, 1);
    ask(2, 1);
    turns(1);
    answer(1, 400);
    turns(10);
    answer(2, 3);
    turns(20);
    EXPECT_EQ(results.count(1), 0U) << "the long answer is still read";
    EXPECT_EQ(results[2], CallStatus::Ok);
    turns(400);
    expect_all(2, CallStatus::Ok);
}

}  // namespace
}  // namespace cairn::erpc
