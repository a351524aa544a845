// Shards of one file system in virtual time, which send each other messages, end and come back.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fs/channel/segment.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "fs/shard/shard.hpp"
#include "fs/sim/cluster_mail.hpp"
#include "fs/sim/recording_medium.hpp"
#include "fs/sim/shard_client.hpp"
#include "lib/sim/random.hpp"

namespace cairn::fs {

// What is on its way to a shard that ends, and from it, is lost; the others hear of that, and when it is back.
class ShardCluster {
public:
    static constexpr std::size_t kBytes = 16U << 20U;
    static constexpr std::uint32_t kChunkBytes = fs::StoreShape::kLeastChunkBytes;

    ShardCluster(std::uint32_t shards, std::uint64_t seed) : random_(seed), mail_(seed) {
        facts_ = {fs::Spread::Even, shards, {1, 2}, {3, 4}, fs::SlotTable(shards)};
        for (fs::ShardNumber number = 0; number != shards; ++number) {
            nodes_.push_back(std::make_unique<Node>(*this, number));
            nodes_.back()->medium = RecordingMedium::of_zeros(kBytes);
            nodes_.back()->store = fs::Store::format(*nodes_.back()->medium, {kChunkBytes, number + 1U, 77}).value();
            start(number);
        }
    }

    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(nodes_.size()); }
    [[nodiscard]] const fs::ClusterFacts& facts() const noexcept { return facts_; }
    [[nodiscard]] fs::ShardNumber owner_of_name(const fs::FileId& directory, std::string_view name) const {
        const fs::Placement placement(facts_.spread, facts_.daemons, facts_.placement_key);
        return facts_.table.owner(placement.slot_of(directory.place, directory.random, name));
    }
    [[nodiscard]] fs::ShardNumber home_of(const fs::FileId& file) const { return facts_.table.owner(file.home_slot()); }
    [[nodiscard]] fs::ShardNumber owner_of_chunk(const fs::FileId& file, std::uint32_t chunk) const {
        return facts_.table.owner(fs::Placement::slot_of_chunk(file.home_slot(), chunk));
    }
    [[nodiscard]] fs::Store& store(fs::ShardNumber number) { return *nodes_[number]->store; }
    [[nodiscard]] bool is_up(fs::ShardNumber number) const { return nodes_[number]->shard.has_value(); }

    // Hands a call to a shard. It is not answered if the shard ends meanwhile.
    fs::CallToken send(ShardClient& client, fs::ShardNumber to, const fs::Request& request, std::uint32_t slot = 0) {
        return send_as(client, to, request, slot, ++client.sequence);
    }
    fs::CallToken send_as(ShardClient& client, fs::ShardNumber to, const fs::Request& request, std::uint32_t slot,
                          std::uint32_t sequence) {
        std::vector<std::uint8_t> bytes(fs::kRequestBytes);
        const fs::RequestHead head{0, fs::RequestHead::kVersion, to, sequence, 1};
        bytes.resize(put_request(bytes, head, request));
        const fs::CallToken token = ++tokens_;
        if (is_up(to)) {
            Node& node = *nodes_[to];
            node.shard->begin_turn(time());
            node.shard->take({token, client.number, slot, client.who(), bytes, client.data});
            (void)node.shard->end_turn();
        }
        return token;
    }
    [[nodiscard]] bool is_answered(fs::CallToken token) const { return answers_.contains(token); }
    [[nodiscard]] std::vector<std::uint8_t> take_answer(fs::CallToken token) {
        return std::move(answers_.extract(token).mapped());
    }
    // A call, and time until it is answered.
    template <class Answer>
    Told<Answer> ask(ShardClient& client, fs::ShardNumber to, const fs::Request& request) {
        const fs::CallToken token = send(client, to, request);
        for (int steps = 0; !is_answered(token); ++steps) {
            CAIRN_ASSERT(steps != 1'000'000);  // it hangs
            step();
        }
        Told<Answer> told;
        told.bytes = std::make_shared<const std::vector<std::uint8_t>>(take_answer(token));
        const std::optional<fs::AnswerHead> head = parse_answer(*told.bytes, told.answer);
        CAIRN_ASSERT(head.has_value());
        told.error = head->error;
        return told;
    }

