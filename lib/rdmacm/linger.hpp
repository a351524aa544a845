// Requests for services that nobody listens to any more. Their listener ended a moment ago, and another may follow.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "lib/base/time.hpp"
#include "lib/cm/events.hpp"
#include "lib/cm/steering.hpp"

namespace cairn::rdmacm {

using Service = std::pair<cm::ServiceKind, wire::ServiceId>;

// Programs end a listener and make the next one at the same port while their peers connect already (perftest -R does,
// after a second's sleep). Pure: no I/O, no clock.
class Linger {
public:
    static constexpr Duration kFor = seconds(3);           // after its listener a service lingers
    static constexpr Duration kHolds = milliseconds(500);  // a request waits for a listener
    static constexpr std::size_t kMostHeld = 64;           // of a service

    // A listener ended, and the service does not linger yet.
    void begin(const Service& service, Instant now);
    [[nodiscard]] bool has(const Service& service) const noexcept;
    // Keeps the request, of a service that lingers. Returns false if it does not, or has too many.
    [[nodiscard]] bool hold(const Service& service, const cm::Event& request, Instant now);
    // Returns true if the service lingered, which is over now. Gives the requests that were held.
    [[nodiscard]] bool end(const Service& service, std::vector<cm::Event>& held);
    // What is over by `now`: requests that waited long enough, and services.
    struct Over {
        std::vector<cm::Event> requests{};
        std::vector<Service> services{};
    };
    [[nodiscard]] Over take_due(Instant now);
    [[nodiscard]] Instant next_deadline() const noexcept;

private:
    struct Held {
        Instant until;
        cm::Event request;
    };
    struct Ended {
        Service service;
        Instant until;
        std::deque<Held> held{};
    };
    [[nodiscard]] std::vector<Ended>::iterator find(const Service& service) noexcept;

    std::vector<Ended> ended_;
};

}  // namespace cairn::rdmacm
