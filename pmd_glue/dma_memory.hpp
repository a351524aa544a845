// DmaMemory: memory other than EAL's, from which a device sends.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/mem/counted_ranges.hpp"

namespace cairn::pmd {

// Registers pieces of memory with EAL (rte_extmem_register), once a process. Maps them for the device's DMA
// (rte_dev_dma_map), once a device, whichever of its ports ask for them. Any thread.
class DmaMemory final : public mem::CountedRanges::Keeper {
public:
    // Makes the object. Without `maps` the CPU reads the memory, which is then not registered.
    DmaMemory(std::uint16_t port_id, bool maps);
    ~DmaMemory() override;
    DmaMemory(const DmaMemory&) = delete;
    DmaMemory& operator=(const DmaMemory&) = delete;

    // Maps the piece. Returns false if it cannot. It cannot if a device of the process shares EAL's memory with a peer,
    // which would get a descriptor for each part of that memory.
    [[nodiscard]] bool make(mem::CountedRanges::Range piece) override;
    void end(mem::CountedRanges::Range piece) noexcept override;

private:
    class Mapper;

    const bool maps_;
    std::unique_ptr<Mapper> mapper_;
    std::unique_ptr<mem::CountedRanges> mapped_;
};

}  // namespace cairn::pmd
