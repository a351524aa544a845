// Protection domains and memory regions.
#include <sys/mman.h>
#include <unistd.h>

#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/memory_faults.hpp"
#include "lib/ibverbs/objects.hpp"
#include "lib/ibverbs/translate.hpp"

namespace cairn::ibverbs {

namespace {

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22;
constexpr int MADV_POPULATE_WRITE = 23;
#endif

// Makes the pages present, as an adapter does that pins them. Returns EFAULT if some are not mapped, or not writable
// where they are to be; else 0. Kernels before 5.14 cannot say.
[[nodiscard]] int populate(void* address, std::size_t bytes, bool writable) noexcept {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(address) & ~(page - 1);
    const auto end = (reinterpret_cast<std::uintptr_t>(address) + bytes + page - 1) & ~(page - 1);
    if (end < first) {
        return EFAULT;
    }
    if (madvise(reinterpret_cast<void*>(first), end - first, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ==
        0) {
        return 0;
    }
    return errno == ENOMEM || errno == EFAULT ? EFAULT : 0;
}

ibv_mr* register_memory(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t base, unsigned access) {
    const auto rights = to_rights(access);
    if (!rights) {
        return fail(EINVAL);
    }
    const bool on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
    if (bytes != 0 && !on_demand && populate(address, bytes, rights->cover(roce::Right::LocalWrite)) != 0) {
        return fail(EFAULT);
    }
    catch_memory_faults();
    auto mr = std::make_unique<Mr>();
    Adapter& adapter = adapter_of(pd->context);
    const std::lock_guard hold(adapter.lock());
    const Result<Rkey> key =
        adapter.engine().register_region({Pd::of(pd).id, {static_cast<std::uint8_t*>(address), bytes}, base, *rights});
    if (!key.ok()) {
        return fail(adapter.engine().memory().regions_in_use() == roce::kMaxRegions ? ENOMEM : EINVAL);
    }
    mr->context = pd->context;
    mr->pd = pd;
    mr->addr = address;
    mr->length = bytes;
    mr->key = key.value();
    mr->handle = mr->lkey = mr->rkey = key.value().value;
    ++Pd::of(pd).users;
    return mr.release();
}

}  // namespace

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

ibv_pd* ibv_alloc_pd(ibv_context* context) {
    return make_or_null([&]() -> ibv_pd* {
        auto pd = std::make_unique<Pd>();
        pd->context = context;
        const std::lock_guard hold(adapter_of(context).lock());
        pd->id = adapter_of(context).engine().create_pd();
        pd->handle = pd->id.value;
        return pd.release();
    });
}

int ibv_dealloc_pd(ibv_pd* pd) {
    {
        Adapter& adapter = adapter_of(pd->context);
        const std::lock_guard hold(adapter.lock());
        if (Pd::of(pd).users != 0 || !adapter.engine().destroy_pd(Pd::of(pd).id)) {
            return EBUSY;
        }
    }
    delete &Pd::of(pd);
    return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t bytes, int access) {
    const auto flags = static_cast<unsigned>(access);
    const bool from_zero = (flags & IBV_ACCESS_ZERO_BASED) != 0;
    return make_or_null([&] {
        return register_memory(pd, address, bytes, from_zero ? 0 : reinterpret_cast<std::uintptr_t>(address), flags);
    });
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova, int access) {
    return make_or_null([&] { return register_memory(pd, address, bytes, iova, static_cast<unsigned>(access)); });
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t bytes, std::uint64_t iova, unsigned access) {
    return make_or_null([&] { return register_memory(pd, address, bytes, iova, access); });
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
    return fail(EOPNOTSUPP);
}

int ibv_rereg_mr(ibv_mr* mr, int which, ibv_pd* pd, void* address, std::size_t bytes, int access) {
    return result_of([&]() -> int {
        cairn::roce::RegionChange change;
        if ((which & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) {
            return IBV_REREG_MR_ERR_INPUT;
        }
        if ((which & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
            change.rights = to_rights(static_cast<unsigned>(access));
            if (!change.rights) {
                return IBV_REREG_MR_ERR_INPUT;
            }
        }
        if ((which & IBV_REREG_MR_CHANGE_PD) != 0) {
            change.pd = Pd::of(pd).id;
        }
        if ((which & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
            if (bytes != 0 && populate(address, bytes, false) != 0) {
                return IBV_REREG_MR_ERR_INPUT;
            }
            change.translation = {
                {static_cast<std::uint8_t*>(address), bytes}, reinterpret_cast<std::uintptr_t>(address), false};
        }
        Adapter& adapter = adapter_of(mr->context);
        const std::lock_guard hold(adapter.lock());
        const cairn::Result<cairn::Rkey> key = adapter.engine().reregister_region(Mr::of(mr).key, change);
        if (!key.ok()) {
            errno = EINVAL;
            return IBV_REREG_MR_ERR_CMD;
        }
        Mr::of(mr).key = key.value();
        mr->lkey = mr->rkey = key.value().value;
        if (change.pd) {
            --Pd::of(mr->pd).users;
            ++Pd::of(pd).users;
            mr->pd = pd;
        }
        if (change.translation) {
            mr->addr = address;
            mr->length = bytes;
        }
        return 0;
    });
}

int ibv_dereg_mr(ibv_mr* mr) {
    {
        Adapter& adapter = adapter_of(mr->context);
        const std::lock_guard hold(adapter.lock());
        if (!adapter.engine().destroy_region(Mr::of(mr).key)) {
            return adapter.engine().memory().has_windows(Mr::of(mr).key) ? EBUSY : EINVAL;
        }
        --Pd::of(mr->pd).users;
    }
    delete &Mr::of(mr);
    return 0;
}
