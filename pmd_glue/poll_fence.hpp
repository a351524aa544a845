// PollFence: keeps memory mapped as long as a worker may be inside a driver that polls it.
//
// net_memif unmaps its peer's memory on DPDK's control thread as soon as the peer is gone, even under a worker that is
// reading it. That is a SIGSEGV now and then (DPDK 22.11). The driver clears its connected flag first, so that a
// worker's next poll is safe. The fence makes munmap() on the control thread wait until every worker has been outside
// the driver once: a grace period as in RCU (rte_rcu_qsbr). All other threads unmap memory of their own and wait for
// nobody, since a worker may be waiting for them.
#pragma once

#include <cstdint>

// 0 where munmap() does not wait, since it is a sanitizer's own.
#define CAIRN_FENCES_MUNMAP 1
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef CAIRN_FENCES_MUNMAP
#define CAIRN_FENCES_MUNMAP 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef CAIRN_FENCES_MUNMAP
#define CAIRN_FENCES_MUNMAP 0
#endif
#endif

struct rte_rcu_qsbr;

namespace cairn::pmd {

class PollFence {
public:
    static constexpr unsigned kMaxWorkers = 128;

    // Made on the worker's thread, around its loop. A worker without a fence (tests of parts) delays no munmap().
    explicit PollFence(unsigned worker) noexcept;
    PollFence(const PollFence&) = delete;
    PollFence& operator=(const PollFence&) = delete;
    ~PollFence();

    // Called once a turn, outside the driver. Costs a load and a store.
    void pass() noexcept;

    // The number of grace periods that threads have waited for so far.
    [[nodiscard]] static std::uint64_t waits() noexcept;

private:
    unsigned worker_;
    rte_rcu_qsbr* qsbr_;
};

}  // namespace cairn::pmd
