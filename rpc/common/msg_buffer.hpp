// MsgBuffer: a message's memory, with room for header 0 in front of the data and for the headers of
// further packets behind it, so that each packet of a message is one or two contiguous ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/mem/buffer_pool.hpp"

namespace cairn::rpc {

constexpr std::uint32_t kMsgHeaderBytes = 16;
constexpr std::uint32_t kMaxMessageBytes = (1U << 24U) - 1;  // the wire's 24 bits
constexpr std::uint32_t kSmallestPathMtuBytes = 256;         // decides how many headers a message may need

// A handle, not an owner: MsgPool::release() ends it. Copying copies the handle.
struct MsgBuffer {
    std::uint8_t* data = nullptr;  // first byte of the message; header 0 stands in the 16 bytes before it
    std::uint32_t bytes = 0;       // message size now
    std::uint32_t capacity = 0;    // largest size that fits
    mem::Buffer memory{};          // of the pool

    [[nodiscard]] bool valid() const noexcept { return data != nullptr; }
    [[nodiscard]] std::span<std::uint8_t> span() const noexcept { return {data, bytes}; }
};

// Hands out message buffers from one region given at construction, which outlives it. An empty pool is a value:
// an invalid MsgBuffer. One thread.
class MsgPool {
public:
    explicit MsgPool(std::span<std::uint8_t> region);

    // A buffer that holds `capacity_bytes`; `bytes` is set to that.
    [[nodiscard]] MsgBuffer allocate(std::uint32_t capacity_bytes) noexcept;
    void release(MsgBuffer& buffer) noexcept;  // and makes it invalid; an invalid one is left alone

    [[nodiscard]] std::uint64_t live() const noexcept { return pool_.live_buffers(); }
    [[nodiscard]] std::uint64_t capacity_bytes() const noexcept { return pool_.capacity_bytes(); }
    // What a pool without live buffers has a place for.
    [[nodiscard]] std::uint32_t longest_message() const noexcept;
    // What a buffer for such a message takes of that.
    [[nodiscard]] static std::uint32_t bytes_for(std::uint32_t capacity_bytes) noexcept;

private:
    mem::BufferPool pool_;
};

}  // namespace cairn::rpc
