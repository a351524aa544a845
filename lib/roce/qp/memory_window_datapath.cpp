// Memory windows: work requests bind and free them, and name them by keys (IBTA vol. 1, 10.6.6.2, 10.6.7.2).
#include "lib/roce/qp/memory.hpp"
#include "lib/roce/qp/window_key.hpp"

namespace cairn::roce {

namespace {

constexpr Rights kOfWindows =
    Rights{Right::RemoteWrite} | Right::RemoteRead | Right::RemoteAtomic | Right::FlushGlobal | Right::FlushPersistent;

}  // namespace

std::optional<std::uint32_t> MemoryTable::find_window(Rkey key) const noexcept {
    const std::uint32_t index = keys_.index_of(key);
    if (index >= regions_.size()) {
        return std::nullopt;
    }
    const Region& window = regions_[index];
    return name_one_window(window.key, key) && window.live && window.is_window() ? std::optional<std::uint32_t>(index)
                                                                                 : std::nullopt;
}

bool MemoryTable::destroy_window(Rkey key) noexcept {
    const std::optional<std::uint32_t> window = find_window(key);
    if (!window) {
        return false;
    }
    unbind(regions_[*window]);
    give_slot(regions_[*window]);
    return true;
}

void MemoryTable::unbind(Region& window) noexcept {
    if (window.bound) {
        --regions_[window.bound_to].windows;
        bound_2b_ -= window.kind == Kind::Window2B ? 1 : 0;
    }
    window.bound = false;
    window.vanished = false;
    window.bytes = 0;
    window.rights = {};
    window.qpn = {};
}

// Judges a binding. Remote rights need no remote rights of the region, but rights to write need its right of local
// writing (C10-72 to C10-75).
std::optional<MemoryRefusal> MemoryTable::judge_binding(const WindowBinding& binding, const Region& window,
                                                        const KeyUser& user) const noexcept {
    const bool type1 = window.kind == Kind::Window1;
    if (window.pd != user.pd) {
        return MemoryRefusal::WrongPd;
    }
    if (!type1 && window.bound) {
        return MemoryRefusal::InUse;
    }
    if (binding.bytes == 0 || (type1 && binding.zero_based)) {
        return type1 && !binding.zero_based ? std::nullopt : std::optional(MemoryRefusal::NoRight);
    }
    const bool writes = binding.rights.cover(Right::RemoteWrite) || binding.rights.cover(Right::RemoteAtomic);
    const Rights needed = Rights{Right::BindWindow} | (writes ? Rights{Right::LocalWrite} : Rights{}) |
                          binding.rights.within(Rights{Right::FlushGlobal} | Right::FlushPersistent);
    if (!kOfWindows.cover(binding.rights)) {
        return MemoryRefusal::NoRight;
    }
    return find(Rkey{binding.region.value}, window.pd, needed, binding.address, binding.bytes).refusal;
}

std::optional<MemoryRefusal> MemoryTable::bind_window(const WindowBinding& binding, const KeyUser& user) noexcept {
    const std::optional<std::uint32_t> found = find_window(binding.window);
    Region* const window = found ? &regions_[*found] : nullptr;
    const std::optional<MemoryRefusal> refusal =
        window == nullptr ? MemoryRefusal::UnknownKey : judge_binding(binding, *window, user);
    if (refusal) {
        return refusal;
    }
    unbind(*window);
    window->key = binding.window;
    if (binding.bytes == 0) {
        return std::nullopt;
    }
    window->bound_to = keys_.index_of(Rkey{binding.region.value});
    Region& region = regions_[window->bound_to];
    ++region.windows;
    window->bound = true;
    bound_2b_ += window->kind == Kind::Window2B ? 1 : 0;
    window->base = binding.zero_based ? 0 : binding.address;
    window->bytes = binding.bytes;
    window->data = region.data + (binding.address - region.base);
    window->rights = binding.rights;
    window->sendable = region.sendable;
    window->qpn = window->kind == Kind::Window2B ? user.qpn : Qpn{};
    return std::nullopt;
}

void MemoryTable::free_windows(Qpn qpn) noexcept {
    for (std::size_t i = 0; bound_2b_ != 0 && i < regions_.size(); ++i) {
        Region& region = regions_[i];
        if (region.live && region.bound && region.kind == Kind::Window2B && region.qpn == qpn) {
            unbind(region);
        }
    }
}

std::optional<MemoryRefusal> MemoryTable::judge_invalidate(Rkey key, const KeyUser& user) const noexcept {
    const Region* const region = at(key);
    if (region == nullptr || region->kind == Kind::Null || (region->is_window() && !region->bound)) {
        return MemoryRefusal::UnknownKey;
    }
    if (region->pd != user.pd || (region->kind == Kind::Window2B && region->qpn != user.qpn)) {
        return MemoryRefusal::WrongPd;
    }
    if (region->is_window()) {
        return region->kind == Kind::Window2B ? std::nullopt : std::optional(MemoryRefusal::NoRight);
    }
    if (region->windows != 0) {
        return MemoryRefusal::InUse;
    }
    return region->rights.cover(Right::RemoteInvalidate) ? std::nullopt : std::optional(MemoryRefusal::NoRight);
}

void MemoryTable::invalidate(Rkey key) noexcept {
    if (const std::optional<std::uint32_t> window = find_window(key)) {
        unbind(regions_[*window]);
    } else {
        (void)destroy_region(key);
    }
}

}  // namespace cairn::roce
