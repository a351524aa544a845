// CallBuffers: memory for the data of calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fs/message/forwarded.hpp"

namespace cairn::fs {

// Lends memory without clearing it. Keeps long pieces for later calls: to get pages from the system and to clear them
// takes longer than the data's way through the network.
class CallBuffers {
public:
    class Buffer {
    public:
        Buffer() = default;
        [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return {memory_.get(), bytes_}; }

    private:
        friend class CallBuffers;
        std::unique_ptr<std::uint8_t[]> memory_{};
        std::uint32_t bytes_ = 0;
    };

    // Returns a buffer of `bytes`, at most kMostForwardedData.
    [[nodiscard]] Buffer take(std::uint32_t bytes) {
        Buffer buffer;
        if (is_long(bytes) && !spare_.empty()) {
            buffer.memory_ = std::move(spare_.back());
            spare_.pop_back();
        } else if (bytes != 0) {
            buffer.memory_ =
                std::make_unique_for_overwrite<std::uint8_t[]>(is_long(bytes) ? kMostForwardedData : bytes);
        }
        buffer.bytes_ = bytes;
        return buffer;
    }
    void give_back(Buffer buffer) {
        if (is_long(buffer.bytes_) && spare_.size() != kMostSpare) {
            spare_.push_back(std::move(buffer.memory_));
        }
    }

private:
    static constexpr std::size_t kMostSpare = 16;
    static constexpr bool is_long(std::uint32_t bytes) noexcept { return bytes > kMostInlineBytes; }

    std::vector<std::unique_ptr<std::uint8_t[]>> spare_;  // each kMostForwardedData long
};

}  // namespace cairn::fs
