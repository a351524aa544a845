#include "rpc/common/msg_buffer.hpp"

#include <algorithm>
#include <bit>

namespace cairn::rpc {

namespace {

static_assert(kMaxMessageBytes <= mem::BufferPool::kLargestBytes);

std::span<std::uint8_t> aligned(std::span<std::uint8_t> region) noexcept {
    const std::size_t over = reinterpret_cast<std::uintptr_t>(region.data()) % mem::BufferPool::kSmallestBytes;
    const std::size_t gap = over == 0 ? 0 : mem::BufferPool::kSmallestBytes - over;
    return region.subspan(gap < region.size() ? gap : region.size());
}

}  // namespace

MsgPool::MsgPool(std::span<std::uint8_t> region) : pool_(aligned(region)) {}

MsgBuffer MsgPool::allocate(std::uint32_t capacity_bytes) noexcept {
    if (capacity_bytes > kMaxMessageBytes) {
        return {};
    }
    const mem::Buffer memory = pool_.try_allocate(capacity_bytes);
    if (!memory.valid()) {
        return {};
    }
    return {memory.data, capacity_bytes, capacity_bytes, memory};
}

std::uint32_t MsgPool::bytes_for(std::uint32_t capacity_bytes) noexcept {
    return std::bit_ceil(std::max(capacity_bytes, mem::BufferPool::kSmallestBytes));  // a size class
}

// Buffers are powers of two. So they find room next to each other, the longest first.
std::uint32_t MsgPool::longest_message(std::uint32_t count, std::uint64_t taken_bytes) const noexcept {
    const auto holds = [this, count, taken_bytes](std::uint32_t bytes) {
        return std::uint64_t{count} * bytes_for(bytes) + taken_bytes <= pool_.capacity_bytes();
    };
    std::uint32_t fits = 0;
    for (std::uint32_t step = std::bit_floor(kMaxMessageBytes); step != 0; step /= 2) {
        fits += fits + step <= kMaxMessageBytes && holds(fits + step) ? step : 0;
    }
    return fits;
}

void MsgPool::release(MsgBuffer& buffer) noexcept {
    pool_.release(buffer.memory);
    buffer = {};
}

std::span<std::uint8_t> MsgPool::resize(MsgBuffer& buffer, std::uint32_t bytes) noexcept {
    if (buffer.capacity < bytes || !buffer.valid()) {
        release(buffer);
        buffer = allocate(bytes);
        buffer.bytes = 0;
    }
    return buffer.valid() ? buffer.resize(bytes) : std::span<std::uint8_t>{};
}

}  // namespace cairn::rpc
