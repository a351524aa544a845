// Memory for a simulated process. A pool in it behaves the same wherever the allocator put it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace cairn::sim {

// Is aligned to a page and has no initial content.
class AlignedMemory {
public:
    AlignedMemory() = default;
    explicit AlignedMemory(std::size_t bytes)
        : start_(static_cast<std::uint8_t*>(::operator new(bytes, kAlignment))), bytes_(bytes) {}

    [[nodiscard]] std::span<std::uint8_t> span() const noexcept { return {start_.get(), bytes_}; }

private:
    static constexpr std::align_val_t kAlignment{4096};
    struct Free {
        void operator()(std::uint8_t* start) const noexcept { ::operator delete(start, kAlignment); }
    };

    std::unique_ptr<std::uint8_t, Free> start_;
    std::size_t bytes_ = 0;
};

}  // namespace cairn::sim
