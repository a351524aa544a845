// Device memory: adapters have some of their own, which programs reach by copies. Here it is ordinary memory.
#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/memory_rules.hpp"
#include "lib/ibverbs/objects.hpp"

namespace cairn::ibverbs {

namespace {

// Finds the bytes. Memory that has ended has none. The copy itself needs no lock, as the program's own accesses do not.
[[nodiscard]] int find(ibv_dm* dm, std::uint64_t offset, std::size_t bytes, std::uint8_t*& out) noexcept {
    const std::lock_guard hold(adapter_of(dm->context).lock());
    const SharedMemory& memory = *Dm::of(dm).memory;
    const int reason = judge_device_copy(offset, bytes, memory.size);
    if (reason == 0) {
        out = memory.bytes.get() + offset;
    }
    return reason;
}

int copy_in(ibv_dm* dm, std::uint64_t offset, const void* from, std::size_t bytes) noexcept {
    std::uint8_t* to = nullptr;
    const int reason = find(dm, offset, bytes, to);
    if (reason == 0 && bytes != 0) {
        std::memcpy(to, from, bytes);
    }
    return reason;
}

int copy_out(void* to, ibv_dm* dm, std::uint64_t offset, std::size_t bytes) noexcept {
    std::uint8_t* from = nullptr;
    const int reason = find(dm, offset, bytes, from);
    if (reason == 0 && bytes != 0) {
        std::memcpy(to, from, bytes);
    }
    return reason;
}

std::unique_ptr<Dm> make_object(ibv_context* context, std::shared_ptr<SharedMemory> memory, std::uint32_t handle) {
    auto dm = std::make_unique<Dm>();
    set_context(*dm, context);
    dm->memcpy_to_dm = copy_in;
    dm->memcpy_from_dm = copy_out;
    dm->comp_mask = IBV_DM_MASK_HANDLE;
    dm->handle = handle;
    dm->memory = std::move(memory);
    return dm;
}

// Allocates zeros, as an adapter would not show the bytes that another program left.
[[nodiscard]] bool allocate(const ibv_alloc_dm_attr& wanted, SharedMemory& memory) noexcept {
    const std::size_t alignment = std::max(alignof(std::max_align_t), std::size_t{1} << wanted.log_align_req);
    const std::size_t room = (wanted.length + alignment - 1) / alignment * alignment;
    memory.bytes.reset(static_cast<std::uint8_t*>(std::aligned_alloc(alignment, room)));
    memory.size = wanted.length;
    if (memory.bytes != nullptr) {
        std::memset(memory.bytes.get(), 0, room);
    }
    return memory.bytes != nullptr;
}

}  // namespace

ibv_dm* allocate_device_memory(ibv_context* context, ibv_alloc_dm_attr* wanted) noexcept {
    return make_or_null([&]() -> ibv_dm* {
        auto dm = make_object(context, std::make_shared<SharedMemory>(), 0);
        OpenFile& file = *Context::of(context).file;
        const std::lock_guard hold(adapter_of(context).lock());
        const int reason = judge_device_memory(*wanted, file.device_memory_bytes);
        if (reason != 0 || !allocate(*wanted, *dm->memory)) {
            return fail(reason != 0 ? reason : ENOMEM);
        }
        dm->handle = ++file.last_handle;
        file.memories.add(dm->handle, dm->memory);
        file.device_memory_bytes += wanted->length;
        return dm.release();
    });
}

int free_device_memory(ibv_dm* dm) noexcept {
    {
        const std::lock_guard hold(adapter_of(dm->context).lock());
        SharedMemory& memory = *Dm::of(dm).memory;
        if (memory.users != 0 || memory.bytes == nullptr) {
            return memory.users != 0 ? EBUSY : EINVAL;
        }
        OpenFile& file = *Context::of(dm->context).file;
        file.device_memory_bytes -= memory.size;
        file.memories.remove(dm->handle);
        memory.bytes.reset();
        memory.size = 0;
    }
    delete &Dm::of(dm);
    return 0;
}

ibv_mr* register_device_memory(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t bytes,
                               unsigned access) noexcept {
    if (!is_of(pd->context, dm)) {
        return fail(EINVAL);
    }
    return make_or_null([&]() -> ibv_mr* {
        SharedRegion region;
        region.kind = SharedRegion::Kind::DeviceMemory;
        region.access = access;
        region.size = bytes;
        region.memory = Dm::of(dm).memory;
        const int reason = judge_device_registration(offset, bytes, region.memory->size, access);
        if (reason != 0) {
            return fail(reason);
        }
        std::uint8_t* const first = region.memory->bytes.get() + offset;
        const RegistrationJudgement judged = judge_registration({first, bytes, 0, access});
        return make_region(pd, std::move(region), {Pd::of(pd).id(), {first, bytes}, 0, judged.rights});
    });
}

ibv_dm* import_device_memory(ibv_context* context, std::uint32_t handle) {
    const std::lock_guard hold(adapter_of(context).lock());
    std::shared_ptr<SharedMemory> memory = Context::of(context).file->memories.find(handle);
    if (memory == nullptr || memory->bytes == nullptr) {
        return fail(ENOENT);
    }
    return make_object(context, std::move(memory), handle).release();
}

}  // namespace cairn::ibverbs

void ibv_unimport_dm(ibv_dm* dm) {
    delete &cairn::ibverbs::Dm::of(dm);
}
