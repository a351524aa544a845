#include "lib/ibverbs/planned_failures.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lib/base/assert.hpp"
#include "lib/ibverbs/of_process.hpp"
#include "lib/ibverbs/qp.hpp"

namespace cairn::ibverbs {

std::shared_ptr<PlannedFailures> PlannedFailures::of(const std::shared_ptr<Adapter>& adapter,
                                                     const std::shared_ptr<PortNotices>& notices,
                                                     const port::Faults& faults) {
    if (!faults.port.happens() && faults.queue_pair >= port::Outage::kNever) {
        return nullptr;
    }
    return OfProcess<OfAdapters<PlannedFailures>>::get().of(
        *adapter, [&] { return std::make_shared<PlannedFailures>(adapter, notices, faults); });
}

PlannedFailures::PlannedFailures(std::shared_ptr<Adapter> adapter, std::shared_ptr<PortNotices> notices,
                                 const port::Faults& faults)
    : adapter_(std::move(adapter)), notices_(std::move(notices)), port_(faults.port) {
    const std::lock_guard hold(adapter_->lock());
    const Instant now = adapter_->now();
    port_changes_at_ = now + port_.begin;
    queue_pair_at_ = now + faults.queue_pair;
    tenancy_ = adapter_->worker().add(*this);
    adapter_->settle();  // the helper may sleep for longer
}

PlannedFailures::~PlannedFailures() {
    const std::lock_guard hold(adapter_->lock());
    tenancy_.leave();
}

void PlannedFailures::on_ready(Qp& qp) {
    if (queue_pair_at_ != Instant::never() && std::find(ready_.begin(), ready_.end(), &qp) == ready_.end()) {
        ready_.push_back(&qp);
    }
}

void PlannedFailures::forget(const Qp& qp) noexcept {
    std::erase(ready_, &qp);
}

bool PlannedFailures::on_turn(Instant now) noexcept {
    const bool is_edge = now >= port_changes_at_;
    if (is_edge) {
        port_fails_ = !port_fails_;
        port_changes_at_ = port_fails_ ? port_changes_at_ + port_.length : Instant::never();
        notices_->on_failure(port_fails_);
    }
    const bool fails = now >= queue_pair_at_ && !ready_.empty();
    if (fails) {
        fail_first();
    }
    return is_edge || fails;
}

void PlannedFailures::fail_first() noexcept {
    Qp& qp = *ready_.front();
    queue_pair_at_ = Instant::never();
    ready_.clear();
    constexpr auto kTo = roce::QpState::Err;
    const auto refused =
        qp.is_datagrams() ? qp.datagrams->modify(kTo, {}, {}) : adapter_->engine().modify(*qp.connection, kTo, {}, {});
    CAIRN_ASSERT(!refused);
    wake(qp, adapter_->engine());
    qp.tell(roce::QpEvent::Fatal);
}

Instant PlannedFailures::next_deadline() const noexcept {
    return std::min(port_changes_at_, ready_.empty() ? Instant::never() : queue_pair_at_);
}

}  // namespace cairn::ibverbs
