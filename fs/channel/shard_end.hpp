// A shard's end of a channel: it trusts nothing that the client can write.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fs/channel/segment.hpp"

namespace cairn::fs {

// Why a client's channel ends.
enum class ChannelBreach : std::uint8_t {
    None,
    BadCount,   // a request that is not the next one of its slot, or in a slot whose last one is not answered
    BadLength,  // a request longer than its room
};

// Used on the shard's thread.
class ShardEnd {
public:
    explicit ShardEnd(Segment segment) : segment_(std::move(segment)), slots_(segment_.shape().slots) {}

    // Takes the slots that have new requests: a bit each.
    [[nodiscard]] std::uint64_t take_pending() noexcept;
    // Copies the request of a slot, and returns the copy, which stays until the slot is taken again. Returns nothing
    // if there is none, or after a breach.
    [[nodiscard]] std::optional<std::span<const std::uint8_t>> take(std::uint32_t slot) noexcept;
    // Answers the request of a slot (asserted: there is one; the answer fits). The client is woken if it sleeps.
    void answer(std::uint32_t slot, std::span<const std::uint8_t> bytes) noexcept;
    // What a request brought, or its answer brings. The client may write there at any time.
    [[nodiscard]] std::span<std::uint8_t> data(std::uint32_t slot) const noexcept { return segment_.data(slot); }
    [[nodiscard]] bool is_taken(std::uint32_t slot) const noexcept {
        return slots_[slot].taken != slots_[slot].answered;
    }

    [[nodiscard]] ChannelBreach breach() const noexcept { return breach_; }
    [[nodiscard]] const Segment& segment() const noexcept { return segment_; }

    // The word that the client rings: see Worker::add_doorbell().
    [[nodiscard]] DoorbellWord& doorbell() noexcept { return segment_.head().shard_sleeps; }
    // A request may lie there that nobody has looked at.
    [[nodiscard]] bool has_pending() const noexcept {
        return segment_.head().pending.load(std::memory_order_acquire) != 0;
    }

private:
    struct Slot {
        std::uint32_t taken = 0;  // requests
        std::uint32_t answered = 0;
        std::array<std::uint8_t, kRequestBytes> request;
    };

    Segment segment_;
    ChannelBreach breach_ = ChannelBreach::None;
    std::vector<Slot> slots_;
};

}  // namespace cairn::fs
