// HeapBlock: memory of EAL's heap for messages and rings: on huge pages where there are some, and known to the
// devices, so that payloads are sent from where they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/result.hpp"

namespace cairn::pmd {

class HeapBlock {
public:
    // Zeroed, aligned to a cache line, on the calling thread's NUMA node.
    static Result<HeapBlock> allocate(std::size_t bytes, const char* purpose);
    HeapBlock(HeapBlock&& other) noexcept : memory_(other.memory_) { other.memory_ = {}; }
    HeapBlock& operator=(HeapBlock&&) = delete;
    ~HeapBlock();

    // Huge pages are taken when a block is allocated and given back with it. Without them EAL has all of its memory
    // from the start, which costs nothing until it is written to or freed.
    [[nodiscard]] static bool is_of_huge_pages() noexcept;
    [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return memory_; }

private:
    explicit HeapBlock(std::span<std::uint8_t> memory) noexcept : memory_(memory) {}
    std::span<std::uint8_t> memory_;
};

}  // namespace cairn::pmd
