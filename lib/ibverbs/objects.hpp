// What lies behind the structures of verbs.h that programs hold: each begins with the public structure, and is reached
// from it by a cast. The adapter's lock guards what is not public.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <mutex>

#include "lib/ibverbs/adapter.hpp"
#include "lib/ibverbs/async_events.hpp"
#include "lib/ibverbs/device.hpp"

namespace cairn::ibverbs {

// An opened device: a view of the adapter.
struct Context : verbs_context {
    std::shared_ptr<Adapter> adapter;
    const Device* of_device = nullptr;
    AsyncEvents events{};

    [[nodiscard]] static Context& of(ibv_context* context) noexcept {
        return *static_cast<Context*>(verbs_get_ctx(context));
    }
};
[[nodiscard]] inline Adapter& adapter_of(ibv_context* context) noexcept {
    return *Context::of(context).adapter;
}

// `users` counts the objects that were made with one: it does not end before them (EBUSY).
struct Pd : ibv_pd {
    roce::Pd id{};
    std::uint32_t users = 0;

    [[nodiscard]] static Pd& of(ibv_pd* pd) noexcept { return *static_cast<Pd*>(pd); }
};

struct Mr : ibv_mr {
    Rkey key{};

    [[nodiscard]] static Mr& of(ibv_mr* mr) noexcept { return *static_cast<Mr*>(mr); }
};

// A way to a host or group, pinned.
struct Ah : ibv_ah {
    port::Path* path = nullptr;

    [[nodiscard]] static Ah& of(ibv_ah* ah) noexcept { return *static_cast<Ah*>(ah); }
};

}  // namespace cairn::ibverbs
