#include "lib/broker/ask_counters.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/monotonic_clock.hpp"
#include "lib/broker/users.hpp"

namespace cairn::broker {

namespace {

Error says_nothing(const Place& place) {
    return {fmt::format("the broker of UDP {} does not say what it counted", place.text()),
            "it may be busy or stopped, of another version or of another user"};
}

}  // namespace

// Asks the process that has the name. Any process may have bound it, so it has to be of this user, and its answer no
// longer than a broker's is.
Result<telemetry::CounterSnapshot<Counter>> ask_for_counters(const Place& place, Duration patience) {
    const Instant until = read_monotonic() + patience;
    const OwnedFd broker = connect_to(place, patience);
    if (!broker.is_open()) {
        return Error{fmt::format("no broker of UDP {} listens: {}", place.text(), std::strerror(errno)),
                     "it is there while programs have the address"};
    }
    if (geteuid() != 0 && !is_user(peer_of(broker.get()).uid, geteuid())) {
        return Error{fmt::format("the broker of UDP {} is another user's", place.text()), "ask as that user"};
    }
    if (!send_message(broker.get(), Look{}, {}, false)) {
        return says_nothing(place);
    }
    telemetry::CounterSnapshot<Counter> snapshot;
    Packet packet;
    for (std::size_t packets = 0; packets <= telemetry::kCounters<Counter>; ++packets) {
        const bool came =
            await(broker.get(), POLLIN, until) && receive_packet(broker.get(), packet, false) == Received::Packet;
        const std::optional<Message> said = came ? parse_message(packet.bytes) : std::nullopt;
        if (said && std::holds_alternative<Look>(*said)) {
            return snapshot;
        }
        const Counted* const counted = said ? std::get_if<Counted>(&*said) : nullptr;
        if (counted == nullptr) {
            return says_nothing(place);
        }
        snapshot.values[static_cast<std::size_t>(counted->counter)] = counted->value;
    }
    return says_nothing(place);
}

}  // namespace cairn::broker
