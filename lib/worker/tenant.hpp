// What lives on a worker and takes part in its turns: an eRPC endpoint, a verbs device, the connections.
#pragma once

#include "lib/base/time.hpp"

namespace cairn::worker {

// Called on the worker's thread, once per turn, never per packet. Packets reach a tenant by the queue pairs it has.
class Tenant {
public:
    Tenant() = default;
    Tenant(const Tenant&) = delete;
    Tenant& operator=(const Tenant&) = delete;

    // What came is delivered: does what follows from it, and what is due. True: it did something, so that the worker
    // looks again at once.
    virtual bool on_turn(Instant now) noexcept = 0;
    // What this turn sends is on its way. Called where the worker was asked to.
    virtual void on_sent() noexcept {}
    // When on_turn() has something to do though no packet came: the past when at once, Instant::never() without.
    [[nodiscard]] virtual Instant next_deadline() const noexcept = 0;

protected:
    ~Tenant() = default;
};

}  // namespace cairn::worker
