// A gateway at shard 0, and a shard 1 that gets its calls and handles them as the test says.
#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "fs/daemon/gateway.hpp"
#include "tests/unit/fs_daemon/clients.hpp"
#include "tests/unit/fs_daemon/nodes_fixture.hpp"

namespace cairn::fs::test {

class GatewayNode final : public Node {
public:
    explicit GatewayNode(ShardHost& clients) : Node(links_of(0)), mail(*endpoint, links, *worker, counters) {
        gateway = std::make_unique<Gateway>(*endpoint, links, mail, *worker, clients, counters);
    }
    ~GatewayNode() override { endpoint.reset(); }
    void act(Instant now) override {
        Node::act(now);
        gateway->on_turn(now);
    }
    [[nodiscard]] Instant acts_at() const override { return std::min(Node::acts_at(), gateway->next_deadline()); }
    void on_found(ShardNumber peer, std::uint64_t life) override {
        Node::on_found(peer, life);
        gateway->on_found(peer);
    }
    void on_lost(ShardNumber peer) override {
        Node::on_lost(peer);
        gateway->on_lost(peer, worker->now());
    }

    PeerMail mail;
    std::unique_ptr<Gateway> gateway;
};

class GatewayTest : public NodesTest {
protected:
    struct Forward {
        rpc::KeptRequest request{};
        std::unique_ptr<std::vector<std::uint8_t>> bytes{};
        ParsedForward parsed{};  // parsed from the bytes
    };

    GatewayTest() : zero(std::make_unique<GatewayNode>(clients)) {
        wire.add(*zero);
        begin_one(0);
    }
    void begin_one(std::uint64_t life) {
        one = node(1, kNodesKey, 1U << 20U, life);
        one->endpoint->set_handler(
            static_cast<std::uint8_t>(PeerCall::Forward),
            [](void* self, const copyrpc::Request& request) { static_cast<GatewayTest*>(self)->on_call(request); },
            this);
        one->endpoint->set_handler(
            static_cast<std::uint8_t>(PeerCall::Forget),
            [](void* context, const copyrpc::Request& request) {
                auto& self = *static_cast<GatewayTest*>(context);
                self.forgotten.push_back(parse_peer<PeerForget>(request.payload).value().client);
                self.order += "forget ";
                EXPECT_TRUE(request.endpoint.answer(request.handle, {}, request.now));
            },
            this);
        EXPECT_TRUE(wire.pass_until([&] { return zero->has(1) && one->has(0); }));
    }
    void kill_one() {
        forwards.clear();
        kill(one);
    }
    void restart_one(std::uint64_t life) {
        kill_one();
        begin_one(life);
    }
    void on_call(const copyrpc::Request& request) {
        Forward forward;
        forward.bytes = std::make_unique<std::vector<std::uint8_t>>(request.payload.begin(), request.payload.end());
        const auto parsed = parse_forwarded(*forward.bytes);
        ASSERT_TRUE(parsed.has_value());
        forward.parsed = *parsed;
        forward.request = request.keep();
        forwards.push_back(std::move(forward));
        order += "call ";
    }
    Call take(const Call& call) {
        zero->gateway->take(call, 1, wire.now);
        return call;
    }
    // Answers the arrived call number `which`.
    void respond_bytes(std::size_t which, const std::vector<std::uint8_t>& bytes) {
        EXPECT_TRUE(one->endpoint->answer(forwards[which].request, bytes, wire.now));
    }
    void respond(std::size_t which, const std::vector<std::uint8_t>& answer,
                 const std::vector<std::uint8_t>& data = {}) {
        std::vector<std::uint8_t> bytes(kMostForwardedBytes);
        bytes.resize(put_forwarded_answer(bytes, {text_of(answer), text_of(data)}));
        respond_bytes(which, bytes);
    }
    static std::vector<std::uint8_t> ok() {
        std::vector<std::uint8_t> bytes(64);
        bytes.resize(put_answer(bytes, {0, 1}, DataAnswer{.bytes = 5}));
        return bytes;
    }
    // Returns the place of that call's data.
    [[nodiscard]] copyrpc::Place place_of(std::size_t which, std::uint32_t bytes) const {
        const ForwardedCall& said = forwards[which].parsed.call;
        return {said.address, Rkey{said.key}, bytes};
    }
    // READs memory of shard 0 by shard 1.
    rpc::CallStatus read(const copyrpc::Place& place, std::span<std::uint8_t> into) {
        return use(place, into, &copyrpc::OneSided::read);
    }
    rpc::CallStatus write(const copyrpc::Place& place, std::vector<std::uint8_t> from) {
        return use(place, from, &copyrpc::OneSided::write);
    }
    [[nodiscard]] std::uint64_t counted(PeerCounter which) const { return zero->counted(which); }

    Clients clients;
    std::unique_ptr<GatewayNode> zero;
    std::unique_ptr<Node> one;
    std::deque<Forward> forwards;
    std::vector<std::uint64_t> forgotten;
    std::string order;

private:
    template <class Post>
    rpc::CallStatus use(const copyrpc::Place& place, std::span<std::uint8_t> memory, Post post) {
        std::optional<rpc::CallStatus> status;
        copyrpc::OneSidedWork work;
        work.place = place;
        work.memory = memory;
        work.context = &status;
        work.completion = [](void* into, const rpc::CallResult& result) {
            *static_cast<std::optional<rpc::CallStatus>*>(into) = result.status;
        };
        const SessionId session = one->links.session_of(0).value();
        EXPECT_EQ((one->endpoint->one_sided().*post)(session, work, wire.now), rpc::PostVerdict::Posted);
        EXPECT_TRUE(wire.pass_until([&] { return status.has_value(); }));
        return status.value_or(rpc::CallStatus::Cancelled);
    }
};

}  // namespace cairn::fs::test
