#include "pmd_glue/poll_fence.hpp"

#include <rte_interrupts.h>
#include <rte_rcu_qsbr.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

#include "lib/base/assert.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAIRN_FENCES_MUNMAP 0
#elif defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CAIRN_FENCES_MUNMAP 0
#endif
#endif
#ifndef CAIRN_FENCES_MUNMAP
#define CAIRN_FENCES_MUNMAP 1
#endif

namespace cairn::pmd {

namespace {

std::atomic<rte_rcu_qsbr*> fence{nullptr};  // made at the first use, lives as long as the process
std::atomic<std::uint64_t> grace_periods{0};

rte_rcu_qsbr* made_fence() noexcept {
    static rte_rcu_qsbr* made = [] {
        const std::size_t bytes = rte_rcu_qsbr_get_memsize(PollFence::kMaxWorkers);
        auto* memory = static_cast<rte_rcu_qsbr*>(std::aligned_alloc(RTE_CACHE_LINE_SIZE, bytes));
        CAIRN_ASSERT(memory != nullptr);
        const int refused = rte_rcu_qsbr_init(memory, PollFence::kMaxWorkers);
        CAIRN_ASSERT(refused == 0);
        fence.store(memory, std::memory_order_release);
        return memory;
    }();
    return made;
}

[[maybe_unused]] void wait_for_workers() noexcept {
    rte_rcu_qsbr* current = fence.load(std::memory_order_acquire);
    if (current != nullptr && rte_thread_is_intr() != 0) {
        rte_rcu_qsbr_synchronize(current, RTE_QSBR_THRID_INVALID);
        grace_periods.fetch_add(1, std::memory_order_relaxed);
    }
}

}  // namespace

PollFence::PollFence(unsigned worker) noexcept : worker_(worker), qsbr_(made_fence()) {
    CAIRN_ASSERT(worker < kMaxWorkers);
    rte_rcu_qsbr_thread_register(qsbr_, worker_);
    rte_rcu_qsbr_thread_online(qsbr_, worker_);
}

PollFence::~PollFence() {
    rte_rcu_qsbr_thread_offline(qsbr_, worker_);
    rte_rcu_qsbr_thread_unregister(qsbr_, worker_);
}

void PollFence::pass() noexcept {
    rte_rcu_qsbr_quiescent(qsbr_, worker_);
}

std::uint64_t PollFence::waits() noexcept {
    return grace_periods.load(std::memory_order_relaxed);
}

bool PollFence::fences_munmap() noexcept {
    return CAIRN_FENCES_MUNMAP != 0;
}

}  // namespace cairn::pmd

#if CAIRN_FENCES_MUNMAP
// Replaces libc's munmap(), since it comes first in the search order of the drivers' libraries.
extern "C" __attribute__((visibility("default"))) int munmap(void* address, std::size_t bytes) noexcept {
    cairn::pmd::wait_for_workers();
    return static_cast<int>(syscall(SYS_munmap, address, bytes));
}
#endif
