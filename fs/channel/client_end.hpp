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

    // Returns a free slot, which is the caller's until its answer was taken; nothing if all are in use.
    [[nodiscard]] std::optional<std::uint32_t> take_slot() noexcept;
    // Where a request is written, and its data.
    [[nodiscard]] std::span<std::uint8_t> request(std::uint32_t slot) noexcept { return segment_.request(slot); }
    [[nodiscard]] std::span<std::uint8_t> data(std::uint32_t slot) noexcept { return segment_.data(slot); }
    // The request is there: so many bytes, at most kRequestBytes (asserted). Wakes the shard if it sleeps.
    void ask(std::uint32_t slot, std::uint32_t bytes) noexcept;
    // Returns the answer, or nothing if it has not come. It stays until the slot is given back.
    [[nodiscard]] std::optional<std::span<const std::uint8_t>> answer(std::uint32_t slot) const noexcept;
    // The slot is free. Its answer has come (asserted).
    void give_back(std::uint32_t slot) noexcept;

    // Returns once a slot that was asked is answered, or after this time. Looks for a while, then sleeps.
    void wait(Duration at_most) noexcept;
    // An answer that was not given back is there.
    [[nodiscard]] bool any_answered() const noexcept;

private:
    enum class Use : std::uint8_t { Free, Taken, Asked };

    Segment segment_;
    int shard_doorbell_;
    std::array<Use, ChannelShape::kMostSlots> uses_{};
    std::array<std::uint32_t, ChannelShape::kMostSlots> asked_{};
};

}  // namespace cairn::fs
