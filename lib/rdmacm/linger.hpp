// Requests for services whose listener ended a moment ago. Another listener may follow.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "lib/base/time.hpp"
#include "lib/cm/events.hpp"
#include "lib/cm/steering.hpp"

namespace cairn::rdmacm {

using Service = std::pair<cm::ServiceKind, wire::ServiceId>;

// Keeps such requests for the next listener. Programs end a listener and make the next one at the same port while their
// peers connect already (perftest -R does, after a second's sleep). Pure: no I/O, no clock.
class Linger {
public:
    static constexpr Duration kFor = seconds(3);           // time for which a service lingers after its listener ended
    static constexpr Duration kHolds = milliseconds(500);  // time for which a request waits for a listener
    static constexpr std::size_t kMostHeld = 64;           // of a service

    // Makes the service linger, as its listener ended. It does not linger yet.
    void begin(const Service& service, Instant now);
    [[nodiscard]] bool has(const Service& service) const noexcept;
    // Keeps the request if its service lingers. Returns false if it does not, or has too many.
    [[nodiscard]] bool hold(const Service& service, const cm::Event& request, Instant now);
    // Ends the lingering of the service. Returns true if it lingered. Writes the requests that were kept to `held`.
    [[nodiscard]] bool end(const Service& service, std::vector<cm::Event>& held);
    // The requests and services that are over by `now`: the requests waited long enough, the services lingered long
    // enough.
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
