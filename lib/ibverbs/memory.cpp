// Memory regions.
#include <sys/mman.h>
#include <unistd.h>

#include <limits>
#include <utility>

#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/memory_faults.hpp"
#include "lib/ibverbs/memory_rules.hpp"
#include "lib/ibverbs/objects.hpp"

namespace cairn::ibverbs {

namespace {

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22;
constexpr int MADV_POPULATE_WRITE = 23;
#endif

[[nodiscard]] int advise_kernel(std::uintptr_t first, std::uintptr_t end, bool writable) noexcept {
    const int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    return madvise(reinterpret_cast<void*>(first), end - first, advice) == 0 ? 0 : errno;
}

// Returns whether the kernel knows such advice. Kernels before 5.14 do not, and return EINVAL, as they do for pages
// that it does not suit.
[[nodiscard]] bool kernel_can_populate(std::uintptr_t page) noexcept {
    static const bool can = [page] {
        const std::uintptr_t here = reinterpret_cast<std::uintptr_t>(&page) & ~(page - 1);
        return advise_kernel(here, here + page, false) == 0;
    }();
    return can;
}

// Makes the pages present, as an adapter does that pins them. Returns EFAULT if a page is not mapped, not readable, or
// not writable although `writable`; else 0. On kernels that cannot say, it returns 0.
[[nodiscard]] int populate(const void* address, std::size_t bytes, bool writable) noexcept {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
    const auto end = (reinterpret_cast<std::uintptr_t>(address) + bytes + page - 1) & ~(page - 1);
    if (end < first) {
        return EFAULT;
    }
    const int reason = advise_kernel(first, end, writable);
    const bool refused = reason == ENOMEM || reason == EFAULT || (reason == EINVAL && kernel_can_populate(page));
    return refused ? EFAULT : 0;
}

}  // namespace

ibv_mr* make_region(ibv_pd* pd, SharedRegion&& wanted, const roce::RegionRequest& request) {
    auto mr = std::make_unique<Mr>();
    mr->region = std::make_shared<SharedRegion>(std::move(wanted));
    catch_memory_faults();
    SharedRegion& region = *mr->region;
    Adapter& adapter = adapter_of(pd->context);
    OpenFile& file = *Context::of(pd->context).file;
    const std::lock_guard hold(adapter.lock());
    const bool is_null = region.kind == SharedRegion::Kind::Null;
    mr->handle = ++file.last_handle;
    file.regions.add(mr->handle, mr->region);
    const Result<Rkey> key = adapter.engine().register_region(request);
    if (!key.ok()) {
        file.regions.remove(mr->handle);
        const std::uint64_t regions = std::uint64_t{adapter.engine().memory().regions_in_use()} + 1;
        return fail(is_within(Limit::Regions, regions) ? EINVAL : ENOMEM);
    }
    region.key = key.value();
    region.user = &Pd::of(pd);
    ++region.user->users;
    if (region.memory != nullptr) {
        ++region.memory->users;
    }
    set_context(*mr, pd->context);
    mr->pd = pd;
    mr->length = region.size;
    mr->lkey = region.key.value;
    mr->rkey = is_null ? 0 : region.key.value;
    return mr.release();
}

namespace {

ibv_mr* register_memory(ibv_pd* pd, const Registration& wanted) {
    const RegistrationJudgement judged = judge_registration(wanted);
    if (judged.reason != 0) {
        return fail(judged.reason);
    }
    if (judged.needs_pages && populate(wanted.address, wanted.bytes, judged.needs_to_write) != 0) {
        return fail(EFAULT);
    }
    SharedRegion region;
    region.access = wanted.access;
    region.address = wanted.address;
    region.size = wanted.bytes;
    ibv_mr* const mr = make_region(pd, std::move(region), {Pd::of(pd).id(), judged.memory, judged.base, judged.rights});
    if (mr != nullptr) {
        mr->addr = wanted.address;
    }
    return mr;
}

// Judges the memory that a region is to have, or the rights to the memory that it has. Writes its translation, if that
// changes, to `change`. Returns an errno value.
[[nodiscard]] int judge_change(const SharedRegion& region, const Change& wanted, roce::RegionChange& change) noexcept {
    const bool moves = (wanted.which & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    const bool changes_access = (wanted.which & IBV_REREG_MR_CHANGE_ACCESS) != 0;
    const Registration becomes{moves ? wanted.address : region.address, moves ? wanted.bytes : region.size,
                               reinterpret_cast<std::uintptr_t>(wanted.address),
                               changes_access ? wanted.access : region.access};
    const RegistrationJudgement judged = judge_registration(becomes);
    if (judged.reason != 0) {
        return judged.reason;
    }
    if (changes_access) {
        change.rights = judged.rights;
    }
    if (moves) {
        change.translation = {judged.memory, judged.base, false};
    }
    const bool looks = judged.needs_pages && (moves || changes_access);
    return looks ? populate(becomes.address, becomes.bytes, judged.needs_to_write) : 0;
}

// Needs the lock. Returns an errno value.
[[nodiscard]] int change_region(ibv_mr* mr, ibv_pd* pd, const Change& wanted, const roce::RegionChange& change) {
    SharedRegion& region = *Mr::of(mr).region;
    roce::Engine& engine = adapter_of(mr->context).engine();
    const Result<Rkey> key = engine.reregister_region(region.key, change);
    if (!key.ok()) {
        return engine.memory().has_windows(region.key) ? EBUSY : EINVAL;
    }
    region.key = key.value();
    mr->lkey = mr->rkey = key.value().value;
    if (change.pd) {
        --region.user->users;
        region.user = &Pd::of(pd);
        ++region.user->users;
        mr->pd = pd;
    }
    if (change.rights) {
        region.access = wanted.access;
    }
    if (change.translation) {
        mr->addr = region.address = wanted.address;
        mr->length = region.size = wanted.bytes;
    }
    return 0;
}

// Takes one piece of advice. Returns an errno value.
[[nodiscard]] int prefetch(ibv_pd* pd, const ibv_sge& piece, bool to_write, bool may_fault) noexcept {
    roce::MemoryView found;
    {
        Adapter& adapter = adapter_of(pd->context);
        const std::lock_guard hold(adapter.lock());
        found = adapter.engine().memory().find(Rkey{piece.lkey}, Pd::of(pd).id(),
                                               to_write ? roce::Rights(roce::Right::LocalWrite) : roce::Rights{},
                                               piece.addr, piece.length);
    }
    if (found.refusal) {
        return errno_of_advice(*found.refusal);
    }
    return may_fault && piece.length != 0 ? populate(found.data, piece.length, to_write) : 0;
}

}  // namespace

ibv_mr* allocate_null_region(ibv_pd* pd) noexcept {
    return make_or_null([pd] {
        SharedRegion region;
        region.kind = SharedRegion::Kind::Null;
        region.size = std::numeric_limits<std::size_t>::max();
        region.null_bytes.resize(2 * std::size_t{roce::kNullBytes});
        roce::RegionRequest request{Pd::of(pd).id(), region.null_bytes};
        request.is_null = true;
        return make_region(pd, std::move(region), request);
    });
}

int advise(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* pieces,
           std::uint32_t count) noexcept {
    const bool is_known = advice == IBV_ADVISE_MR_ADVICE_PREFETCH || advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ||
                          advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
    if (!is_known) {
        return EOPNOTSUPP;
    }
    if ((flags & ~std::uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) != 0 || count == 0 || pieces == nullptr) {
        return EINVAL;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        const int reason = prefetch(pd, pieces[i], advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                                    advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT);
        if (reason != 0) {
            return reason;
        }
    }
    return 0;
}

ibv_mr* import_region(ibv_pd* pd, std::uint32_t handle) {
    auto mr = std::make_unique<Mr>();
    const std::lock_guard hold(adapter_of(pd->context).lock());
    mr->region = Context::of(pd->context).file->regions.find(handle);
    if (mr->region == nullptr || mr->region->key == Rkey{}) {
        return fail(ENOENT);
    }
    set_context(*mr, pd->context);
    mr->pd = pd;
    mr->length = mr->region->size;
    mr->handle = handle;
    mr->lkey = mr->region->key.value;
    mr->rkey = mr->region->kind == SharedRegion::Kind::Null ? 0 : mr->lkey;
    return mr.release();
}

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t bytes, int access) {
    return ibv_reg_mr_iova2(pd, address, bytes, reinterpret_cast<std::uintptr_t>(address),
                            static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova, int access) {
    return ibv_reg_mr_iova2(pd, address, bytes, iova, static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova, unsigned access) {
    return make_or_null([&] { return register_memory(pd, {address, bytes, iova, access}); });
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
    return fail(EOPNOTSUPP);
}

// If the change is refused, for whichever reason, the region is as it was.
int ibv_rereg_mr(ibv_mr* mr, int which, ibv_pd* pd, void* address, std::size_t bytes, int access) {
    const Change wanted{which, pd != nullptr, address, bytes, static_cast<unsigned>(access)};
    const int result = result_of([&]() -> int {
        const SharedRegion& region = *Mr::of(mr).region;
        if (!is_change(region.kind, wanted)) {
            errno = EINVAL;
            return IBV_REREG_MR_ERR_INPUT;
        }
        cairn::roce::RegionChange change;
        if ((which & IBV_REREG_MR_CHANGE_PD) != 0) {
            if (!is_of(mr->context, pd)) {
                errno = EINVAL;
                return IBV_REREG_MR_ERR_INPUT;
            }
            change.pd = Pd::of(pd).id();
        }
        const int reason = which == 0 ? EINVAL : judge_change(region, wanted, change);
        if (reason != 0) {
            return reason;
        }
        const std::lock_guard hold(adapter_of(mr->context).lock());
        return change_region(mr, pd, wanted, change);
    });
    if (result <= 0) {
        return result;
    }
    errno = result;
    return IBV_REREG_MR_ERR_CMD;
}

int ibv_dereg_mr(ibv_mr* mr) {
    {
        Adapter& adapter = adapter_of(mr->context);
        const std::lock_guard hold(adapter.lock());
        SharedRegion& region = *Mr::of(mr).region;
        if (!adapter.engine().destroy_region(region.key)) {
            return adapter.engine().memory().has_windows(region.key) ? EBUSY : EINVAL;
        }
        region.key = {};
        --region.user->users;
        if (region.memory != nullptr) {
            --region.memory->users;
        }
        Context::of(mr->context).file->regions.remove(mr->handle);
    }
    delete &Mr::of(mr);
    return 0;
}

void ibv_unimport_mr(ibv_mr* mr) {
    delete &Mr::of(mr);
}
