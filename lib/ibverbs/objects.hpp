// The structures that programs hold by verbs.h, with our parts: each begins with the public structure, and is reached
// from it by a cast. The adapter's lock guards the members that are not public.
#pragma once

#include <infiniband/verbs.h>

#include <list>
#include <memory>
#include <mutex>

#include "lib/ibverbs/adapter.hpp"
#include "lib/ibverbs/async_events.hpp"
#include "lib/ibverbs/device.hpp"
#include "lib/ibverbs/in_use.hpp"
#include "lib/ibverbs/open_file.hpp"
#include "lib/ibverbs/planned_failures.hpp"
#include "lib/ibverbs/port_notices.hpp"

namespace cairn::ibverbs {

struct Cq;
struct Qp;

// An opened device: a view of the adapter. It lives until it is closed and its last object has ended: see
// set_context().
struct Context : verbs_context, std::enable_shared_from_this<Context> {
    Context() noexcept : verbs_context{} {}
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context();

    std::shared_ptr<Adapter> adapter;
    const Device* of_device = nullptr;
    std::shared_ptr<OpenFile> file;  // the file of cmd_fd; imported contexts have it, too
    std::shared_ptr<PortNotices> port;
    std::shared_ptr<PlannedFailures> failures;  // nullptr: none
    AsyncEvents events{};
    // Events of the port, by kind: the program gets them in the order in which they came.
    AsyncSource port_active{};
    AsyncSource port_error{};
    AsyncSource gid_change{};
    std::list<Qp*> queue_pairs{};        // that have not ended
    std::list<Cq*> completion_queues{};  // that have not ended
    std::shared_ptr<Context> opened{};   // itself, until it is closed

    [[nodiscard]] static Context& of(ibv_context* context) noexcept {
        return *static_cast<Context*>(verbs_get_ctx(context));
    }
};
[[nodiscard]] inline Adapter& adapter_of(ibv_context* context) noexcept {
    return *Context::of(context).adapter;
}

// Our part of every object. Programs may end objects of a device that they have closed.
struct OfContext {
    std::shared_ptr<Context> kept{};
};
template <class Object>
void set_context(Object& object, ibv_context* context) noexcept {
    object.context = context;
    object.kept = Context::of(context).shared_from_this();
}

// The place of an object in a list of its context. It has its node, so that joining the list cannot fail.
template <class Object>
class Place {
public:
    explicit Place(Object& of) : own_{&of}, at_(own_.begin()) {}
    void join(std::list<Object*>& all) noexcept { all.splice(all.end(), own_); }
    void leave(std::list<Object*>& all) noexcept { own_.splice(own_.end(), all, at_); }

private:
    std::list<Object*> own_;
    typename std::list<Object*>::iterator at_;
};

// Waits until the program acknowledged all events of an object of verbs.h that it got. The object's own mutex guards
// the count. Does not wait in a child of fork(). The parent's events are not acknowledged there, and a thread of the
// parent may have held the mutex.
template <class Object>
void await_acknowledged(Object& object, const std::uint32_t& acknowledged, std::uint32_t given) {
    if (!InUse::has(adapter_of(object.context))) {
        return;
    }
    pthread_mutex_lock(&object.mutex);
    while (acknowledged != given) {
        pthread_cond_wait(&object.cond, &object.mutex);
    }
    pthread_mutex_unlock(&object.mutex);
}

// Returns whether the objects are of one adapter, so that one lock guards both. nullptr goes with all.
template <class Object>
[[nodiscard]] bool is_of(ibv_context* context, const Object* object) noexcept {
    return object == nullptr || object->context == context || &adapter_of(object->context) == &adapter_of(context);
}

// A thread domain, which allows programs to leave a thread's objects unlocked. Here all of them are locked.
struct Td : ibv_td, OfContext {
    std::uint32_t users = 0;  // parent domains

    [[nodiscard]] static Td& of(ibv_td* td) noexcept { return *static_cast<Td*>(td); }
};

// Stands for a protection domain of the engine. Others may stand for it, too: a parent domain over it, or an imported
// one. `users` counts the objects that were made with this one: it does not end before them (EBUSY).
struct Pd : ibv_pd, OfContext {
    std::shared_ptr<SharedDomain> domain;
    std::uint32_t users = 0;
    Pd* base = nullptr;  // of a parent domain: the domain that it was made of
    Td* thread = nullptr;

    [[nodiscard]] roce::Pd id() const noexcept { return domain->id; }
    [[nodiscard]] static Pd& of(ibv_pd* pd) noexcept { return *static_cast<Pd*>(pd); }
};

// Device memory.
struct Dm : ibv_dm, OfContext {
    std::shared_ptr<SharedMemory> memory;

    [[nodiscard]] static Dm& of(ibv_dm* dm) noexcept { return *static_cast<Dm*>(dm); }
};

// Stands for a region of the engine. So does an imported one.
struct Mr : ibv_mr, OfContext {
    std::shared_ptr<SharedRegion> region;

    [[nodiscard]] static Mr& of(ibv_mr* mr) noexcept { return *static_cast<Mr*>(mr); }
};

// Makes a region as `wanted` says, and its object. Returns nullptr, with errno: EINVAL, ENOMEM.
[[nodiscard]] ibv_mr* make_region(ibv_pd* pd, SharedRegion&& wanted, const roce::RegionRequest& request);
// Import an object of the context's file, or of the domain's. They return nullptr, with errno: ENOENT.
[[nodiscard]] ibv_pd* import_domain(ibv_context* context, std::uint32_t handle);
[[nodiscard]] ibv_mr* import_region(ibv_pd* pd, std::uint32_t handle);
[[nodiscard]] ibv_dm* import_device_memory(ibv_context* context, std::uint32_t handle);
// Opens the device of a descriptor once more. Returns nullptr, with errno.
[[nodiscard]] ibv_context* import_context(int cmd_fd);

// A path to a host or group, pinned.
struct Ah : ibv_ah, OfContext {
    port::Path* path = nullptr;

    [[nodiscard]] static Ah& of(ibv_ah* ah) noexcept { return *static_cast<Ah*>(ah); }
};

}  // namespace cairn::ibverbs
