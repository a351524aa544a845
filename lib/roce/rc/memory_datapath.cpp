#include "lib/roce/rc/memory.hpp"

namespace cairn::roce::rc {

const MemoryTable::Region* MemoryTable::at(Rkey key) const noexcept {
    const std::uint32_t index = key.value >> index_shift_;
    if (index >= regions_.size()) {
        return nullptr;
    }
    const Region& region = regions_[index];
    return region.live && region.key == key ? &region : nullptr;
}

MemoryView MemoryTable::find(Rkey key, Pd pd, Rights wanted, std::uint64_t address,
                             std::uint64_t bytes) const noexcept {
    const Region* const region = at(key);
    if (region == nullptr) {
        return {MemoryVerdict::UnknownKey};
    }
    if (region->pd != pd) {
        return {MemoryVerdict::WrongPd};
    }
    if (!region->rights.cover(wanted)) {
        return {MemoryVerdict::NoRight};
    }
    // Differences only: address + bytes may wrap.
    if (address < region->base || bytes > region->bytes || address - region->base > region->bytes - bytes) {
        return {MemoryVerdict::OutOfRange};
    }
    return {MemoryVerdict::Ok, region->data + (address - region->base)};
}

MemoryVerdict MemoryTable::judge_invalidate(Rkey key, Pd pd) const noexcept {
    const Region* const region = at(key);
    if (region == nullptr) {
        return MemoryVerdict::UnknownKey;
    }
    if (region->pd != pd) {
        return MemoryVerdict::WrongPd;
    }
    return region->rights.cover(Right::RemoteInvalidate) ? MemoryVerdict::Ok : MemoryVerdict::NoRight;
}

}  // namespace cairn::roce::rc
