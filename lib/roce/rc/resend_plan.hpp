// Plans the packets of a window that are sent again. It uses the reports of a selective peer: the packets that it holds
// and has executed. It also knows how far the requester has acted on them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "lib/base/types.hpp"
#include "lib/roce/rc/limits.hpp"

namespace cairn::roce::rc {

// A pass sends each packet that is missing below its end once; new gaps extend it. A packet is lost again if the peer
// misses it and has another one that was sent after the pass began. Then the next pass begins.
class ResendPlan {
public:
    enum class Step : std::uint8_t { Nothing, Extended, Began };

    // Makes a plan that knows nothing of the packets from `psn` on.
    explicit ResendPlan(Psn psn = {}) noexcept : executed_until_(psn) {}
    // Moves the oldest unacknowledged PSN. Everything before it is forgotten, so that no old PSN is met again after the
    // numbers have gone round.
    void on_progress(Psn unacknowledged) noexcept {
        if (unacknowledged.since(executed_until_) > 0) {
            executed_until_ = unacknowledged;
        }
        has_map_ = has_map_ && unacknowledged.since(map_base_) <= static_cast<std::int32_t>(kHeldPackets);
        in_epoch_ = in_epoch_ && unacknowledged.since(epoch_end_) < 0;
    }
    // Takes a map of the packets held after `missing`, the oldest that the peer misses; see HeldPackets::map(). Returns
    // the newest PSN that the peer has.
    Psn take_map(Psn missing, std::span<const std::uint8_t> map) noexcept {
        map_ = {};
        map_base_ = missing;
        has_map_ = true;
        Psn newest = missing;
        for (std::uint32_t bit = 0; bit < kHeldPackets && bit / 8 < map.size(); ++bit) {
            if ((unsigned{map[bit / 8]} >> bit % 8 & 1U) != 0) {
                map_[bit / 64] |= std::uint64_t{1} << bit % 64;
                newest = missing.plus(bit + 1);
            }
        }
        return newest;
    }
    void executed(Psn until) noexcept {
        if (until.since(executed_until_) > 0) {
            executed_until_ = until;
        }
    }

    [[nodiscard]] Psn executed_until() const noexcept { return executed_until_; }

    // Begins or extends a pass, since the peer has `newest` and misses a packet below it.
    [[nodiscard]] Step begin_or_extend(Psn newest, Psn unacknowledged, Psn sent) noexcept {
        const Psn until = newest.next();
        if (!in_epoch_ || newest.since(epoch_end_) >= 0) {
            in_epoch_ = true;
            epoch_end_ = sent;
            from_ = unacknowledged;
            until_ = until;
            passing_ = true;
            return Step::Began;
        }
        if (until.since(until_) <= 0) {
            return Step::Nothing;
        }
        from_ = passing_ ? from_ : until_;
        until_ = until;
        return std::exchange(passing_, true) ? Step::Nothing : Step::Extended;
    }
    // Ends the pass: all packets are to be sent again but the ones that are held.
    void forget_pass() noexcept {
        in_epoch_ = false;
        passing_ = false;
    }
    void forget_map() noexcept { has_map_ = false; }
    void end_pass() noexcept { passing_ = false; }
    [[nodiscard]] bool passing() const noexcept { return passing_; }
    [[nodiscard]] bool knows() const noexcept { return passing_ || has_map_; }
    [[nodiscard]] bool is_behind(Psn psn) const noexcept { return passing_ && psn.since(until_) >= 0; }
    // Returns true if the packet is not to be sent again. The oldest one never counts as held: the peer may have held
    // it and given it up.
    [[nodiscard]] bool spares(Psn psn, Psn unacknowledged, bool has_own_answer) const noexcept {
        if (passing_ && psn.since(from_) < 0) {
            return true;
        }
        return psn != unacknowledged && (is_held(psn) || (!has_own_answer && psn.since(executed_until_) < 0));
    }

private:
    [[nodiscard]] bool is_held(Psn psn) const noexcept {
        const auto bit = static_cast<std::uint32_t>(psn.since(map_base_) - 1);
        return has_map_ && bit < kHeldPackets && (map_[bit / 64] >> bit % 64 & 1U) != 0;
    }

    std::array<std::uint64_t, kHeldPackets / 64> map_{};
    Psn map_base_{};
    Psn executed_until_{};  // the peer executed everything before it, though answers may be missing
    Psn epoch_end_{};       // the PSN that was sent next when the pass began
    Psn from_{};            // of the pass
    Psn until_{};
    bool has_map_ = false;
    bool in_epoch_ = false;  // a packet before epoch_end_ is unacknowledged
    bool passing_ = false;   // the pass has not reached its end
};

}  // namespace cairn::roce::rc
