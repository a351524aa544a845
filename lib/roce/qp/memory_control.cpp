#include "lib/roce/qp/memory.hpp"

#include <bit>
#include <limits>
#include <numeric>

#include "lib/base/assert.hpp"
#include "lib/base/sip_hash.hpp"

namespace cairn::roce {

MemoryTable::MemoryTable(std::uint32_t regions, const Seed& seed)
    : seed_(seed),
      keys_(regions),
      most_(regions),
      regions_(std::min(regions, RegionKeys::kFirst)),
      free_(regions_.size()) {
    CAIRN_ASSERT(regions >= 1 && regions <= kMaxRegions);
    std::iota(free_.begin(), free_.end(), 0U);
}

// Makes a key of index, secret and generation. A secret of the index moves the generation on, so that it reveals no
// age. Within a slot 256 keys in a row differ whatever the secret between them is.
Rkey MemoryTable::make_key(std::uint32_t index, std::uint32_t generation) const noexcept {
    constexpr std::uint64_t kOfIndexOnly = std::uint64_t{1} << 63U;
    const std::uint64_t secret = sip_hash(seed_, (std::uint64_t{index} << 32U) | generation);
    return keys_.make(index, secret, generation + sip_hash(seed_, kOfIndexOnly | index));
}

MemoryTable::Domain* MemoryTable::domain(Pd pd) noexcept {
    if (pd.value == 0 || pd.value > domains_.size() || !domains_[pd.value - 1].live) {
        return nullptr;
    }
    return &domains_[pd.value - 1];
}

Pd MemoryTable::create_pd() {
    for (std::uint32_t i = 0; i < domains_.size(); ++i) {
        if (!domains_[i].live) {
            domains_[i] = {0, true};
            return Pd{i + 1};
        }
    }
    domains_.push_back({0, true});
    return Pd{static_cast<std::uint32_t>(domains_.size())};
}

bool MemoryTable::destroy_pd(Pd pd) noexcept {
    Domain* const found = domain(pd);
    if (found == nullptr || found->users != 0) {
        return false;
    }
    found->live = false;
    return true;
}

bool MemoryTable::hold_pd(Pd pd) noexcept {
    Domain* const found = domain(pd);
    if (found == nullptr) {
        return false;
    }
    ++found->users;
    return true;
}

void MemoryTable::release_pd(Pd pd) noexcept {
    Domain* const found = domain(pd);
    CAIRN_ASSERT(found != nullptr && found->users > 0);
    --found->users;
}

std::optional<Error> MemoryTable::judge_region(const RegionRequest& request) {
    const bool writes_remotely = request.rights.cover(Right::RemoteWrite) || request.rights.cover(Right::RemoteAtomic);
    if (domain(request.pd) == nullptr) {
        return Error{"there is no such protection domain", "create one first"};
    }
    if (writes_remotely && !request.rights.cover(Right::LocalWrite)) {
        return Error{"remote write or atomic rights without local write", "ask for LocalWrite as well"};
    }
    CAIRN_ASSERT(!request.is_null || request.memory.size() == 2 * std::size_t{kNullBytes});
    if (request.memory.size() > std::numeric_limits<std::uint64_t>::max() - request.base) {
        return Error{"the region's addresses go beyond 2^64", "choose a lower base"};
    }
    return std::nullopt;
}

// Makes room when all regions are in use. Returns false if the limit is reached.
bool MemoryTable::grow() {
    const auto before = static_cast<std::uint32_t>(regions_.size());
    const std::uint32_t after = std::min(2 * before, most_);
    if (after == before) {
        return false;
    }
    std::vector<std::uint32_t> free(after);
    std::iota(free.begin(), free.end(), before);  // the first of them: the others are in use
    regions_.resize(after);
    free_.swap(free);
    free_head_ = 0;
    return true;
}

// Takes a slot with a key of its own, in this domain, and otherwise empty.
Result<MemoryTable::Region*> MemoryTable::take_slot(Pd pd) {
    if (in_use_ == regions_.size() && !grow()) {
        return Error{"no memory region left", "destroy unused ones or make the table larger"};
    }
    const std::uint32_t index = free_[free_head_];
    free_head_ = (free_head_ + 1) % static_cast<std::uint32_t>(free_.size());
    ++in_use_;
    Region& region = regions_[index];
    const std::uint32_t generation = region.generation;
    region = {};
    region.key = make_key(index, generation);
    region.generation = generation;
    region.pd = pd;
    region.live = true;
    (void)hold_pd(pd);
    return &region;
}

void MemoryTable::give_slot(Region& region) noexcept {
    region.live = false;
    ++region.generation;
    release_pd(region.pd);
    free_[(free_head_ + free_.size() - in_use_) % free_.size()] = static_cast<std::uint32_t>(&region - regions_.data());
    --in_use_;
}

MemoryTable::Region* MemoryTable::region_at(Rkey key) noexcept {
    const Region* const found = at(key);
    return found != nullptr && found->kind == Kind::Region
               ? &regions_[static_cast<std::size_t>(found - regions_.data())]
               : nullptr;
}

Result<Rkey> MemoryTable::register_region(const RegionRequest& request) {
    if (std::optional<Error> error = judge_region(request)) {
        return *std::move(error);
    }
    const Result<Region*> slot = take_slot(request.pd);
    if (!slot.ok()) {
        return slot.error();
    }
    Region& region = *slot.value();
    region.base = request.base;
    region.bytes = request.memory.size();
    region.data = request.memory.data();
    region.rights = request.rights;
    region.sendable = request.sendable;
    region.vanished = false;
    region.kind = request.is_null ? Kind::Null : Kind::Region;
    return region.key;
}

void MemoryTable::on_vanished(const std::uint8_t* address) noexcept {
    for (Region& each : regions_) {
        const bool within = each.live && each.data <= address && address < each.data + each.bytes;
        each.vanished = each.vanished || within;
    }
}

Result<Rkey> MemoryTable::reregister_region(Rkey key, const RegionChange& change) {
    Region* const region = region_at(key);
    if (region == nullptr || region->windows != 0) {
        return region == nullptr ? Error{"no memory region has this key", "register it first"}
                                 : Error{"windows are bound to the region", "invalidate or destroy them first"};
    }
    const RegionChange::Translation translation = change.translation.value_or(
        RegionChange::Translation{{region->data, region->bytes}, region->base, region->sendable});
    const RegionRequest request{change.pd.value_or(region->pd), translation.memory, translation.base,
                                change.rights.value_or(region->rights), translation.sendable};
    if (std::optional<Error> error = judge_region(request)) {
        return *std::move(error);
    }
    (void)hold_pd(request.pd);
    release_pd(region->pd);
    if (change.translation) {
        region->key = make_key(static_cast<std::uint32_t>(region - regions_.data()), ++region->generation);
        note_end(*region);
    }
    region->pd = request.pd;
    region->base = request.base;
    region->bytes = request.memory.size();
    region->data = request.memory.data();
    region->rights = request.rights;
    region->sendable = request.sendable;
    region->vanished = region->vanished && !change.translation;
    return region->key;
}

Result<Rkey> MemoryTable::create_window(Pd pd, WindowType type) {
    if (domain(pd) == nullptr) {
        return Error{"there is no such protection domain", "create one first"};
    }
    const Result<Region*> slot = take_slot(pd);
    if (!slot.ok()) {
        return slot.error();
    }
    slot.value()->kind = type == WindowType::Type1 ? Kind::Window1 : Kind::Window2B;
    return slot.value()->key;
}

bool MemoryTable::has_windows(Rkey region) const noexcept {
    const Region* const found = at(region);
    return found != nullptr && found->kind == Kind::Region && found->windows != 0;
}

void MemoryTable::note_end(const Region& region) noexcept {
    if (!region.sendable) {
        return;
    }
    const std::uint8_t* const end = region.data + region.bytes;
    const std::uint8_t* const from =
        ended_.empty() ? region.data : std::min<const std::uint8_t*>(region.data, ended_.data());
    const std::uint8_t* const until = ended_.empty() ? end : std::max(end, ended_.data() + ended_.size());
    ended_ = {from, until};
}

bool MemoryTable::destroy_region(Rkey key) noexcept {
    const Region* const found = at(key);
    if (found == nullptr || found->is_window() || found->windows != 0) {
        return false;
    }
    note_end(*found);
    give_slot(regions_[static_cast<std::size_t>(found - regions_.data())]);
    return true;
}

}  // namespace cairn::roce
