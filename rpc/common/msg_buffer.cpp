#include "rpc/common/msg_buffer.hpp"

#include <bit>

namespace cairn::rpc {

namespace {

// Data starts on a cache line; header 0 fills the end of the line before.
constexpr std::uint32_t kFrontBytes = 64;
static_assert(kFrontBytes >= kMsgHeaderBytes);

// One header for each further packet at the smallest path MTU, whose payload is less than that MTU.
constexpr std::uint32_t bytes_behind(std::uint32_t data_bytes) noexcept {
    return data_bytes / (kSmallestPathMtuBytes - kMsgHeaderBytes) * kMsgHeaderBytes;
}
constexpr std::uint32_t bytes_with_headers(std::uint32_t data_bytes) noexcept {
    return kFrontBytes + data_bytes + bytes_behind(data_bytes);
}
static_assert(bytes_with_headers(kMaxMessageBytes) <= mem::BufferPool::kLargestBytes);

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
    const mem::Buffer memory = pool_.try_allocate(bytes_with_headers(capacity_bytes));
    if (!memory.valid()) {
        return {};
    }
    return {memory.data + kFrontBytes, capacity_bytes, capacity_bytes, memory};
}

std::uint32_t MsgPool::bytes_for(std::uint32_t capacity_bytes) noexcept {
    return std::bit_ceil(bytes_with_headers(capacity_bytes));  // a size class
}

std::uint32_t MsgPool::longest_message() const noexcept {
    std::uint32_t fits = 0;
    for (std::uint32_t step = std::bit_floor(kMaxMessageBytes); step != 0; step /= 2) {
        fits += fits + step <= kMaxMessageBytes && bytes_for(fits + step) <= pool_.capacity_bytes() ? step : 0;
    }
    return fits;
}

void MsgPool::release(MsgBuffer& buffer) noexcept {
    pool_.release(buffer.memory);
    buffer = {};
}

}  // namespace cairn::rpc
