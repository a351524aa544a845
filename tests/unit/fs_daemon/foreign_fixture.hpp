// Shard 1 of three, which gets calls of other machines' clients; the test drives their gateways by hand.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "fs/channel/segment.hpp"
#include "fs/daemon/foreign_calls.hpp"
#include "fs/daemon/stores.hpp"
#include "tests/unit/fs_daemon/node.hpp"

namespace cairn::fs::test {

// A node whose tokens are the numbers of the calls.
class ForeignNode final : public Node, public ShardHost {
public:
    ForeignNode() : Node(links_of(1, 3)), stores_(open_stores(wishes()).value()), facts(facts_of(stores_)) {
        foreign = std::make_unique<ForeignCalls>(*endpoint, links, *worker, counters);
        shard = std::make_unique<Shard>(*stores_.stores[0].store, *this, facts, ShardNumber{1}, 1, time(Instant{1}));
    }
    ~ForeignNode() override { endpoint.reset(); }
    void act(Instant now) override {
        Node::act(now);
        if (gives && std::min(foreign->next_deadline(), more_ ? now : shard->next_deadline()) <= now) {
            shard->begin_turn(time(now));
            foreign->give(*shard, now, [](std::uint32_t number) { return CallToken{number}; });
            more_ = shard->end_turn();
        }
    }
    [[nodiscard]] Instant acts_at() const override {
        const Instant due = more_ ? Instant{} : std::min(foreign->next_deadline(), shard->next_deadline());
        return std::min(Node::acts_at(), gives ? due : Instant::never());
    }
    void on_found(ShardNumber peer, std::uint64_t life) override {
        Node::on_found(peer, life);
        foreign->on_found(peer, life, worker->now());
    }
    void on_lost(ShardNumber peer) override {
        Node::on_lost(peer);
        foreign->on_lost(peer, worker->now());
    }
    void answer(CallToken token, std::span<const std::uint8_t> bytes) noexcept override {
        held[token].assign(bytes.begin(), bytes.end());
        if (!holds) {
            let_go();
        }
    }
    // Sends the answers that the shard has given.
    void let_go() {
        for (const auto& [token, bytes] : std::exchange(held, {})) {
            foreign->answer(static_cast<std::uint32_t>(token), bytes);
        }
    }
    void send(ShardNumber /*to*/, std::span<const std::uint8_t> /*message*/) noexcept override {}

private:
    static StoreWishes wishes() {
        StoreWishes wishes;
        wishes.capacity_bytes = 32U << 20U;
        wishes.nodes = 3;
        wishes.node = 1;
        wishes.cluster_key = kNodesKey;
        return wishes;
    }
    // Returns facts by which the root directory's home is here, so that no other shard has to be asked.
    static ClusterFacts facts_of(const OpenStores& stores) {
        ClusterFacts facts = stores.facts();
        facts.table.give(kRoot.home_slot(), 1);
        return facts;
    }
    static ShardTime time(Instant now) { return {now, 1'700'000'000'000'000'000 + now.ns}; }

