// A worker's turn.
#include <algorithm>
#include <span>

#include "lib/worker/worker.hpp"

namespace cairn::worker {

bool Worker::turn(Instant now) noexcept {
    if (slept_) [[unlikely]] {
        slept_ = false;
        office().wakeup->end_sleep();
    }
    bool worked = office().box.take([this, now](Letter& letter) noexcept { letter.open(*this, now); });
    const std::size_t received = port_.receive_burst(burst_, now);
    if (received != 0) {
        engine_.on_packets(std::span(burst_).first(received), now);
        worked = true;
    }
    engine_.on_timeout(now);
    // By index: a tenant may bring others.
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
        worked = (tenants_[i] != nullptr && tenants_[i]->on_turn(now)) || worked;
    }
    engine_.transmit(now);
    port_.on_timeout(now);
    sender_.flush(now);
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
        if (tenants_[i] != nullptr) {
            tenants_[i]->on_sent();
        }
    }
    if (any_left_) [[unlikely]] {
        forget_removed();
    }
    return worked;
}

std::optional<bool> Worker::try_turn(Instant now) noexcept {
    const BatonHold hold(baton_);
    return hold ? std::optional(turn(now)) : std::nullopt;
}

Instant Worker::next_deadline() const noexcept {
    if (sender_.queued() != 0 || !office().box.empty()) {
        return Instant{};
    }
    Instant due = std::min(engine_.next_deadline(), port_.next_deadline());
    for (const Tenant* const tenant : tenants_) {
        due = tenant == nullptr ? due : std::min(due, tenant->next_deadline());
    }
    return due;
}

}  // namespace cairn::worker
