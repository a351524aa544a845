// A tenant lives on a worker and takes part in its turns: an eRPC endpoint, a verbs device, the connections.
#pragma once

#include "lib/base/time.hpp"

namespace cairn::worker {

// The functions are called on the worker's thread, once a turn, never per packet. Packets reach a tenant by its queue
// pairs.
class Tenant {
public:
    Tenant() = default;
    Tenant(const Tenant&) = delete;
    Tenant& operator=(const Tenant&) = delete;

    // Does the work that follows from the turn's packets, and the work that is due. Called after the packets were
    // delivered. Returns true if it did something; the worker then looks for work again at once.
    virtual bool on_turn(Instant now) noexcept = 0;
    // Does work after the turn's packets were sent. Called if the tenant was added with OnTurnAndSent.
    virtual void on_sent() noexcept {}
    // Returns when on_turn() has something to do without a packet. A past time means at once; Instant::never() means
    // that there is nothing.
    [[nodiscard]] virtual Instant next_deadline() const noexcept = 0;

protected:
    ~Tenant() = default;
};

}  // namespace cairn::worker
