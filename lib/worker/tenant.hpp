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

    // Called after the turn's packets were delivered. Does what follows from them and what is due. Returns true if it
    // did something; the worker then looks for work again at once.
    virtual bool on_turn(Instant now) noexcept = 0;
    // Called after the turn's packets were sent, if the tenant was added with OnTurnAndSent.
    virtual void on_sent() noexcept {}
    // Returns when on_turn() has something to do without a packet. A past time means at once; Instant::never() means
    // that there is nothing.
    [[nodiscard]] virtual Instant next_deadline() const noexcept = 0;

protected:
    ~Tenant() = default;
};

}  // namespace cairn::worker
