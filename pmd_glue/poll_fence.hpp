// PollFence: keeps memory mapped as long as a worker may be inside a driver that polls it.
//
// net_memif unmaps its peer's memory on DPDK's control thread as soon as the peer is gone, even under a worker that is
// reading it. That is a SIGSEGV now and then (DPDK 22.11). The driver clears its connected flag first, so that a
// worker's next poll is safe. The fence makes munmap() on the control thread wait until every worker has been outside
// the driver once: a grace period as in RCU (rte_rcu_qsbr). Other threads unmap memory of their own. They do not wait,
// since a worker may be waiting for them.
#pragma once

#include <cstdint>

struct rte_rcu_qsbr;

namespace cairn::pmd {

class PollFence {
public:
    static constexpr unsigned kMaxWorkers = 128;

    // Is made on the worker's thread, around its loop. A worker without a fence (tests of parts) delays no munmap().
    explicit PollFence(unsigned worker) noexcept;
    PollFence(const PollFence&) = delete;
    PollFence& operator=(const PollFence&) = delete;
    ~PollFence();

    // Marks the worker as outside the driver. Called once a turn. Costs a load and a store.
    void pass() noexcept;

    // Returns the number of grace periods that threads have waited for so far.
    [[nodiscard]] static std::uint64_t waits() noexcept;
    // Returns false under AddressSanitizer and ThreadSanitizer, which have a munmap() of their own.
    [[nodiscard]] static bool fences_munmap() noexcept;

private:
    unsigned worker_;
    rte_rcu_qsbr* qsbr_;
};

}  // namespace cairn::pmd
