// Shards of one file system in virtual time. They exchange messages, end and come back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "fs/shard/shard.hpp"
#include "fs/sim/cluster_event.hpp"
#include "fs/sim/cluster_mail.hpp"
#include "fs/sim/recording_medium.hpp"
#include "fs/sim/shard_client.hpp"
#include "lib/sim/random.hpp"

namespace cairn::fs {

// If a shard ends, messages on their way to it and from it are lost. The other shards are notified of that, and of its
// return.
class ShardCluster {
public:
    static constexpr std::size_t kBytes = 16U << 20U;
    static constexpr std::uint32_t kChunkBytes = StoreShape::kLeastChunkBytes;

    ShardCluster(std::uint32_t shards, std::uint64_t seed);
    ShardCluster(const ShardCluster&) = delete;
    ShardCluster& operator=(const ShardCluster&) = delete;
    ~ShardCluster();

    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(nodes_.size()); }
    [[nodiscard]] const ClusterFacts& facts() const noexcept { return facts_; }
    [[nodiscard]] ShardNumber owner_of_name(const FileId& directory, std::string_view name) const;
    [[nodiscard]] ShardNumber home_of(const FileId& file) const { return facts_.table.owner(file.home_slot()); }
    [[nodiscard]] ShardNumber owner_of_chunk(const FileId& file, std::uint32_t chunk) const {
        return facts_.table.owner(Placement::slot_of_chunk(file.home_slot(), chunk));
    }
    // Returns the store of a shard that is there (asserted).
    [[nodiscard]] Store& store(ShardNumber number);
    [[nodiscard]] bool is_up(ShardNumber number) const;
    [[nodiscard]] Instant now() const noexcept { return now_; }

    // Hands a call to a shard. It is not answered if the shard ends meanwhile.
    CallToken send(ShardClient& client, ShardNumber to, const Request& request, std::uint32_t slot = 0) {
        return send_as(client, to, request, slot, ++client.sequence);
    }
    CallToken send_as(ShardClient& client, ShardNumber to, const Request& request, std::uint32_t slot,
                      std::uint32_t sequence);
    [[nodiscard]] bool is_answered(CallToken token) const { return answers_.contains(token); }
    [[nodiscard]] std::vector<std::uint8_t> take_answer(CallToken token) {
        return std::move(answers_.extract(token).mapped());
    }
    // Makes a call, and lets time pass until it is answered.
    template <class Answer>
    Told<Answer> ask(ShardClient& client, ShardNumber to, const Request& request) {
        const CallToken token = send(client, to, request);
        for (int steps = 0; !is_answered(token); ++steps) {
            CAIRN_ASSERT(steps != 1'000'000);  // the call hangs
            step();
        }
        Told<Answer> told;
        told.bytes = std::make_shared<const std::vector<std::uint8_t>>(take_answer(token));
        const std::optional<AnswerHead> head = parse_answer(*told.bytes, told.answer);
        CAIRN_ASSERT(head.has_value());
        told.error = head->error;
        return told;
    }

    // Lets a little time pass: messages arrive, and each shard has a turn.
    void step();
    void pass(Duration span);

    // Ends a shard's process. All that is not durable is lost.
    void end(ShardNumber number, ClusterEvent::What how = ClusterEvent::What::End);
    // Lets the power fail at a fence of one of the shard's next turns. Bytes that were not fenced are there in part.
    // Messages and answers of the rest of that turn are lost.
    void fail_power(ShardNumber number, std::uint32_t fences);
    // Cancels failures of power that have not happened yet.
    void keep_power();
    void restart(ShardNumber number);
    // Hands a message to a shard now. Returns false if the shard takes it for no message.
    [[nodiscard]] bool hand(ShardNumber to, ShardNumber from, std::span<const std::uint8_t> message);
    [[nodiscard]] ClusterMail& mail() noexcept { return mail_; }
    [[nodiscard]] ClusterWitness& witness() noexcept { return witness_; }
    // Notifies all shards that a client is gone, as its daemon does.
    void forget(const ShardClient& client);

private:
    using Letter = ClusterMail::Letter;
    struct Node;

    [[nodiscard]] ShardTime time() const noexcept { return {now_, wall_ns_}; }
    void take_turn(Node& node, const std::function<void(Shard&)>& run);
    void start(Node& node);
    void tell(ShardNumber about, Letter::What what);
    void deliver(const Letter& letter);

    sim::Random random_;
    ClusterFacts facts_;
    Placement placement_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::map<CallToken, std::vector<std::uint8_t>> answers_;
    ClusterMail mail_;
    ClusterWitness witness_{};
    CallToken tokens_ = 0;
    Instant now_{1'000'000};
    std::int64_t wall_ns_ = 1'700'000'000'000'000'000;
};

}  // namespace cairn::fs
