// HeapBlock: memory for messages and rings, on huge pages where there are some, that the devices of this process send
// from without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/result.hpp"
#include "lib/mem/region.hpp"
#include "pmd_glue/eal.hpp"

namespace cairn::pmd {

// Lies in EAL's heap, which the devices know. Without reserved huge pages (--no-huge) EAL's memory is a file in memory,
// which the kernel backs with small pages: the block then lies in anonymous memory, which asks for transparent huge
// pages, if every device of the process sends from any memory.
class HeapBlock {
public:
    // Zeroed, aligned to a cache line; EAL's is on the calling thread's NUMA node. After the devices were made.
    static Result<HeapBlock> allocate(std::size_t bytes, const char* purpose);
    HeapBlock(HeapBlock&& other) noexcept
        : pages_(std::exchange(other.pages_, std::nullopt)), memory_(std::exchange(other.memory_, {})) {}
    HeapBlock& operator=(HeapBlock&&) = delete;
    ~HeapBlock();

    // The system has the memory back when the block ends. Else EAL has it, which clears it: all of its memory is there
    // from the start, and costs nothing until it is written to or given back.
    [[nodiscard]] bool is_given_back() const noexcept;
    [[nodiscard]] mem::PageKind page_kind() const noexcept { return pages_ ? pages_->kind() : eal_pages(); }
    [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return memory_; }

private:
    explicit HeapBlock(std::span<std::uint8_t> of_eal) noexcept : memory_(of_eal) {}
    HeapBlock(mem::Region pages, std::size_t bytes) noexcept
        : pages_(std::move(pages)), memory_(pages_->bytes().first(bytes)) {}

    std::optional<mem::Region> pages_;  // nothing: EAL's
    std::span<std::uint8_t> memory_;
};

}  // namespace cairn::pmd
