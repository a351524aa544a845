// ShardMail: messages between shards of one process, in a ring for each pair and direction.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "fs/daemon/shard_ring.hpp"
#include "fs/placement/slot_table.hpp"
#include "lib/base/doorbell.hpp"
#include "lib/base/result.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::fs {

// One shard's mail, on its worker's thread. If a ring is full, messages wait at their sender, in order, and go later.
// No message is lost. No thread waits within a turn, so two shards whose rings to each other are full both go on.
class ShardMail {
public:
    ShardMail() = default;
    ShardMail(const ShardMail&) = delete;
    ShardMail& operator=(const ShardMail&) = delete;

    // Opens the mail. `all`: mail of each shard of the file system, by number. An entry is nullptr for this shard and
    // for shards of other processes. The objects end after all turns. Called once, before any of their workers turns.
    // Errors: the process has no descriptor left.
    Status open(worker::Worker& worker, ShardNumber own, const std::vector<ShardMail*>& all);

    // Sends to a shard of this process; at most ShardRing::kMostMessageBytes.
    void send(ShardNumber to, std::span<const std::uint8_t> message);
    // Puts waiting messages into rings that have room, and wakes shards that got messages. Called at the end of a turn.
    void flush() noexcept;
    // True while messages wait here.
    [[nodiscard]] bool is_held_up() const noexcept { return waiting_ != 0; }

    // Hands out the messages that have come, as sink(from, message), in each sender's order.
    template <class Sink>
    void take(const Sink& sink) {
        for (Peer& peer : peers_) {
            if (!peer.in->empty()) {
                peer.in->take([&](std::span<const std::uint8_t> message) { sink(peer.number, message); });
                if (peer.in->must_wake()) {
                    peer.mail->ring_bell();
                }
            }
        }
    }
    // True if there are messages to take, or there is room for waiting ones.
    [[nodiscard]] bool has_work() const noexcept;

private:
    struct Peer {
        ShardNumber number = 0;
        ShardMail* mail = nullptr;
        std::unique_ptr<ShardRing> in{};
        ShardRing* out = nullptr;  // the other shard's ring; found at the first message
        std::deque<std::vector<std::uint8_t>> waiting{};
        bool was_told = false;  // got a message since the last flush()
    };

    [[nodiscard]] ShardRing& ring_to(Peer& peer) const noexcept;
    void ring_bell() noexcept { (void)ring(word_, bell_->fd()); }

    ShardNumber own_ = 0;
    std::vector<Peer> peers_;  // by number, without this shard
    std::size_t waiting_ = 0;  // number of messages to all peers
    DoorbellWord word_{};
    std::unique_ptr<worker::Doorbell> bell_;
};

}  // namespace cairn::fs
