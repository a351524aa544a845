// A worker's turn.
#include <algorithm>
#include <span>

#include "lib/worker/worker.hpp"

namespace cairn::worker {

namespace {

// A burst of fewer packets is no sign of load: the packets that it asks for are sent before tenants take their turn.
constexpr std::size_t kFewPackets = 4;

}  // namespace

void Worker::wake_at(const Tenant& tenant, Instant due) noexcept {
    next_timed_ = Instant::never();
    for (Timed& each : timed_) {
        each.due = each.tenant == &tenant ? due : each.due;
        next_timed_ = std::min(next_timed_, each.due);
    }
}

// Goes by index, since a tenant may add others and set its own time anew.
bool Worker::call_due(Instant now) noexcept {
    bool worked = false;
    for (std::size_t i = 0; i < timed_.size(); ++i) {
        if (timed_[i].due <= now) {
            timed_[i].due = Instant::never();
            worked = timed_[i].tenant->on_turn(now) || worked;
        }
    }
    next_timed_ = Instant::never();
    for (const Timed& each : timed_) {
        next_timed_ = std::min(next_timed_, each.due);
    }
    return worked;
}

// Does not flush at once for a socket: it gets all packets of a turn together, since each batch is a system call.
bool Worker::take_in(Instant now) noexcept {
    now_ = now;
    if (sleep_.has_begun()) [[unlikely]] {
        sleep_.end();
    }
    bool worked = office_->box.take([this, now](Letter& letter) noexcept { letter.open(*this, now); });
    const std::size_t received = port_.receive_burst(burst_, now);
    if (received != 0) {
        engine_.on_packets(std::span(burst_).first(received), now);
        worked = true;
        if (received < kFewPackets && !can_wait_) {
            sender_.flush(now);
        }
    }
    engine_.on_timeout(now);
    if (next_timed_ <= now) [[unlikely]] {
        worked = call_due(now) || worked;
    }
    // Goes by index, since a tenant may add others.
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
        worked = (tenants_[i] != nullptr && tenants_[i]->on_turn(now)) || worked;
    }
    return worked;
}

void Worker::give_out(Instant now) noexcept {
    engine_.transmit(now);
    port_.on_timeout(now);
    sender_.flush(now);
    for (std::size_t i = 0; i < senders_.size(); ++i) {
        if (senders_[i] != nullptr) {
            senders_[i]->on_sent();
        }
    }
    if (any_left_) [[unlikely]] {
        forget_removed();
    }
}

std::optional<bool> Worker::try_turn(Instant now) noexcept {
    std::optional<bool> worked;
    // Repeats while there is mail: the sender of a letter may have found the baton taken and gone away.
    do {
        const BatonHold hold(baton_);
        if (!hold) {
            break;
        }
        worked = turn(now) || worked.value_or(false);
    } while (!office_->box.empty());
    return worked;
}

Instant Worker::next_deadline() const noexcept {
    if (sender_.queued() != 0 || !office_->box.empty()) {
        return Instant{};
    }
    Instant due = std::min({engine_.next_deadline(), port_.next_deadline(), next_timed_});
    for (const Tenant* const tenant : tenants_) {
        due = tenant == nullptr ? due : std::min(due, tenant->next_deadline());
    }
    return due;
}

}  // namespace cairn::worker
