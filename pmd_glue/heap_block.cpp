#include "pmd_glue/heap_block.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#include "pmd_glue/device.hpp"

namespace cairn::pmd {

namespace {

bool all_send_from_any_memory() {
    for (std::uint16_t port_id = 0; port_id < RTE_MAX_ETHPORTS; ++port_id) {
        const Result<DeviceFacts> facts = Device::facts_of(port_id);
        if (facts.ok() && memory_of(facts.value()) != SentMemory::Any) {
            return false;
        }
    }
    return true;
}

}  // namespace

Result<HeapBlock> HeapBlock::allocate(std::size_t bytes, const char* purpose) {
    const bool any_memory = all_send_from_any_memory();
    const bool eal_first = !any_memory || rte_eal_has_hugepages() != 0;
    for (const bool of_eal : {eal_first, !eal_first}) {
        if (of_eal) {
            void* const memory = rte_zmalloc(purpose, bytes, RTE_CACHE_LINE_SIZE);
            if (memory != nullptr) {
                return HeapBlock({static_cast<std::uint8_t*>(memory), bytes});
            }
        } else if (any_memory) {
            Result<mem::Region> pages = mem::Region::map(bytes, mem::PageWish::NoHuge);
            if (pages.ok()) {
                return HeapBlock(std::move(pages).value(), bytes);
            }
        }
    }
    return Error{
        fmt::format("no {} MiB of memory for {}", bytes >> 20U, purpose),
        any_memory ? "ask for less, or raise the memory limit (ulimit -v)" : "raise -m, or reserve more huge pages"};
}

bool HeapBlock::is_given_back() const noexcept {
    return pages_.has_value() || rte_eal_has_hugepages() != 0;
}

HeapBlock::~HeapBlock() {
    if (!pages_) {
        rte_free(memory_.data());
    }
}

}  // namespace cairn::pmd
