// Requests of a selective peer that came before their predecessors: held in order, reported by a map, taken when the
// missing ones have come.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "lib/roce/rc/held_packets.hpp"

namespace cairn::roce::rc {

// The requests of one queue pair. The buffers come from the pool of its worker.
class EarlyRequests {
public:
    // Makes an empty object. nullptr: nothing is ever held.
    explicit EarlyRequests(HeldPackets* pool) noexcept : pool_(pool) {}
    // Gives back held packets and forgets dropped ones.
    void start() noexcept {
        release_all();
        dropped_until_.reset();
    }
    void release_all() noexcept {
        if (pool_ != nullptr) {
            pool_->release_all(chain_);
        }
    }

    [[nodiscard]] bool can_hold() const noexcept { return pool_ != nullptr; }
    [[nodiscard]] bool empty() const noexcept { return chain_.empty(); }
    // Keeps a packet that is offered. Returns false if there is no room, it lies too far ahead, or it is held already.
    [[nodiscard]] bool hold(Psn psn, Psn expected, const PacketOffer& offer) noexcept {
        return psn.since(expected) <= static_cast<std::int32_t>(kHeldPackets) && pool_->hold(chain_, psn, offer);
    }
    // Returns true if `psn` lies after everything that is held, with a gap between. That is news for the peer.
    [[nodiscard]] bool opens_gap(Psn psn) const noexcept {
        return chain_.empty() || psn.since(pool_->back_psn(chain_)) > 1;
    }
    // Returns the PSN of the oldest request held; there is one (asserted).
    [[nodiscard]] Psn front_psn() const noexcept { return pool_->front_psn(chain_); }
    [[nodiscard]] std::span<const std::uint8_t> front() const noexcept { return pool_->front(chain_); }
    void release_front() noexcept { pool_->release_front(chain_); }

    // Notes an early request that found no room.
    void note_dropped(Psn psn) noexcept {
        dropped_until_ = dropped_until_ && psn.since(*dropped_until_) < 0 ? dropped_until_ : psn;
    }
    // Gives up held packets, as if they had been dropped; something is held (asserted).
    void give_up() noexcept {
        note_dropped(pool_->back_psn(chain_));
        release_all();
    }
    // Returns true once all missing packets that the peer knows of have come, and packets dropped after them are to be
    // asked for. The peer knows of gaps as far as a later packet was held.
    [[nodiscard]] bool take_dropped(Psn expected) noexcept {
        if (!dropped_until_ || !chain_.empty()) {
            return false;
        }
        const Psn until = *dropped_until_;
        dropped_until_.reset();
        return until.since(expected) >= 0;
    }
    // Returns the map of the PSNs after `missing` that are held. The view lasts until the next call.
    [[nodiscard]] std::span<std::uint8_t> map(Psn missing) noexcept {
        return std::span(map_).first(pool_->map(chain_, missing, map_));
    }

private:
    HeldPackets* const pool_;
    HeldPackets::Chain chain_{};
    std::optional<Psn> dropped_until_{};             // no dropped PSN lies after it
    std::array<std::uint8_t, kHeldMapBytes> map_{};  // of the NAK on its way out
};

}  // namespace cairn::roce::rc