    OpenStores stores_;
    bool more_ = false;

public:
    const ClusterFacts facts;
    std::unique_ptr<ForeignCalls> foreign;
    std::unique_ptr<Shard> shard;
    bool gives = true;   // gives calls to the shard
    bool holds = false;  // holds its answers back
    std::map<CallToken, std::vector<std::uint8_t>> held;
};

// Returns a client of that node.
constexpr std::uint64_t client_of(std::uint64_t node, std::uint64_t number = 4711) {
    return node << 62U | number;
}

class ForeignTest : public testing::Test {
protected:
    ForeignTest() {
        wire.add(one);
        begin_zero(0);
        two = std::make_unique<Node>(links_of(2, 3));
        wire.add(*two);
        EXPECT_TRUE(wire.pass_until([&] { return one.has(0) && one.has(2) && two->has(1); }));
    }
    void begin_zero(std::uint64_t life) {
        PeerLinkConfig config = links_of(0, 3);
        config.facts.life += life;
        zero = std::make_unique<Node>(config);
        wire.add(*zero);
        EXPECT_TRUE(wire.pass_until([&] { return one.has(0) && zero->has(1); }));
    }
    void kill_zero() {
        wire.remove(*zero);
        zero.reset();
        EXPECT_TRUE(wire.pass_until([&] { return !one.has(0); }));
    }
    static std::vector<std::uint8_t> bytes_of(const ForwardedCall& call) {
        std::vector<std::uint8_t> bytes(kMostForwardedBytes);
        bytes.resize(put_forwarded(bytes, call));
        return bytes;
    }
    std::vector<std::uint8_t> forward_of(std::uint64_t client, std::uint32_t slot, const Request& request,
                                         const std::vector<std::uint8_t>& data = {}, const copyrpc::Place& place = {},
                                         ShardNumber shard = 1) {
        std::vector<std::uint8_t> text(kRequestBytes);
        text.resize(put_request(text, {.shard = shard, .sequence = ++sequence}, request));
        ForwardedCall call;
        call.client = client;
        call.slot = slot;
        call.who.uid = 1000;
        call.who.gid = 100;
        call.request = text_of(text);
        call.data = text_of(data);
        call.address = place.address;
        call.key = place.rkey.value;
        return bytes_of(call);
    }
    // Posts a peer's call. Returns the number of the call.
    std::uint64_t post(Node& from, std::vector<std::uint8_t> bytes, PeerCall what = PeerCall::Forward) {
        return from.call(from.links.session_of(1).value(), what, std::move(bytes), wire.now);
    }
    // As post(), for a call with a short answer: there is room for many of them.
    std::uint64_t post_short(Node& from, std::uint32_t slot, const Request& request, std::uint64_t client = 4711,
                             std::uint32_t room = 300) {
        return from.call(from.links.session_of(1).value(), PeerCall::Forward,
                         forward_of(client_of(0, client), slot, request), wire.now, room);
    }
    struct Told {
        std::int32_t error = -1;
        std::vector<std::uint8_t> data{};
    };
    template <class Answer>
    Told told(std::uint64_t number, const NamedData& data, Answer& answer) {
        EXPECT_TRUE(zero->is_answered(number));
        const std::vector<std::uint8_t>& bytes = zero->outcomes[number].bytes;
        const auto parsed = parse_forwarded_answer(bytes, data);
        EXPECT_TRUE(parsed.has_value());
        if (!parsed) {
            return {};
        }
        const auto head = parse_answer(fs::bytes_of(parsed->answer), answer);
        const auto read = fs::bytes_of(parsed->data);
        return {head ? head->error : -1, {read.begin(), read.end()}};
    }
    // Makes a call of shard 0's client, and waits for the answer.
    template <class Answer>
    Answer ask(std::uint32_t slot, const Request& request, std::int32_t error = 0) {
        Answer answer{};
        const std::uint64_t number = post(*zero, forward_of(client_of(0), slot, request));
        EXPECT_TRUE(wire.pass_until([&] { return zero->outcomes.contains(number); }));
        EXPECT_EQ(told(number, data_of(request), answer).error, error);
        return answer;
    }
    // Returns a name in the root directory that shard 1 has.
    std::string name_here() {
        const Placement placement(one.facts.spread, one.facts.daemons, one.facts.placement_key);
        std::string name;
        do {
            name = "file " + std::to_string(++names);
        } while (one.facts.table.owner(placement.slot_of(kRoot.place, kRoot.random, name)) != 1);
        return name;
    }
    // Makes a new file, open for reading and writing.
    WalkAnswer make(const std::string& name) {
        const auto made =
            ask<WalkAnswer>(0, CreateRequest{kRoot, S_IFREG | 0600, kMayRead | kMayWrite, true, name, ""});
        EXPECT_TRUE(made.is_home && made.is_opened);
        return made;
    }
    // Opens memory of shard 0 to shard 1.
    copyrpc::Place open(std::span<std::uint8_t> memory, verbs::Right right) {
        return zero->endpoint->one_sided().open(zero->links.session_of(1).value(), memory, right).value();
    }
    [[nodiscard]] std::uint64_t calls() const { return one.shard->counters().calls; }

    Wire wire;
    ForeignNode one;
    std::unique_ptr<Node> zero;
    std::unique_ptr<Node> two;
    std::uint32_t sequence = 0;
    int names = 0;
};

}  // namespace cairn::fs::test
