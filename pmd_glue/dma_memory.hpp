// DmaMemory: memory beside EAL's that a device sends from.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/mem/counted_ranges.hpp"

namespace cairn::pmd {

// Makes pieces of memory known to EAL (rte_extmem_register), once a process, and maps them for the device's DMA
// (rte_dev_dma_map), once a device, whichever of its ports ask for them. Any thread.
class DmaMemory final : public mem::CountedRanges::Keeper {
public:
    // Without `maps` the memory is read by the CPU: there is nothing to make known.
    DmaMemory(std::uint16_t port_id, bool maps);
    ~DmaMemory() override;
    DmaMemory(const DmaMemory&) = delete;
    DmaMemory& operator=(const DmaMemory&) = delete;

    // False also where a device of the process shares EAL's memory with a peer: the peer is told all of that memory.
    [[nodiscard]] bool make(mem::CountedRanges::Range piece) override;
    void end(mem::CountedRanges::Range piece) noexcept override;

private:
    class Mapper;

    const bool maps_;
    std::unique_ptr<Mapper> mapper_;
    std::unique_ptr<mem::CountedRanges> mapped_;
};

}  // namespace cairn::pmd
