// HeapBlock: memory for messages and rings, on huge pages if there are some. The devices of this process send from it
// without a copy.
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

// A block that lies in EAL's heap, which the devices know. Without reserved huge pages (--no-huge) EAL's memory is a
// file in memory, which the kernel backs with small pages. The block then lies in anonymous memory, which asks for
// transparent huge pages, if every device of the process sends from any memory.
class HeapBlock {
public:
    // Allocates a block, zeroed and aligned to a cache line. EAL's is on the calling thread's NUMA node. Called after
    // the devices were made.
    static Result<HeapBlock> allocate(std::size_t bytes, const char* purpose);
    HeapBlock(HeapBlock&& other) noexcept
        : pages_(std::exchange(other.pages_, std::nullopt)), memory_(std::exchange(other.memory_, {})) {}
    HeapBlock& operator=(HeapBlock&&) = delete;
    ~HeapBlock();

    // Returns whether the system gets the memory back when the block ends. Otherwise EAL gets it and clears it: EAL's
    // memory is there from the start, and costs nothing until it is written to or given back.
    [[nodiscard]] bool is_given_back() const noexcept;
    [[nodiscard]] mem::PageKind page_kind() const noexcept { return pages_ ? pages_->kind() : eal_pages(); }
    [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return memory_; }

private:
    explicit HeapBlock(std::span<std::uint8_t> of_eal) noexcept : memory_(of_eal) {}
    HeapBlock(mem::Region pages, std::size_t bytes) noexcept
        : pages_(std::move(pages)), memory_(pages_->bytes().first(bytes)) {}

    std::optional<mem::Region> pages_;  // nullopt: the memory is EAL's
    std::span<std::uint8_t> memory_;
};

}  // namespace cairn::pmd
