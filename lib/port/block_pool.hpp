// A pool of memory blocks for the datagrams of a socket port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/base/assert.hpp"
#include "lib/port/port.hpp"

namespace cairn::port {

// A block is a buffer for one datagram, or for one received batch.
struct Block {
    std::uint8_t* data = nullptr;
    std::uint32_t references = 0;
    bool batch = false;
};

// Holds blocks of both kinds. Belongs to one thread. Allocates only in the constructor.
class BlockPool {
public:
    static constexpr std::size_t kHeadroomBytes = 64;  // the CRC of a datagram reads bytes in front of it
    static constexpr std::size_t kBufferBytes = (kHeadroomBytes + kMaxUdpPayloadBytes + 63) / 64 * 64;
    static constexpr std::size_t kBatchBytes = kHeadroomBytes + 65536;

    [[nodiscard]] static constexpr std::size_t bytes_of(std::size_t buffers, std::size_t batches) noexcept {
        return buffers * kBufferBytes + batches * kBatchBytes;
    }
    // Makes the pool. `memory` has bytes_of(buffers, batches) bytes and outlives the pool.
    BlockPool(std::size_t buffers, std::size_t batches, std::uint8_t* memory) : blocks_(buffers + batches) {
        for (std::size_t i = 0; i < blocks_.size(); ++i) {
            Block& block = blocks_[i];
            block.batch = i >= buffers;
            block.data = memory + kHeadroomBytes;
            memory += block.batch ? kBatchBytes : kBufferBytes;
            free(block.batch).push_back(&block);
        }
    }
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;

    // Returns a block with one reference; nullptr if no block of the kind is free.
    [[nodiscard]] Block* take_buffer() noexcept { return take(free_buffers_); }
    [[nodiscard]] Block* take_batch() noexcept { return take(free_batches_); }
    void drop_reference(Block& block) noexcept {
        CAIRN_ASSERT(block.references > 0);
        if (--block.references == 0) {
            free(block.batch).push_back(&block);  // never grows: all blocks were in the list at first
        }
    }
    [[nodiscard]] bool has_buffer() const noexcept { return !free_buffers_.empty(); }
    [[nodiscard]] std::size_t free_batches() const noexcept { return free_batches_.size(); }
    [[nodiscard]] std::size_t in_use() const noexcept {
        return blocks_.size() - free_buffers_.size() - free_batches_.size();
    }

private:
    [[nodiscard]] std::vector<Block*>& free(bool batch) noexcept { return batch ? free_batches_ : free_buffers_; }
    [[nodiscard]] static Block* take(std::vector<Block*>& from) noexcept {
        if (from.empty()) [[unlikely]] {
            return nullptr;
        }
        Block* const block = from.back();
        from.pop_back();
        block->references = 1;
        return block;
    }

    std::vector<Block> blocks_;
    std::vector<Block*> free_buffers_;
    std::vector<Block*> free_batches_;
};

}  // namespace cairn::port
