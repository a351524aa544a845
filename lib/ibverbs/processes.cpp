// What programs ask for around fork(), and to share objects between parts of a process.
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/objects.hpp"

using namespace cairn::ibverbs;

// Nothing is pinned, so that fork() harms nothing.
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
ibv_context* ibv_import_device(int) {
    return fail(EOPNOTSUPP);
}

ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) {
    return fail(EOPNOTSUPP);
}

void ibv_unimport_pd(ibv_pd*) {}

ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) {
    return fail(EOPNOTSUPP);
}

void ibv_unimport_mr(ibv_mr*) {}

ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) {
    return fail(EOPNOTSUPP);
}

void ibv_unimport_dm(ibv_dm*) {}
