#include "fs/sim/shard_cluster.hpp"

#include "fs/channel/segment.hpp"

namespace cairn::fs {

struct ShardCluster::Node final : ShardHost {
    Node(ShardCluster& of, ShardNumber own) : cluster(of), number(own) {}
    void answer(CallToken token, std::span<const std::uint8_t> bytes) noexcept override {
        CAIRN_ASSERT(!cluster.answers_.contains(token));
        if (!lost) {
            cluster.witness_.show({ClusterEvent::What::Answer, {}, number, 0, 0, token, bytes}, cluster.now_);
            cluster.answers_[token].assign(bytes.begin(), bytes.end());
        }
    }
    void send(ShardNumber to, std::span<const std::uint8_t> message) noexcept override {
        if (!lost && cluster.is_up(to)) {
            cluster.witness_.show({ClusterEvent::What::Message, {}, number, to, 0, 0, message}, cluster.now_);
            cluster.mail_.post({Letter::What::Message, number, to, {message.begin(), message.end()}}, cluster.now_);
        }
    }

    ShardCluster& cluster;
    ShardNumber number;
    std::unique_ptr<RecordingMedium> medium{};
    std::unique_ptr<Store> store{};
    std::optional<Shard> shard{};
    std::optional<RecordingMedium::Image> lost{};  // the medium's content after a loss of power
};

ShardCluster::ShardCluster(std::uint32_t shards, std::uint64_t seed)
    : random_(seed),
      facts_{Spread::Even, shards, {1, 2}, {3, 4}, SlotTable(shards)},
      placement_(facts_.spread, facts_.daemons, facts_.placement_key),
      mail_(seed) {
    for (ShardNumber number = 0; number != shards; ++number) {
        nodes_.push_back(std::make_unique<Node>(*this, number));
        Node& node = *nodes_.back();
        node.medium = RecordingMedium::of_zeros(kBytes);
        node.store = Store::format(*node.medium, {kChunkBytes, number + 1U, 77}).value();
        start(node);
    }
}

ShardCluster::~ShardCluster() = default;

ShardNumber ShardCluster::owner_of_name(const FileId& directory, std::string_view name) const {
    return facts_.table.owner(placement_.slot_of(directory.place, directory.random, name));
}

Store& ShardCluster::store(ShardNumber number) {
    CAIRN_ASSERT(is_up(number));
    return *nodes_[number]->store;
}

bool ShardCluster::is_up(ShardNumber number) const {
    return nodes_[number]->shard.has_value();
}

void ShardCluster::take_turn(Node& node, const std::function<void(Shard&)>& run) {
    if (!node.shard) {
        return;
    }
    node.shard->begin_turn(time());
    run(*node.shard);
    (void)node.shard->end_turn();
    if (node.lost) {
        end(node.number, ClusterEvent::What::PowerLoss);
    }
}

CallToken ShardCluster::send_as(ShardClient& client, ShardNumber to, const Request& request, std::uint32_t slot,
                                std::uint32_t sequence) {
    std::vector<std::uint8_t> bytes(kRequestBytes);
    const RequestHead head{0, RequestHead::kVersion, to, sequence, 1};
    bytes.resize(put_request(bytes, head, request));
    const CallToken token = ++tokens_;
    witness_.show({ClusterEvent::What::Call, {}, 0, to, client.number, token, bytes}, now_);
    take_turn(*nodes_[to], [&](Shard& shard) {
        shard.take({token, client.number, slot, client.who(), bytes, client.data});
    });
    return token;
}

void ShardCluster::step() {
    now_ = now_ + microseconds(10);
    wall_ns_ += 10'000;
    while (const std::optional<Letter> letter = mail_.take(now_)) {
        deliver(*letter);
    }
    for (const auto& node : nodes_) {
        take_turn(*node, [](Shard&) {});
    }
}

void ShardCluster::pass(Duration span) {
    for (int i = 0; i != 100; ++i) {
        now_ = now_ + span / 100;
        wall_ns_ += span.ns / 100;
        step();
    }
}

void ShardCluster::end(ShardNumber number, ClusterEvent::What how) {
    Node& node = *nodes_[number];
    witness_.show({how, {}, number}, now_);
    node.shard.reset();
    node.store.reset();
    node.medium->set_on_fence({});
    mail_.lose(number);
    tell(number, Letter::What::Lost);
}

void ShardCluster::fail_power(ShardNumber number, std::uint32_t fences) {
    Node& node = *nodes_[number];
    node.medium->set_on_fence([this, &node, fences]() mutable {
        if (!node.lost && fences-- == 0) {
            node.lost = node.medium->crash(random_);
        }
    });
}

void ShardCluster::keep_power() {
    for (const auto& node : nodes_) {
        node->medium->set_on_fence({});
    }
}

void ShardCluster::restart(ShardNumber number) {
    Node& node = *nodes_[number];
    witness_.show({ClusterEvent::What::Restart, {}, number}, now_);
    node.medium = RecordingMedium::restart(node.lost ? std::move(*node.lost) : node.medium->crash_none());
    node.lost.reset();
    node.store = Store::open(*node.medium).value();
    node.store->check();
    tell(number, Letter::What::Found);
    start(node);
    for (ShardNumber other = 0; other != size(); ++other) {
        if (!is_up(other)) {
            node.shard->lose(other);
        }
    }
}

bool ShardCluster::hand(ShardNumber to, ShardNumber from, std::span<const std::uint8_t> message) {
    bool is_message = false;
    take_turn(*nodes_[to], [&](Shard& shard) { is_message = shard.take_message(from, message); });
    return is_message;
}

void ShardCluster::forget(const ShardClient& client) {
    witness_.show({ClusterEvent::What::Gone, {}, 0, 0, client.number}, now_);
    for (const auto& node : nodes_) {
        take_turn(*node, [&](Shard& shard) { shard.forget(client.number); });
    }
}

void ShardCluster::start(Node& node) {
    node.shard.emplace(*node.store, node, facts_, node.number, random_.next(), time());
    (void)node.shard->end_turn();
}

void ShardCluster::tell(ShardNumber about, Letter::What what) {
    for (ShardNumber other = 0; other != size(); ++other) {
        if (other != about && is_up(other)) {
            mail_.post({what, about, other, {}}, now_);
        }
    }
}

void ShardCluster::deliver(const Letter& letter) {
    take_turn(*nodes_[letter.to], [&](Shard& shard) {
        if (letter.what == Letter::What::Message) {
            const bool is_message = shard.take_message(letter.from, letter.bytes);
            CAIRN_ASSERT(is_message);
        } else if (letter.what == Letter::What::Lost) {
            shard.lose(letter.from);
        } else {
            shard.find(letter.from);
        }
    });
}

}  // namespace cairn::fs
