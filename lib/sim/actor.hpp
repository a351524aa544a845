// Runs a world's part in the turns of a simulated worker. Its users act after packets arrive and before theirs depart.
#pragma once

#include <functional>
#include <utility>

#include "lib/worker/worker.hpp"

namespace cairn::sim {

class Actor final : public worker::Tenant {
public:
    using Act = std::function<void()>;

    // Joins the worker after its present tenants. `act` is called each turn. `sent` is called once the turn's packets
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
    // Returns no deadline: the world itself knows when it acts.
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }

private:
    Act act_;
    Act sent_;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::sim
