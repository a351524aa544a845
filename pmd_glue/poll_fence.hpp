// PollFence: keeps memory mapped for as long as a worker may be inside a driver that polls it.
//
// net_memif unmaps its peer's memory on DPDK's control thread as soon as the peer is gone, also under a worker
// that is just reading it: a SIGSEGV now and then (DPDK 22.11; the driver clears its connected flag first, so
// that a worker's next poll is safe). The fence makes munmap() wait, on the control thread, until every worker has
// been outside the driver once: a grace period as in RCU (rte_rcu_qsbr). All other threads unmap memory of their own,
// and a worker may be waiting for them: they wait for nobody.
#pragma once

#include <cstdint>

struct rte_rcu_qsbr;

namespace cairn::pmd {

class PollFence {
public:
    static constexpr unsigned kMaxWorkers = 128;

    // On the worker's thread, around its loop. Without one (tests of parts) munmap() does not wait.
    explicit PollFence(unsigned worker) noexcept;
    PollFence(const PollFence&) = delete;
    PollFence& operator=(const PollFence&) = delete;
    ~PollFence();

    // Once per turn, outside the driver. A load and a store.
    void pass() noexcept;

    // Grace periods waited for so far, by all threads.
    [[nodiscard]] static std::uint64_t waits() noexcept;

private:
    unsigned worker_;
    rte_rcu_qsbr* qsbr_;
};

}  // namespace cairn::pmd
