// Shards of two machines with all their parts: channels, stores and the network between them, in virtual time.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "fs/channel/client_end.hpp"
#include "fs/daemon/shard_tenant.hpp"
#include "fs/daemon/stores.hpp"
#include "tests/unit/fs_daemon/stranger.hpp"

namespace cairn::fs {
namespace {

using test::kAddresses;
using test::kNodesKey;
using test::links_of;
using test::Stranger;
using test::Wire;

constexpr ChannelShape kRoomy{8, 1U << 20U};
constexpr std::uint32_t kLong = 200'000;

// A machine with a shard, and one client that has a channel to it.
class ShardMachine final : public test::Station {
public:
    ShardMachine(Wire& wire, ShardNumber number, std::uint64_t life = 1)
        : port_(kAddresses.at(number), 4096), stores_(open_stores(wishes(number)).value()) {
        roce::EngineConfig engine;
        engine.seed = {number + life, 1};
        worker_ = worker::Worker::create(port_, engine, wire.now).value();
        PeerNetworkConfig config;
        config.links = links_of(number);
        config.links.facts.life = life;
        memory_.resize(PeerNetwork::bytes_for(config.links.cluster));
        config.memory = memory_;
        network = PeerNetwork::create(connections::Agent::create(), *worker_, config).value();
        tenant = std::make_unique<ShardTenant>(*worker_, *news_, *stores_.stores[0].store, stores_.facts(), number,
                                               life, wire.now);
        tenant->set_network(*network);
        std::vector<ShardTenant*> peers(2);
        peers[number] = tenant.get();
        EXPECT_TRUE(tenant->set_peers(peers).ok());
        wire.add(*this);
        client = std::uint64_t{number} << 63U | 4711U;
        tenant->open_channel({client, 0, std::make_shared<const Person>(), Segment::create(kRoomy).value()});
        wire.pass(milliseconds(1));
        const auto made = std::ranges::find(heard, ShardNews::What::ChannelMade, &ShardNews::what);
        EXPECT_NE(made, heard.end());
        doorbell_ = std::move(made->doorbell);
        end.emplace(Segment::map(::dup(made->segment.get()), kRoomy).value(), doorbell_.get());
        heard.clear();
    }
    [[nodiscard]] cairn::test::WirePort& wire_port() override { return port_; }
    bool take_turn(Instant now) override {
        const std::uint64_t before = port_.sent();
        const bool any = worker_->turn(now);
        news_->take([this](ShardNews& each) { heard.push_back(std::move(each)); });
        return any || port_.sent() != before;
    }
    [[nodiscard]] Instant due() const override { return worker_->next_deadline(); }

    [[nodiscard]] const ClusterFacts& facts() {
        facts_ = stores_.facts();
        return facts_;
    }
    [[nodiscard]] std::uint64_t counted(PeerCounter which) const { return network->counters().of(which); }
    [[nodiscard]] std::uint64_t counted(TenantCounter which) const { return tenant->counters().of(which); }
    [[nodiscard]] bool was_told(ShardNews::What what) const {
        return std::ranges::find(heard, what, &ShardNews::what) != heard.end();
    }

    std::uint64_t client = 0;
    std::optional<ClientEnd> end;
    std::vector<ShardNews> heard;

private:
    static StoreWishes wishes(ShardNumber number) {
        StoreWishes wishes;
        wishes.capacity_bytes = 32U << 20U;
        wishes.nodes = 2;
        wishes.node = number;
        wishes.cluster_key = kNodesKey;
        return wishes;
    }

    cairn::test::WirePort port_;
    std::vector<std::uint8_t> memory_;
    OpenStores stores_;
    ClusterFacts facts_;
    OwnedFd doorbell_;
    std::unique_ptr<NewsBox> news_ = NewsBox::create().value();
    std::unique_ptr<worker::Worker> worker_;

public:
    std::unique_ptr<PeerNetwork> network;
    std::unique_ptr<ShardTenant> tenant;
};

class ShardNetworkTest : public testing::Test {
protected:
    // Makes a call of a machine's client to any shard. Returns the slot.
    std::uint32_t ask(ShardMachine& from, ShardNumber shard, const Request& request) {
        const std::uint32_t slot = *from.end->take_slot();
        from.end->ask(slot, put_request(from.end->request(slot), {.shard = shard, .sequence = ++sequence}, request));
        return slot;
    }
    template <class Answer>
    std::pair<int, Answer> wait(ShardMachine& from, std::uint32_t slot) {
        Answer answer{};
        if (!wire.pass_until([&] { return from.end->answer(slot).has_value(); })) {
            return {-1, answer};
        }
        const auto head = parse_answer(*from.end->answer(slot), answer);
        from.end->give_back(slot);
        return {head ? head->error : -1, answer};
    }
    template <class Answer>
    std::pair<int, Answer> call(ShardMachine& from, ShardNumber shard, const Request& request) {
        return wait<Answer>(from, ask(from, shard, request));
    }
    [[nodiscard]] static std::string name_at(ShardMachine& machine, ShardNumber shard) {
        const ClusterFacts& facts = machine.facts();
        const Placement placement(facts.spread, facts.daemons, facts.placement_key);
        for (int i = 0;; ++i) {
            std::string name = "name " + std::to_string(i);
            if (facts.table.owner(placement.slot_of(kRoot.place, kRoot.random, name)) == shard) {
                return name;
            }
        }
    }
    static CreateRequest create(const std::string& name) {
        return {kRoot, S_IFREG | 0600, kMayRead | kMayWrite, true, name, ""};
    }

