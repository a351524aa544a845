#include "rpc/common/msg_buffer.hpp"

#include <bit>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::rpc {

namespace {

constexpr std::size_t kAlignment = 64;
// One header per 256 bytes of data is the most a path MTU asks for; the first stands in front.
constexpr std::size_t headers_behind(std::size_t data_bytes) noexcept {
    return data_bytes <= 256 ? 0 : (data_bytes / 256) * kMsgHeaderBytes;
}

}  // namespace

MsgPool::MsgPool(std::span<std::uint8_t> region) : region_(region) {
    const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(region.data()) % kAlignment;
    used_ = misaligned == 0 ? 0 : kAlignment - misaligned;
}

MsgBuffer MsgPool::allocate(std::uint32_t capacity_bytes) noexcept {
    if (capacity_bytes > kMaxMessageBytes) {
        return {};
    }
    const std::uint32_t rounded = std::bit_ceil(capacity_bytes < kSmallest ? kSmallest : capacity_bytes);
    const auto size_class = static_cast<std::uint8_t>(std::countr_zero(rounded) - std::countr_zero(kSmallest));
    std::uint8_t* data = free_[size_class];
    if (data != nullptr) {
        std::memcpy(&free_[size_class], data, sizeof(std::uint8_t*));
    } else {
        // Data starts on a cache line; its header fills the end of the line before.
        const std::size_t whole =
            kAlignment + rounded + ((headers_behind(rounded) + kAlignment - 1) & ~(kAlignment - 1));
        if (used_ + whole > region_.size()) {
            return {};
        }
        data = region_.data() + used_ + kAlignment;
        used_ += whole;
    }
    ++live_;
    return {data, capacity_bytes, rounded, size_class};
}

void MsgPool::release(MsgBuffer& buffer) noexcept {
    if (!buffer.valid()) {
        return;
    }
    CAIRN_ASSERT(live_ > 0 && buffer.size_class < kClasses);
    std::memcpy(buffer.data, &free_[buffer.size_class], sizeof(std::uint8_t*));
    free_[buffer.size_class] = buffer.data;
    --live_;
    buffer = {};
}

}  // namespace cairn::rpc
