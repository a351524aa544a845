// Calls that a gateway forwards, and the room of their answers, which two shards promise each other.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "fs/channel/segment.hpp"
#include "fs/daemon/gateway.hpp"
#include "fs/daemon/peer_network.hpp"
#include "tests/unit/copyrpc/host.hpp"

namespace cairn::fs {
namespace {

constexpr std::uint64_t kAsker = 8;

PeerLinkConfig links_of_room(ShardNumber number) {
    PeerLinkConfig config;
    config.cluster = {
        {net::IpAddress::parse("10.0.0.1").value(), net::IpAddress::parse("10.0.0.2").value()}, number, 1};
    config.facts = {.from = number, .nodes = 2, .shards = 2, .life = 5U + number};
    return config;
}

copyrpc::EndpointConfig room_endpoint_config() {
    copyrpc::EndpointConfig config;
    config.ring_bytes = PeerNetwork::kRingBytes;
    config.receives = 16;
    config.message_bytes_max = 0;
    return config;
}

// The common part of two nodes.
struct RoomNode : copyrpc::Host, PeerWatch {
    explicit RoomNode(ShardNumber number)
        : Host(number == 0 ? "10.0.0.1" : "10.0.0.2", 7U + number, room_endpoint_config()),
          links(*endpoint, *worker, links_of_room(number), *this, counters) {
        EXPECT_TRUE(links.listen().ok());
    }
    virtual ~RoomNode() { endpoint.reset(); }
    void on_found(ShardNumber, std::uint64_t) override { is_joined = true; }
    void on_lost(ShardNumber) override { is_joined = false; }

    PeerCounters counters;
    PeerLinks links;
    bool is_joined = false;
};

class AskingNode final : public RoomNode, public ShardHost {
public:
    AskingNode() : RoomNode(0), mail(*endpoint, links, *worker, counters) {}
    void answer(CallToken token, std::span<const std::uint8_t> bytes) noexcept override {
        answers[token].assign(bytes.begin(), bytes.end());
    }
    void send(ShardNumber, std::span<const std::uint8_t>) noexcept override {}
    void on_found(ShardNumber peer, std::uint64_t life) override {
        RoomNode::on_found(peer, life);
        gateway.on_found(peer);
    }

    PeerMail mail;
    Gateway gateway{*endpoint, links, mail, *worker, *this, counters};
    std::map<CallToken, std::vector<std::uint8_t>> answers;
};

// Keeps arriving calls until the test lets it answer them.
class OwnerNode final : public RoomNode {
public:
    OwnerNode() : RoomNode(1) {
        endpoint->set_handler(
            static_cast<std::uint8_t>(PeerCall::Forward),
            [](void* self, const copyrpc::Request& request) {
                static_cast<OwnerNode*>(self)->kept.push_back(request.keep());
            },
            this);
        endpoint->set_handler(
            static_cast<std::uint8_t>(PeerCall::Tell),
            [](void* self, const copyrpc::Request& request) {
                ++static_cast<OwnerNode*>(self)->messages;
                EXPECT_TRUE(request.endpoint.answer(request.handle, {}, request.now));
            },
            this);
    }
    void answer_all(std::size_t bytes, Instant now) {
        std::vector<std::uint8_t> message(bytes + 4);
        const std::vector<std::uint8_t> answer(bytes, 0x5a);
        EXPECT_EQ(put_forwarded_answer(message, {text_of(answer), {}}), message.size());
        for (const rpc::KeptRequest& each : std::exchange(kept, {})) {
            EXPECT_TRUE(endpoint->answer(each, message, now));
        }
    }

    std::vector<rpc::KeptRequest> kept;
    int messages = 0;
};

class GatewayRoomTest : public testing::Test {
protected:
    GatewayRoomTest() {
        gateway.port.join(owner.port);
        owner.port.join(gateway.port);
        pass(seconds(1));
        EXPECT_TRUE(gateway.is_joined && owner.is_joined);
    }
    void pass(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(100)) {
            gateway.turn(now);
            owner.turn(now);
            gateway.links.on_turn(now);
            owner.links.on_turn(now);
            gateway.gateway.on_turn(now);
        }
    }
    void forward(const Request& request, std::uint32_t calls) {
        std::vector<std::uint8_t>& bytes = requests_.emplace_back(kRequestBytes);
        bytes.resize(put_request(bytes, {.shard = 1, .sequence = 1}, request));
        for (std::uint32_t i = 0; i != calls; ++i) {
            gateway.gateway.take({i, kAsker, i, {}, bytes, data_}, 1, now);
        }
    }

    Instant now{1'000'000'000};
    AskingNode gateway;
    OwnerNode owner;

private:
    std::vector<std::uint8_t> data_ = std::vector<std::uint8_t>(kMostInlineBytes);
    std::deque<std::vector<std::uint8_t>> requests_;
};

// A call may wait for a message of this very shard.
TEST_F(GatewayRoomTest, MessagesPassHoweverManyCallsWait) {
    const std::vector<Request> kinds{StatRequest{}, ListRequest{}, ReadRequest{.bytes = kMostInlineBytes}};
    for (const Request& kind : kinds) {
        forward(kind, 64);
        pass(milliseconds(50));
        ASSERT_GE(owner.kept.size(), 2U);
        const int before = owner.messages;
        for (int i = 0; i != 200; ++i) {
            gateway.mail.send(1, PeerCall::Tell, std::vector<std::uint8_t>(200));
        }
        pass(milliseconds(50));
        EXPECT_EQ(owner.messages - before, 200) << name_of(kind);
        while (!owner.kept.empty()) {
            owner.answer_all(100, now);
            pass(milliseconds(50));
        }
        EXPECT_EQ(gateway.answers.size(), 64U);
        gateway.answers.clear();
    }
}

TEST_F(GatewayRoomTest, CallsWithShortAnswersGoTogether) {
    forward(StatRequest{}, 100);
    pass(milliseconds(50));
    EXPECT_EQ(owner.kept.size(), Gateway::kMostUnderWay);
}

TEST_F(GatewayRoomTest, AnAnswerThatIsLongForItsKindComesAllTheSame) {
    forward(WalkRequest{.name = "link"}, 1);
    pass(milliseconds(50));
    owner.answer_all(kAnswerBytes, now);
    pass(milliseconds(50));
    EXPECT_TRUE(gateway.answers.empty());
    ASSERT_EQ(owner.kept.size(), 1U);  // it was asked for again
    owner.answer_all(kAnswerBytes, now);
    pass(milliseconds(50));
    ASSERT_EQ(gateway.answers.size(), 1U);
    EXPECT_EQ(gateway.answers[0], std::vector<std::uint8_t>(kAnswerBytes, 0x5a));
}

}  // namespace
}  // namespace cairn::fs