    Wire wire;
    std::uint32_t sequence = 0;
};

// The root directory's home has to allow the other shard's client to make names there.
TEST_F(ShardNetworkTest, WhatOneMachinesClientMakesTheOthersSees) {
    ShardMachine zero(wire, 0);
    ShardMachine one(wire, 1);
    wire.pass(seconds(1));
    const std::string name = name_at(zero, 1);
    const auto [made, file] = call<WalkAnswer>(zero, 1, create(name));
    ASSERT_EQ(made, 0);
    WriteRequest write{.file = file.attributes.id, .grant = {kMayRead | kMayWrite, file.proof}, .bytes = kLong};
    write.generation = file.attributes.generation;
    std::ranges::fill(zero.end->data(0).first(kLong), std::uint8_t{5});
    ASSERT_EQ((call<DataAnswer>(zero, 1, write).first), 0);
    const auto [walked, found] = call<WalkAnswer>(one, 1, WalkRequest{kRoot, kMayRead, name});
    ASSERT_EQ(walked, 0);
    EXPECT_EQ(found.attributes.size, kLong);
    const ReadRequest read{.file = found.attributes.id, .grant = {kMayRead, found.proof}, .bytes = kLong};
    ASSERT_EQ((call<DataAnswer>(one, 1, read).first), 0);
    EXPECT_EQ(one.end->data(0)[kLong - 1], 5);
    EXPECT_GE(zero.counted(PeerCounter::Forwarded), 2U);
    EXPECT_EQ(one.counted(PeerCounter::Foreign), zero.counted(PeerCounter::Forwarded));
    EXPECT_GE(one.counted(PeerCounter::Told), 1U);
    EXPECT_EQ(one.counted(PeerCounter::Breaches), 0U);
}

TEST_F(ShardNetworkTest, WhatIsForNobodyIsAnsweredHere) {
    ShardMachine zero(wire, 0);
    ShardMachine one(wire, 1);
    wire.pass(seconds(1));
    EXPECT_EQ((call<EmptyAnswer>(zero, 7, StatRequest{kRoot}).first), kErrorOtherShard);
    const std::uint32_t slot = *zero.end->take_slot();
    zero.end->ask(slot, 3);  // too short for a request's head
    EXPECT_EQ((wait<EmptyAnswer>(zero, slot).first), kErrorMalformed);
    EXPECT_EQ(zero.counted(PeerCounter::Forwarded), 0U);
    EXPECT_EQ(zero.counted(TenantCounter::Malformed), 1U);
}

TEST_F(ShardNetworkTest, AShardThatIsNotThereCostsAnErrorAndIsFoundLater) {
    ShardMachine zero(wire, 0);
    const Instant began = wire.now;
    EXPECT_EQ((call<EmptyAnswer>(zero, 1, StatRequest{kRoot}).first), EIO);
    EXPECT_GE(wire.now, began + seconds(1));
    EXPECT_EQ((call<AttributesAnswer>(zero, 0, StatRequest{kRoot}).first), 0);  // no client waits for another's shard
    ShardMachine one(wire, 1);
    ASSERT_TRUE(wire.pass_until([&] { return zero.counted(PeerCounter::Found) == 1; }));
    EXPECT_EQ((call<WalkAnswer>(zero, 1, create(name_at(zero, 1))).first), 0);
}

// A malformed message of a proven peer ends its connection, and has no other effect.
TEST_F(ShardNetworkTest, WhatIsNoMessageIsABreach) {
    ShardMachine one(wire, 1);
    Stranger peer(wire);
    peer.endpoint->set_handler(
        static_cast<std::uint8_t>(PeerCall::Tell),
        [](void*, const copyrpc::Request& request) {
            EXPECT_TRUE(request.endpoint.answer(request.handle, {}, request.now));
        },
        nullptr);
    ASSERT_TRUE(peer.enter());
    std::vector<std::uint8_t> message(kMostPeerBytes);
    message.resize(put_peer_request(message, 1, PeerStatRequest{kRoot}));
    EXPECT_TRUE(peer.ask(PeerCall::Tell, message).has_value());
    EXPECT_EQ(one.counted(PeerCounter::Breaches), 0U);
    message.pop_back();
    (void)peer.ask(PeerCall::Tell, message);
    wire.pass(milliseconds(50));
    EXPECT_TRUE(peer.is_out());
    EXPECT_EQ(one.counted(PeerCounter::Breaches), 1U);
    EXPECT_EQ(one.counted(PeerCounter::Lost), 1U);
}

// A call that needs a missing shard fails, and does not wait for an impossible answer.
TEST_F(ShardNetworkTest, AShardIsToldWhoIsThere) {
    ShardMachine one(wire, 1);
    const Instant began = wire.now;
    EXPECT_EQ((call<WalkAnswer>(one, 1, create(name_at(one, 1))).first), EIO);  // the root's home is shard 0
    EXPECT_LE(wire.now, began + milliseconds(100));
    ShardMachine zero(wire, 0);
    ASSERT_TRUE(wire.pass_until([&] { return one.counted(PeerCounter::Found) == 1; }));
    wire.pass(seconds(5));
    EXPECT_EQ((call<WalkAnswer>(one, 1, create(name_at(one, 1))).first), 0);
}

TEST_F(ShardNetworkTest, AClientThatGoesIsForgottenByAllMachines) {
    ShardMachine zero(wire, 0);
    ShardMachine one(wire, 1);
    wire.pass(seconds(1));
    const std::string name = name_at(zero, 1);
    ASSERT_EQ((call<WalkAnswer>(zero, 1, create(name)).first), 0);
    ASSERT_EQ((call<EmptyAnswer>(zero, 1, RemoveRequest{kRoot, false, name}).first), 0);
    wire.pass(seconds(5));
    EXPECT_EQ(one.counted(TenantCounter::RemovedFiles), 0U);  // a client has it open
    zero.tenant->drain(zero.client);
    zero.tenant->forget(zero.client);
    EXPECT_TRUE(wire.pass_until([&] { return one.counted(TenantCounter::RemovedFiles) == 1; }));
}

TEST_F(ShardNetworkTest, AStrangersMessagesAreNotLookedAt) {
    ShardMachine one(wire, 1);
    Stranger stranger(wire);
    std::vector<std::uint8_t> message(kMostPeerBytes);
    message.resize(put_peer_request(message, 1, PeerStatRequest{kRoot}));
    EXPECT_FALSE(stranger.ask(PeerCall::Tell, message).has_value());
    EXPECT_TRUE(stranger.is_out());
    EXPECT_EQ(one.counted(PeerCounter::Strangers), 1U);
    EXPECT_EQ(one.counted(PeerCounter::Breaches), 0U);
}

// Its memory is open to another machine: it stays until that machine has answered, or is gone for good.
TEST_F(ShardNetworkTest, AClientThatGoesUnderAReadStaysUntilTheOtherMachineIsDone) {
    ShardMachine zero(wire, 0);
    auto holder = std::make_unique<test::Node>(links_of(1));  // it takes calls, and never answers
    std::vector<rpc::KeptRequest> kept;
    holder->endpoint->set_handler(
        static_cast<std::uint8_t>(PeerCall::Forward),
        [](void* all, const copyrpc::Request& request) {
            static_cast<std::vector<rpc::KeptRequest>*>(all)->push_back(request.keep());
        },
        &kept);
    holder->endpoint->set_handler(
        static_cast<std::uint8_t>(PeerCall::Tell),
        [](void*, const copyrpc::Request& request) {
            EXPECT_TRUE(request.endpoint.answer(request.handle, {}, request.now));
        },
        nullptr);
    wire.add(*holder);
    ASSERT_TRUE(wire.pass_until([&] { return holder->has(0); }));
    (void)ask(zero, 1, WriteRequest{.file = {1, 2}, .bytes = kLong});
    ASSERT_TRUE(wire.pass_until([&] { return kept.size() == 1; }));
    zero.tenant->drain(zero.client);
    zero.end.reset();
    wire.pass(seconds(20));
    EXPECT_FALSE(zero.was_told(ShardNews::What::Drained));
    EXPECT_TRUE(zero.tenant->is_unanswered());
    wire.remove(*holder);
    kept.clear();
    holder.reset();
    EXPECT_TRUE(wire.pass_until([&] { return zero.was_told(ShardNews::What::Drained); }));
    EXPECT_FALSE(zero.tenant->is_unanswered());
    zero.tenant->forget(zero.client);
    wire.pass(milliseconds(1));
    EXPECT_TRUE(zero.was_told(ShardNews::What::Forgotten));
}

}  // namespace
}  // namespace cairn::fs
