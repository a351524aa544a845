// Protection domains, and parent domains over them.
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/objects.hpp"

namespace cairn::ibverbs {

ibv_td* allocate_thread_domain(ibv_context* context, ibv_td_init_attr* wanted) noexcept {
    if (wanted->comp_mask != 0) {
        return fail(EINVAL);
    }
    return make_or_null([context]() -> ibv_td* {
        auto td = std::make_unique<Td>();
        set_context(*td, context);
        return td.release();
    });
}

int free_thread_domain(ibv_td* td) noexcept {
    {
        const std::lock_guard hold(adapter_of(td->context).lock());
        if (Td::of(td).users != 0) {
            return EBUSY;
        }
    }
    delete &Td::of(td);
    return 0;
}

// Objects that are made with it belong to the domain that it is made of. The program's allocators are for buffers that
// an adapter shares with the program: here there are none.
ibv_pd* allocate_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* wanted) noexcept {
    constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    if (wanted->pd == nullptr || (wanted->comp_mask & ~kKnown) != 0 || !is_of(context, wanted->pd) ||
        !is_of(context, wanted->td)) {
        return fail(EINVAL);
    }
    return make_or_null([&]() -> ibv_pd* {
        auto pd = std::make_unique<Pd>();
        Pd& base = Pd::of(wanted->pd);
        const std::lock_guard hold(adapter_of(context).lock());
        set_context(*pd, context);
        pd->handle = base.handle;
        pd->domain = base.domain;
        pd->base = &base;
        ++base.users;
        if (wanted->td != nullptr) {
            pd->thread = &Td::of(wanted->td);
            ++pd->thread->users;
        }
        return pd.release();
    });
}

ibv_pd* import_domain(ibv_context* context, std::uint32_t handle) {
    auto pd = std::make_unique<Pd>();
    const std::lock_guard hold(adapter_of(context).lock());
    pd->domain = Context::of(context).file->domains.find(handle);
    if (pd->domain == nullptr || pd->id() == roce::Pd{}) {
        return fail(ENOENT);
    }
    set_context(*pd, context);
    pd->handle = handle;
    return pd.release();
}

namespace {

// Needs the lock. Returns an errno value.
[[nodiscard]] int end_domain(Pd& pd) noexcept {
    if (pd.users != 0) {
        return EBUSY;
    }
    if (pd.base != nullptr) {
        --pd.base->users;
        if (pd.thread != nullptr) {
            --pd.thread->users;
        }
        return 0;
    }
    if (pd.id() == roce::Pd{}) {
        return EINVAL;
    }
    if (!adapter_of(pd.context).engine().destroy_pd(pd.id())) {
        return EBUSY;
    }
    pd.domain->id = {};
    Context::of(pd.context).file->domains.remove(pd.handle);
    return 0;
}

}  // namespace

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

ibv_pd* ibv_alloc_pd(ibv_context* context) {
    return make_or_null([context]() -> ibv_pd* {
        auto pd = std::make_unique<Pd>();
        set_context(*pd, context);
        pd->domain = std::make_shared<SharedDomain>();
        OpenFile& file = *Context::of(context).file;
        const std::lock_guard hold(adapter_of(context).lock());
        pd->handle = ++file.last_handle;
        file.domains.add(pd->handle, pd->domain);
        pd->domain->id = adapter_of(context).engine().create_pd();
        return pd.release();
    });
}

int ibv_dealloc_pd(ibv_pd* pd) {
    {
        const std::lock_guard hold(adapter_of(pd->context).lock());
        const int reason = end_domain(Pd::of(pd));
        if (reason != 0) {
            return reason;
        }
    }
    delete &Pd::of(pd);
    return 0;
}

// Objects that were made with the domain point to it, so it stays for them.
void ibv_unimport_pd(ibv_pd* pd) {
    bool in_use = false;
    {
        const std::lock_guard hold(adapter_of(pd->context).lock());
        in_use = Pd::of(pd).users != 0;
    }
    if (!in_use) {
        delete &Pd::of(pd);
    }
}
