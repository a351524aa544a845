// MsgBuffer: the memory of a message. Headers are written into packet buffers, so a message has all of its buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"
#include "lib/mem/buffer_pool.hpp"

namespace cairn::rpc {

constexpr std::uint32_t kMaxMessageBytes = (1U << 24U) - 1;  // the wire has 24 bits for the size

// Refers to memory without owning it: MsgPool::release() gives the memory back. A copy refers to the same memory.
struct MsgBuffer {
    static constexpr std::uint32_t kNoMessage = 0xffffffff;  // value of `bytes` if a message found no room

    std::uint8_t* data = nullptr;  // first byte of the message
    std::uint32_t bytes = 0;       // current size of the message
    std::uint32_t capacity = 0;    // largest size that fits
    mem::Buffer memory{};          // the pool's buffer

    [[nodiscard]] bool valid() const noexcept { return data != nullptr; }
    [[nodiscard]] std::span<std::uint8_t> span() const noexcept { return {data, bytes}; }
    // Changes the size of the message, which fits (asserted), and returns the message. New bytes are 0: memory of the
    // pool holds earlier messages, also those of other peers.
    std::span<std::uint8_t> resize(std::uint32_t wanted) noexcept {
        CAIRN_ASSERT(wanted <= capacity);
        if (wanted > bytes) [[likely]] {
            clear_bytes(data + bytes, wanted - bytes);
        } else if (bytes == kNoMessage) {
            clear_bytes(data, wanted);
        }
        bytes = wanted;
        return span();
    }
};

// Hands out message buffers from one region. The region outlives the pool. An empty pool returns an invalid MsgBuffer.
// One thread uses a pool.
class MsgPool {
public:
    explicit MsgPool(std::span<std::uint8_t> region);

    // Returns a buffer that holds `capacity_bytes`. Its `bytes` is set to the same number.
    [[nodiscard]] MsgBuffer allocate(std::uint32_t capacity_bytes) noexcept;
    // Releases the buffer and makes it invalid. Does nothing with an invalid buffer.
    void release(MsgBuffer& buffer) noexcept;
    // Resizes a message. If its buffer is too small, the message loses its bytes. Without memory, returns no room and
    // leaves an invalid buffer.
    [[nodiscard]] std::span<std::uint8_t> resize(MsgBuffer& buffer, std::uint32_t bytes) noexcept;

    [[nodiscard]] std::uint64_t live() const noexcept { return pool_.live_buffers(); }
    [[nodiscard]] std::uint64_t live_bytes() const noexcept { return pool_.live_bytes(); }
    [[nodiscard]] std::uint64_t capacity_bytes() const noexcept { return pool_.capacity_bytes(); }
    // Returns the size of the longest message of which the pool has room for `count`. Other buffers take `taken_bytes`
    // of the pool.
    [[nodiscard]] std::uint32_t longest_message(std::uint32_t count = 1, std::uint64_t taken_bytes = 0) const noexcept;
    // Returns the bytes of the pool that a buffer of `capacity_bytes` takes.
    [[nodiscard]] static std::uint32_t bytes_for(std::uint32_t capacity_bytes) noexcept;

private:
    mem::BufferPool pool_;
};

}  // namespace cairn::rpc
