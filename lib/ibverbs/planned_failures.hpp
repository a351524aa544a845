// Failures that CAIRN_FAULTS plans and that the library acts out: of a queue pair, and of a port.
#pragma once

#include <memory>
#include <vector>

#include "lib/ibverbs/port_notices.hpp"
#include "lib/port/faults.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::ibverbs {

struct Qp;

// Part of an adapter that is to fail. At the planned time the oldest ready (RTR) queue pair fails. It goes to ERR, its
// requests are flushed, and its program gets IBV_EVENT_QP_FATAL; its peer hears no more of it. If none is ready by
// then, the next one that gets ready fails. While the port fails, packets in both directions are lost, and programs are
// notified that the port is down.
class PlannedFailures final : public worker::Tenant {
public:
    // Returns the planned failures of the adapter; nullptr if none is planned.
    [[nodiscard]] static std::shared_ptr<PlannedFailures> of(const std::shared_ptr<Adapter>& adapter,
                                                             const std::shared_ptr<PortNotices>& notices,
                                                             const port::Faults& faults);
    // For of() alone.
    PlannedFailures(std::shared_ptr<Adapter> adapter, std::shared_ptr<PortNotices> notices, const port::Faults& faults);
    ~PlannedFailures();

    // The rest needs the lock.
    // Notes that the queue pair has gone to RTR. Throws bad_alloc.
    void on_ready(Qp& qp);
    // Forgets a queue pair that goes back to RESET, or ends.
    void forget(const Qp& qp) noexcept;
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override;

private:
    void fail_first() noexcept;

    std::shared_ptr<Adapter> adapter_;
    std::shared_ptr<PortNotices> notices_;
    const port::Outage port_;
    Instant port_changes_at_ = Instant::never();  // the time when the port fails, or works again
    Instant queue_pair_at_ = Instant::never();    // never again, once one has failed
    bool port_fails_ = false;
    std::vector<Qp*> ready_;  // in the order in which they became so
    worker::Tenancy tenancy_;
};

}  // namespace cairn::ibverbs
