#include "lib/roce/qp/memory.hpp"

#include "lib/base/assert.hpp"

namespace cairn::roce {

const MemoryTable::Region* MemoryTable::at(Rkey key) const noexcept {
    const std::uint32_t index = keys_.index_of(key);
    if (index >= regions_.size()) {
        return nullptr;
    }
    const Region& region = regions_[index];
    return region.live && region.key == key ? &region : nullptr;
}

inline MemoryView MemoryTable::Region::view(Rights wanted, std::uint64_t address, std::uint64_t count) const noexcept {
    if (!rights.cover(wanted)) {
        return MemoryRefusal::NoRight;
    }
    if (vanished) [[unlikely]] {
        return MemoryRefusal::Vanished;
    }
    // Compares differences only, since address + count may wrap.
    if (address < base || count > bytes || address - base > bytes - count) {
        return MemoryRefusal::OutOfRange;
    }
    return {data + (address - base), sendable};
}

// Finds memory of a null region. All of its addresses lead to the same few bytes.
MemoryView MemoryTable::Region::null_view(Rights wanted, std::uint64_t count) const noexcept {
    if (!Rights(Right::LocalWrite).cover(wanted)) {
        return MemoryRefusal::NoRight;
    }
    if (count > kNullBytes) {
        return MemoryRefusal::OutOfRange;
    }
    return {wanted == Rights{} ? data : data + kNullBytes, false};
}

MemoryView MemoryTable::find(Rkey key, Pd pd, Rights wanted, std::uint64_t address,
                             std::uint64_t bytes) const noexcept {
    const Region* const region = at(key);
    if (region == nullptr || region->is_window()) {
        return MemoryRefusal::UnknownKey;
    }
    if (region->pd != pd) {
        return MemoryRefusal::WrongPd;
    }
    return region->kind == Kind::Region ? region->view(wanted, address, bytes) : region->null_view(wanted, bytes);
}

std::optional<MemoryRefusal> MemoryTable::Region::judge_user(const Region* region, const KeyUser& user) noexcept {
    if (region == nullptr) {
        return MemoryRefusal::UnknownKey;
    }
    const bool foreign = region->kind == Kind::Window2B && region->qpn != user.qpn;
    return region->pd == user.pd && !foreign ? std::nullopt : std::optional(MemoryRefusal::WrongPd);
}

MemoryView MemoryTable::find_remote(Rkey key, const KeyUser& user, Rights wanted, std::uint64_t address,
                                    std::uint64_t bytes) const noexcept {
    CAIRN_ASSERT(wanted != Rights{});
    const Region* const region = at(key);
    const std::optional<MemoryRefusal> refusal = Region::judge_user(region, user);
    return refusal ? MemoryView(*refusal) : region->view(wanted, address, bytes);
}

std::optional<std::span<std::uint8_t>> MemoryTable::find_whole(Rkey key, const KeyUser& user,
                                                               Rights wanted) const noexcept {
    CAIRN_ASSERT(wanted != Rights{});
    const Region* const region = at(key);
    if (Region::judge_user(region, user) || !region->rights.cover(wanted)) {
        return std::nullopt;
    }
    return std::span(region->data, region->bytes);
}

}  // namespace cairn::roce
