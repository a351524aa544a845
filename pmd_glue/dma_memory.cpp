#include "pmd_glue/dma_memory.hpp"

#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_memory.h>

#include <mutex>
#include <utility>
#include <vector>

#include "lib/mem/region.hpp"
#include "pmd_glue/device.hpp"

namespace cairn::pmd {

namespace {

using Range = mem::CountedRanges::Range;

void* address_of(Range piece) noexcept {
    return const_cast<std::uint8_t*>(piece.data());
}

// Returns whether a device shares EAL's memory. A net_memif that does looks for a file of each part of it, and ours has
// none.
bool shares_eal_memory() {
    for (std::uint16_t port_id = 0; port_id < RTE_MAX_ETHPORTS; ++port_id) {
        const Result<DeviceFacts> facts = Device::facts_of(port_id);
        if (facts.ok() && memory_of(facts.value()) == SentMemory::Eal) {
            return true;
        }
    }
    return false;
}

// The memory that the process has registered with EAL.
class Known final : public mem::CountedRanges::Keeper {
public:
    bool make(Range piece) override {
        if (shares_eal_memory()) {
            return false;
        }
        const auto start = reinterpret_cast<rte_iova_t>(piece.data());
        const bool is_huge = start % mem::kHugePageBytes == 0 && piece.size() % mem::kHugePageBytes == 0;
        const std::size_t page_bytes = is_huge ? mem::kHugePageBytes : mem::CountedRanges::kPageBytes;
        std::vector<rte_iova_t> addresses(piece.size() / page_bytes);
        rte_iova_t next = start;
        for (rte_iova_t& address : addresses) {
            address = std::exchange(next, next + page_bytes);
        }
        return rte_extmem_register(address_of(piece), piece.size(), addresses.data(),
                                   static_cast<unsigned>(addresses.size()), page_bytes) == 0;
    }
    void end(Range piece) noexcept override { rte_extmem_unregister(address_of(piece), piece.size()); }
};

std::mutex guard;  // guards all that follows, and each device's pieces

mem::CountedRanges& known() {
    static Known keeper;
    static mem::CountedRanges ranges(keeper);
    return ranges;
}

void forget(Range piece) noexcept {
    known().retire(piece);
    known().release_retired();
}

}  // namespace

// Maps memory for one device's DMA.
class DmaMemory::Mapper final : public mem::CountedRanges::Keeper {
public:
    explicit Mapper(rte_device* device) noexcept : device_(device) {}
    bool make(Range piece) override {
        if (device_ == nullptr || !known().attach(piece)) {
            return false;
        }
        const auto iova = reinterpret_cast<std::uint64_t>(piece.data());
        if (rte_dev_dma_map(device_, address_of(piece), iova, piece.size()) != 0) {
            forget(piece);
            return false;
        }
        return true;
    }
    void end(Range piece) noexcept override {
        const auto iova = reinterpret_cast<std::uint64_t>(piece.data());
        rte_dev_dma_unmap(device_, address_of(piece), iova, piece.size());
        forget(piece);
    }

private:
    rte_device* device_;
};

DmaMemory::DmaMemory(std::uint16_t port_id, bool maps) : maps_(maps) {
    rte_eth_dev_info info{};
    const bool is_there = rte_eth_dev_info_get(port_id, &info) == 0;
    mapper_ = std::make_unique<Mapper>(is_there ? info.device : nullptr);
    mapped_ = std::make_unique<mem::CountedRanges>(*mapper_);
}

DmaMemory::~DmaMemory() {
    const std::lock_guard lock(guard);
    mapped_.reset();
}

bool DmaMemory::make(Range piece) {
    const std::lock_guard lock(guard);
    return !maps_ || mapped_->attach(piece);
}

void DmaMemory::end(Range piece) noexcept {
    const std::lock_guard lock(guard);
    mapped_->retire(piece);
    mapped_->release_retired();
}

}  // namespace cairn::pmd
