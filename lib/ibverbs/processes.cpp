// Functions around fork(), and for sharing objects between parts of a process.
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/objects.hpp"
#include "lib/ibverbs/uncancelled.hpp"

using namespace cairn::ibverbs;

// No memory is pinned, so fork() harms none.
int ibv_fork_init(void) {
    return 0;
}

ibv_fork_status ibv_is_fork_initialized(void) {
    return IBV_FORK_UNNEEDED;
}

extern "C" {

int ibv_dontfork_range(void*, std::size_t) {
    return 0;
}

int ibv_dofork_range(void*, std::size_t) {
    return 0;
}
}

// Contexts of other processes cannot be shared: their memory is not ours.
ibv_context* ibv_import_device(int cmd_fd) {
    const NoCancellation whole;
    return make_or_null([cmd_fd] { return import_context(cmd_fd); });
}

ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
    return make_or_null([&] { return import_domain(context, handle); });
}

ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
    return make_or_null([&] { return import_region(pd, handle); });
}

ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
    return make_or_null([&] { return import_device_memory(context, handle); });
}
