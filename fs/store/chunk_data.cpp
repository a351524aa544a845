#include "fs/store/chunk_data.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "fs/store/checksum.hpp"

namespace cairn::fs {

namespace {

// Appends blocks to extents. Extends the last extent if the blocks continue it.
void append(std::vector<Extent>& extents, const Extent& more) {
    if (!extents.empty()) {
        Extent& last = extents.back();
        if (last.at + last.run.count == more.at && last.run.first + last.run.count == more.run.first) {
            last.run.count += more.run.count;
            return;
        }
    }
    extents.push_back(more);
}

std::optional<std::uint32_t> block_at(std::span<const Extent> extents, std::uint32_t at) noexcept {
    const auto behind = std::upper_bound(extents.begin(), extents.end(), at,
                                         [](std::uint32_t wanted, const Extent& each) { return wanted < each.at; });
    if (behind == extents.begin()) {
        return std::nullopt;
    }
    const Extent& extent = *std::prev(behind);
    return at < extent.at + extent.run.count ? std::optional(extent.run.first + (at - extent.at)) : std::nullopt;
}

// Calls run(number of the block, its place in the write) for each block.
template <class Run>
void for_each_block(const std::vector<BlockRun>& runs, Run&& run) {
    std::uint32_t index = 0;
    for (const BlockRun& each : runs) {
        for (std::uint32_t i = 0; i != each.count; ++i) {
            run(each.first + i, index++);
        }
    }
}

}  // namespace

std::vector<Extent> overlay(std::span<const Extent> extents, std::uint32_t at, std::span<const BlockRun> runs) {
    std::uint32_t end = at;
    std::vector<Extent> made = cut_off(extents, at);
    for (const BlockRun& run : runs) {
        append(made, {end, run});
        end += run.count;
    }
    for (const Extent& extent : extents) {
        const std::uint32_t extent_end = extent.at + extent.run.count;
        if (extent_end > end) {
            const std::uint32_t from = std::max(extent.at, end);
            append(made, {from, {extent.run.first + (from - extent.at), extent_end - from}});
        }
    }
    return made;
}

std::vector<Extent> cut_off(std::span<const Extent> extents, std::uint32_t end) {
    std::vector<Extent> made;
    for (const Extent& extent : extents) {
        if (extent.at < end) {
            made.push_back({extent.at, {extent.run.first, std::min(extent.run.count, end - extent.at)}});
        }
    }
    return made;
}

std::uint32_t ChunkData::sum_of(std::uint32_t number) const noexcept {
    std::uint32_t sum = 0;
    std::memcpy(&sum, medium_.memory().data() + layout_.checksum_at(number), sizeof(sum));
    return sum;
}

void ChunkData::set_sum(std::uint32_t number, std::uint32_t sum) noexcept {
    std::memcpy(medium_.memory().data() + layout_.checksum_at(number), &sum, sizeof(sum));
}

void ChunkData::flush_sums(const BlockRun& run) noexcept {
    medium_.flush(medium_.memory().data() + layout_.checksum_at(run.first), run.count * sizeof(std::uint32_t));
}

bool ChunkData::is_sound(std::uint32_t number) const noexcept {
    return crc32c(0, block(number)) == sum_of(number);
}

bool ChunkData::are_sound(std::span<const Extent> extents) const noexcept {
    for (const Extent& extent : extents) {
        for (std::uint32_t i = 0; i != extent.run.count; ++i) {
            const std::uint32_t number = extent.run.first + i;
            if (number >= layout_.blocks || !is_sound(number)) {
                return false;
            }
        }
    }
    return true;
}

void ChunkData::fill(PendingWrite& write, std::uint32_t from, std::span<const std::uint8_t> bytes) {
    CAIRN_ASSERT(from + bytes.size() <= write.bytes);
    const std::uint32_t begin = write.offset % kBlockBytes + from;  // counted from the first block's beginning
    const auto end = static_cast<std::uint32_t>(begin + bytes.size());
    alignas(kLineBytes) std::array<std::uint8_t, kBlockBytes> steady;
    for_each_block(write.runs, [&](std::uint32_t number, std::uint32_t index) {
        const std::uint32_t low = std::max(begin, index * kBlockBytes);
        const std::uint32_t high = std::min(end, (index + 1) * kBlockBytes);
        if (low >= high) {
            return;
        }
        const std::span<const std::uint8_t> part = bytes.subspan(low - begin, high - low);
        if (part.size() != kBlockBytes) {
            medium_.copy_nt(block(number).data() + low % kBlockBytes, part.data(), part.size());
            return;
        }
        // The owner of these bytes may change them meanwhile. The checksum must be that of the copy.
        std::memcpy(steady.data(), part.data(), kBlockBytes);
        set_sum(number, crc32c(0, steady));
        medium_.copy_nt(block(number).data(), steady.data(), kBlockBytes);
        write.summed[index] = true;
    });
}

void ChunkData::for_each_piece(const PendingWrite& write,
                               const std::function<void(std::span<std::uint8_t>)>& run) const {
    std::uint32_t skip = write.offset % kBlockBytes;
    std::uint32_t left = write.bytes;
    for (const BlockRun& each : write.runs) {
        const std::uint32_t bytes = std::min(left, each.count * kBlockBytes - skip);
        run(medium_.memory().subspan(std::size_t{each.first} * kBlockBytes + skip, bytes));
        left -= bytes;
        skip = 0;
    }
}

// Copies bytes [from, to) of the old block at this place into a new block.
void ChunkData::take_over(std::uint32_t number, std::uint32_t from, std::uint32_t to, std::span<const Extent> before,
                          std::uint32_t at) noexcept {
    const std::optional<std::uint32_t> old = block_at(before, at);
    if (old) {
        std::memcpy(block(number).data() + from, block(*old).data() + from, to - from);
    } else {
        std::memset(block(number).data() + from, 0, to - from);
    }
}

void ChunkData::complete(PendingWrite& write, std::span<const Extent> before) {
    const std::uint32_t head = write.offset % kBlockBytes;
    const std::uint32_t tail = (write.offset + write.bytes) % kBlockBytes;
    const std::uint32_t last = write.end_block() - write.first_block() - 1;
    for_each_block(write.runs, [&](std::uint32_t number, std::uint32_t index) {
        if (write.summed[index]) {
            return;
        }
        if (index == 0 && head != 0) {
            take_over(number, 0, head, before, write.first_block());
        }
        if (index == last && tail != 0) {
            take_over(number, tail, kBlockBytes, before, write.end_block() - 1);
        }
        set_sum(number, crc32c(0, block(number)));
        medium_.flush(block(number).data(), kBlockBytes);
    });
    for (const BlockRun& run : write.runs) {
        flush_sums(run);
    }
}

void ChunkData::copy_beginning(std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    std::memcpy(block(to).data(), block(from).data(), bytes);
    std::memset(block(to).data() + bytes, 0, kBlockBytes - bytes);
    set_sum(to, crc32c(0, block(to)));
    medium_.flush(block(to).data(), kBlockBytes);
    flush_sums({to, 1});
}

bool ChunkData::read(std::span<const Extent> extents, std::uint32_t offset, std::span<std::uint8_t> to) const {
    while (!to.empty()) {
        const std::uint32_t skip = offset % kBlockBytes;
        const std::size_t bytes = std::min<std::size_t>(to.size(), kBlockBytes - skip);
        const std::optional<std::uint32_t> number = block_at(extents, offset / kBlockBytes);
        if (!number) {
            std::memset(to.data(), 0, bytes);
        } else if (is_sound(*number)) {
            std::memcpy(to.data(), block(*number).data() + skip, bytes);
        } else {
            return false;
        }
        to = to.subspan(bytes);
        offset += static_cast<std::uint32_t>(bytes);
    }
    return true;
}

}  // namespace cairn::fs
