// A shard's end of a channel. It trusts nothing that the client can write.
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
    BadCount,   // the request has the wrong number, or its slot's last request is not answered
    BadLength,  // a request longer than its room
};

// Used on the shard's thread.
class ShardEnd {
public:
    explicit ShardEnd(Segment segment) : segment_(std::move(segment)), slots_(segment_.shape().slots) {}

    // Takes the slots that have new requests, a bit each.
    [[nodiscard]] std::uint64_t take_pending() noexcept;
    // Copies the request of a slot. Returns the copy, which stays until the slot is taken again. Returns nothing if
    // there is no request, or after a breach.
    [[nodiscard]] std::optional<std::span<const std::uint8_t>> take(std::uint32_t slot) noexcept;
    // Answers the request of a slot, and wakes the client if it sleeps. There is a request, and the answer fits
    // (asserted).
    void answer(std::uint32_t slot, std::span<const std::uint8_t> bytes) noexcept;
    // Returns the data of a request or of its answer. The client may write there at any time.
    [[nodiscard]] std::span<std::uint8_t> data(std::uint32_t slot) const noexcept { return segment_.data(slot); }
    [[nodiscard]] bool is_taken(std::uint32_t slot) const noexcept {
        return slots_[slot].taken != slots_[slot].answered;
    }

    [[nodiscard]] ChannelBreach breach() const noexcept { return breach_; }
    [[nodiscard]] const Segment& segment() const noexcept { return segment_; }

    // Returns the word that the client rings: see Worker::add_doorbell().
    [[nodiscard]] DoorbellWord& doorbell() noexcept { return segment_.head().shard_sleeps; }
    // True if there may be a request that the shard has not seen.
    [[nodiscard]] bool has_pending() const noexcept {
        return segment_.head().pending.load(std::memory_order_acquire) != 0;
    }

private:
    struct Slot {
        std::uint32_t taken = 0;  // number of requests taken
        std::uint32_t answered = 0;
        std::array<std::uint8_t, kRequestBytes> request;
    };

    Segment segment_;
    ChannelBreach breach_ = ChannelBreach::None;
    std::vector<Slot> slots_;
};

}  // namespace cairn::fs
