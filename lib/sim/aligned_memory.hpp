// Memory for a simulated process. A pool in it behaves the same wherever the allocator put it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace cairn::sim {

// Memory that is aligned to its own length, rounded up to a power of two, or to a page, and has no initial content.
// Whether an address in it with one bit flipped lies within it does not depend on the allocator's choice.
class AlignedMemory {
public:
    AlignedMemory() = default;
    explicit AlignedMemory(std::size_t bytes) : AlignedMemory(bytes, alignment_of(bytes)) {}

    [[nodiscard]] std::span<std::uint8_t> span() const noexcept { return {start_.get(), bytes_}; }

private:
    static constexpr std::size_t kPageBytes = 4096;

    struct Free {
        std::align_val_t alignment;

        void operator()(std::uint8_t* start) const noexcept { ::operator delete(start, alignment); }
    };
    AlignedMemory(std::size_t bytes, std::align_val_t alignment)
        : start_(static_cast<std::uint8_t*>(::operator new(bytes, alignment)), Free{alignment}), bytes_(bytes) {}
    [[nodiscard]] static std::align_val_t alignment_of(std::size_t bytes) noexcept {
        return std::align_val_t{std::max(std::bit_ceil(bytes), kPageBytes)};
    }

    std::unique_ptr<std::uint8_t, Free> start_;
    std::size_t bytes_ = 0;
};

}  // namespace cairn::sim
