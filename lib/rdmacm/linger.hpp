// Requests for services that nobody listens to any more. Their listener ended a moment ago, and another may follow.
#pragma once

#include <utility>
#include <vector>

#include "lib/base/time.hpp"
#include "lib/cm/events.hpp"
#include "lib/cm/steering.hpp"

namespace cairn::rdmacm {

using Service = std::pair<cm::ServiceKind, wire::ServiceId>;

// Programs end a listener and make the next one at the same port while their peers connect already (perftest -R does).
// Pure: no I/O, no clock.
class Linger {
public:
    static constexpr Duration kFor = milliseconds(500);
    static constexpr std::size_t kMostHeld = 64;  // of a service

    // A listener ended.
    void begin(const Service& service, Instant now);
    // Keeps the request, of a service that lingers. Returns false if it does not, or has too many.
    [[nodiscard]] bool hold(const Service& service, const cm::Event& request);
    // Returns true if the service lingered, which is over now. Gives the requests that were held.
    [[nodiscard]] bool end(const Service& service, std::vector<cm::Event>& held);
    // Returns a service whose time is over, if there is one.
    [[nodiscard]] const Service* find_due(Instant now) const noexcept;
    [[nodiscard]] Instant next_deadline() const noexcept;

private:
    struct Ended {
        Service service;
        Instant until;
        std::vector<cm::Event> held{};
    };
    std::vector<Ended> ended_;  // the first ends first
};

}  // namespace cairn::rdmacm
