// ShardMail: messages between shards of one process, by a ring for each pair and direction.
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

// Of one shard, on its worker's thread. What finds a ring full waits at its sender, in order, and goes later: nothing
// is lost, and nobody waits within a turn, so that two shards whose rings to each other are full both go on.
class ShardMail {
public:
    ShardMail() = default;
    ShardMail(const ShardMail&) = delete;
    ShardMail& operator=(const ShardMail&) = delete;

    // `all`: mail of each shard of the file system, by their numbers; nullptr: one of another process, or this one.
    // They end after all turns. Called once, before any of their workers turns. Errors: the process has no descriptor
    // left.
    Status open(worker::Worker& worker, ShardNumber own, const std::vector<ShardMail*>& all);

    // To a shard of this process; at most ShardRing::kMostMessageBytes.
    void send(ShardNumber to, std::span<const std::uint8_t> message);
    // At the end of a turn: what waits goes, as far as there is room, and who was sent something wakes up.
    void flush() noexcept;
    // True while something waits here.
    [[nodiscard]] bool is_held_up() const noexcept { return waiting_ != 0; }

    // Hands out what has come, as sink(from, message), in each sender's order.
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
    // There is something to take, or room for what waits.
    [[nodiscard]] bool has_work() const noexcept;

private:
    struct Peer {
        ShardNumber number = 0;
        ShardMail* mail = nullptr;
        std::unique_ptr<ShardRing> in{};
        ShardRing* out = nullptr;  // the other one's; found at the first message
        std::deque<std::vector<std::uint8_t>> waiting{};
        bool was_told = false;  // since the last flush()
    };

    [[nodiscard]] ShardRing& ring_to(Peer& peer) const noexcept;
    void ring_bell() noexcept { (void)ring(word_, bell_->fd()); }

    ShardNumber own_ = 0;
    std::vector<Peer> peers_;  // by their numbers, this shard left out
    std::size_t waiting_ = 0;  // messages, for all of them
    DoorbellWord word_{};
    std::unique_ptr<worker::Doorbell> bell_;
};

}  // namespace cairn::fs
