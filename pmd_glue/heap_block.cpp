#include "pmd_glue/heap_block.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_malloc.h>

namespace cairn::pmd {

Result<HeapBlock> HeapBlock::allocate(std::size_t bytes, const char* purpose) {
    void* memory = rte_zmalloc(purpose, bytes, RTE_CACHE_LINE_SIZE);
    if (memory == nullptr) {
        return Error{fmt::format("no {} MiB of EAL memory for {}", bytes >> 20U, purpose),
                     "raise -m, or reserve more huge pages"};
    }
    return HeapBlock({static_cast<std::uint8_t*>(memory), bytes});
}

bool HeapBlock::is_of_huge_pages() noexcept {
    return rte_eal_has_hugepages() != 0;
}

HeapBlock::~HeapBlock() {
    rte_free(memory_.data());
}

}  // namespace cairn::pmd