    // A little time passes: messages arrive, each shard has a turn.
    void step() {
        now_ = now_ + microseconds(10);
        wall_ns_ += 10'000;
        while (const std::optional<Letter> letter = mail_.take(now_)) {
            deliver(*letter);
        }
        for_each_up([](fs::Shard&) {});
    }
    void pass(Duration span) {
        for (int i = 0; i != 100; ++i) {
            now_ = now_ + span / 100;
            wall_ns_ += span.ns / 100;
            step();
        }
    }
    // A shard's process ends, with all that is not durable.
    void end(fs::ShardNumber number) {
        Node& node = *nodes_[number];
        node.shard.reset();
        node.store.reset();
        mail_.lose(number);
        tell(number, Letter::What::Lost);
    }
    void restart(fs::ShardNumber number) {
        Node& node = *nodes_[number];
        node.medium = RecordingMedium::restart(node.medium->crash_none());
        node.store = fs::Store::open(*node.medium).value();
        tell(number, Letter::What::Found);
        start(number);
        for (fs::ShardNumber other = 0; other != size(); ++other) {
            is_up(other) ? void() : node.shard->lose(other);
        }
    }
    // A client's daemon says that it is gone.
    void forget(const ShardClient& client) {
        for_each_up([&](fs::Shard& shard) { shard.forget(client.number); });
    }

private:
    using Letter = ClusterMail::Letter;
    struct Node final : fs::ShardHost {
        Node(ShardCluster& of, fs::ShardNumber own) : cluster(of), number(own) {}
        void answer(fs::CallToken token, std::span<const std::uint8_t> bytes) noexcept override {
            CAIRN_ASSERT(!cluster.answers_.contains(token));
            cluster.answers_[token].assign(bytes.begin(), bytes.end());
        }
        void send(fs::ShardNumber to, std::span<const std::uint8_t> message) noexcept override {
            if (cluster.is_up(to)) {
                cluster.mail_.post({Letter::What::Message, number, to, {message.begin(), message.end()}}, cluster.now_);
            }
        }

        ShardCluster& cluster;
        fs::ShardNumber number;
        std::unique_ptr<RecordingMedium> medium{};
        std::unique_ptr<fs::Store> store{};
        std::optional<fs::Shard> shard{};
    };

    [[nodiscard]] fs::ShardTime time() const noexcept { return {now_, wall_ns_}; }
    // Each shard that is there has a turn.
    template <class Do>
    void for_each_up(const Do& run) {
        for (const auto& node : nodes_) {
            if (node->shard) {
                node->shard->begin_turn(time());
                run(*node->shard);
                (void)node->shard->end_turn();
            }
        }
    }
    void start(fs::ShardNumber number) {
        Node& node = *nodes_[number];
        node.shard.emplace(*node.store, node, facts_, number, random_.next(), time());
        (void)node.shard->end_turn();
    }
    void tell(fs::ShardNumber about, Letter::What what) {
        for (fs::ShardNumber other = 0; other != size(); ++other) {
            if (other != about && is_up(other)) {
                mail_.post({what, about, other, {}}, now_);
            }
        }
    }
    void deliver(const Letter& letter) {
        Node& node = *nodes_[letter.to];
        if (!node.shard) {
            return;
        }
        node.shard->begin_turn(time());
        if (letter.what == Letter::What::Message) {
            const bool is_message = node.shard->take_message(letter.from, letter.bytes);
            CAIRN_ASSERT(is_message);
        } else if (letter.what == Letter::What::Lost) {
            node.shard->lose(letter.from);
        } else {
            node.shard->find(letter.from);
        }
        (void)node.shard->end_turn();
    }

    sim::Random random_;
    fs::ClusterFacts facts_{};
    std::vector<std::unique_ptr<Node>> nodes_;
    std::map<fs::CallToken, std::vector<std::uint8_t>> answers_;
    ClusterMail mail_;
    fs::CallToken tokens_ = 0;
    Instant now_{1'000'000};
    std::int64_t wall_ns_ = 1'700'000'000'000'000'000;
};

}  // namespace cairn::fs
