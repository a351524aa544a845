// A world's part in the turns of a simulated worker: its users act between the arrival of packets and the departure of
// theirs.
#pragma once

#include <functional>
#include <utility>

#include "lib/worker/worker.hpp"

namespace cairn::sim {

class Actor final : public worker::Tenant {
public:
    using Act = std::function<void()>;

    // Joins the worker behind its present tenants. `act` is called each turn. `sent` is called once the turn's packets
    // are on their way.
    Actor(worker::Worker& worker, Act act, Act sent = {})
        : act_(std::move(act)),
          sent_(std::move(sent)),
          tenancy_(worker.add(*this, worker::Worker::Calls::OnTurnAndSent)) {}

    bool on_turn(Instant) noexcept override {
        act_();
        return false;
    }
    void on_sent() noexcept override {
        if (sent_) {
            sent_();
        }
    }
    // No deadline: the world knows by itself when it acts.
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }

private:
    Act act_;
    Act sent_;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::sim
