#include "fs/daemon/shard_mail.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"

namespace cairn::fs {

Status ShardMail::open(worker::Worker& worker, ShardNumber own, const std::vector<ShardMail*>& all) {
    CAIRN_ASSERT(bell_ == nullptr);
    auto bell = worker.add_doorbell(word_);
    if (!bell.ok()) {
        return bell.error();
    }
    bell_ = std::move(bell).value();
    own_ = own;
    for (std::size_t number = 0; number != all.size(); ++number) {
        if (all[number] != nullptr && all[number] != this) {
            Peer& peer = peers_.emplace_back();
            peer.number = static_cast<ShardNumber>(number);
            peer.mail = all[number];
            peer.in = std::make_unique<ShardRing>();
        }
    }
    return Nothing{};
}

ShardRing& ShardMail::ring_to(Peer& peer) const noexcept {
    if (peer.out == nullptr) {
        const auto own = std::ranges::find(peer.mail->peers_, own_, &Peer::number);
        CAIRN_ASSERT(own != peer.mail->peers_.end());
        peer.out = own->in.get();
    }
    return *peer.out;
}

// Sends a message. If an earlier message to the same shard waits, this one waits, too.
void ShardMail::send(ShardNumber to, std::span<const std::uint8_t> message) {
    const auto peer = std::ranges::find(peers_, to, &Peer::number);
    CAIRN_ASSERT(peer != peers_.end());
    peer->was_told = true;
    if (!peer->waiting.empty() || !ring_to(*peer).put(message)) {
        peer->waiting.emplace_back(message.begin(), message.end());
        ++waiting_;
    }
}

void ShardMail::flush() noexcept {
    for (Peer& peer : peers_) {
        while (!peer.waiting.empty() && ring_to(peer).put(peer.waiting.front())) {
            peer.waiting.pop_front();
            --waiting_;
            peer.was_told = true;
        }
        if (!peer.waiting.empty()) {
            ring_to(peer).begin_wait();
        }
        if (std::exchange(peer.was_told, false)) {
            peer.mail->ring_bell();
        }
    }
}

bool ShardMail::has_work() const noexcept {
    return std::ranges::any_of(peers_, [](const Peer& peer) {
        return !peer.in->empty() || (!peer.waiting.empty() && peer.out->has_room(peer.waiting.front().size()));
    });
}

}  // namespace cairn::fs
