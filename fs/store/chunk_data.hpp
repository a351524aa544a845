// The bytes of chunks: written into free blocks, and read from blocks whose checksums are right.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fs/medium/medium.hpp"
#include "fs/store/layout.hpp"
#include "fs/store/tables.hpp"

namespace cairn::fs {

// A write into free blocks, for a part of a chunk.
struct PendingWrite {
    ChunkId chunk{};
    std::uint64_t generation = 0;
    std::uint32_t offset = 0;  // in the chunk
    std::uint32_t bytes = 0;
    std::vector<BlockRun> runs{};  // the blocks that the bytes touch, in order
    std::vector<bool> summed{};    // by block: true if it is complete, and has its checksum

    [[nodiscard]] std::uint32_t first_block() const noexcept { return offset / kBlockBytes; }
    [[nodiscard]] std::uint32_t end_block() const noexcept { return (offset + bytes + kBlockBytes - 1) / kBlockBytes; }
};

// Returns the extents after these blocks have replaced the old ones from block `at` on. Neighbours become one extent.
[[nodiscard]] std::vector<Extent> overlay(std::span<const Extent> extents, std::uint32_t at,
                                          std::span<const BlockRun> runs);
// Returns the extents up to block `end`.
[[nodiscard]] std::vector<Extent> cut_off(std::span<const Extent> extents, std::uint32_t end);

// Reads and writes the bytes. Used by one thread. The medium outlives it.
class ChunkData {
public:
    ChunkData(Medium& medium, const Layout& layout) noexcept : medium_(medium), layout_(layout) {}

    // Copies bytes into the blocks, from byte `from` of the write on. They are not fenced.
    void fill(PendingWrite& write, std::uint32_t from, std::span<const std::uint8_t> bytes);
    // Calls run(memory) for each part of a block that the bytes go to, in order.
    void for_each_piece(const PendingWrite& write, const std::function<void(std::span<std::uint8_t>)>& run) const;
    // Completes the blocks after all bytes were written. Copies the rest of the first and the last block from the old
    // blocks. Sets all checksums, and flushes what fill() did not write.
    void complete(PendingWrite& write, std::span<const Extent> before);
    // Copies the first `bytes` of a block to another block; zeros follow.
    void copy_beginning(std::uint32_t to, std::uint32_t from, std::uint32_t bytes);

    // Copies a part of a chunk; holes are zeros. Returns false if a block's checksum refuses it.
    [[nodiscard]] bool read(std::span<const Extent> extents, std::uint32_t offset, std::span<std::uint8_t> to) const;
    [[nodiscard]] bool is_sound(std::uint32_t number) const noexcept;
    // Compares the blocks with their checksums. Returns false also if the extents name blocks that do not exist.
    [[nodiscard]] bool are_sound(std::span<const Extent> extents) const noexcept;

private:
    [[nodiscard]] std::span<std::uint8_t> block(std::uint32_t number) const noexcept {
        return medium_.memory().subspan(std::size_t{number} * kBlockBytes, kBlockBytes);
    }
    [[nodiscard]] std::uint32_t sum_of(std::uint32_t number) const noexcept;
    void set_sum(std::uint32_t number, std::uint32_t sum) noexcept;
    void flush_sums(const BlockRun& run) noexcept;
    void take_over(std::uint32_t number, std::uint32_t from, std::uint32_t to, std::span<const Extent> before,
                   std::uint32_t at) noexcept;

    Medium& medium_;
    const Layout layout_;
};

}  // namespace cairn::fs
