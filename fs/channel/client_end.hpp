// A client's end of a channel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "fs/channel/segment.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

// Used by one thread. The descriptor of the shard's doorbell outlives it.
class ClientEnd {
public:
    ClientEnd(Segment segment, int shard_doorbell) noexcept
        : segment_(std::move(segment)), shard_doorbell_(shard_doorbell) {}

    // Returns a free slot, or nothing if all are in use. The caller owns it until it gives the slot back.
    [[nodiscard]] std::optional<std::uint32_t> take_slot() noexcept;
    // Returns the room for a slot's request. The data of the request go to data().
    [[nodiscard]] std::span<std::uint8_t> request(std::uint32_t slot) noexcept { return segment_.request(slot); }
    [[nodiscard]] std::span<std::uint8_t> data(std::uint32_t slot) noexcept { return segment_.data(slot); }
    // Sends the request that was written: `bytes` of it, at most kRequestBytes (asserted). Wakes the shard if it
    // sleeps.
    void ask(std::uint32_t slot, std::uint32_t bytes) noexcept;
    // Returns the answer, or nothing if it has not come. It stays until the slot is given back.
    [[nodiscard]] std::optional<std::span<const std::uint8_t>> answer(std::uint32_t slot) const noexcept;
    // Frees the slot. Its answer has come (asserted).
    void give_back(std::uint32_t slot) noexcept;

    // Looks for a while, then sleeps. Returns once a slot that was asked is answered, or after `at_most`.
    void wait(Duration at_most) noexcept;
    // True if there is an answer whose slot was not given back.
    [[nodiscard]] bool any_answered() const noexcept;

private:
    enum class Use : std::uint8_t { Free, Taken, Asked };

    Segment segment_;
    int shard_doorbell_;
    std::array<Use, ChannelShape::kMostSlots> uses_{};
    std::array<std::uint32_t, ChannelShape::kMostSlots> asked_{};
};

}  // namespace cairn::fs
