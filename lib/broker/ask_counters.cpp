#include "lib/broker/ask_counters.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace cairn::broker {

// mutants: broker-ask-counters
Result<telemetry::CounterSnapshot<Counter>> ask_for_counters(const Place& place, Duration patience) {
    const OwnedFd broker = connect_to(place, patience);
    if (!broker.is_open() || !send_message(broker.get(), Look{}, {}, true)) {
        return Error{fmt::format("no broker of UDP {} listens: {}", place.text(), std::strerror(errno)),
                     "it is there while programs have the address"};
    }
    telemetry::CounterSnapshot<Counter> snapshot;
    Packet packet;
    for (;;) {
        const Received got = receive_packet(broker.get(), packet, true);
        const std::optional<Message> said = got == Received::Packet ? parse_message(packet.bytes) : std::nullopt;
        if (said && std::holds_alternative<Look>(*said)) {
            return snapshot;
        }
        const Counted* const counted = said ? std::get_if<Counted>(&*said) : nullptr;
        if (counted == nullptr) {
            return Error{fmt::format("the broker of UDP {} does not say what it counted", place.text()),
                         "it may be busy or stopped, of another version or of another user"};
        }
        snapshot.values[static_cast<std::size_t>(counted->counter)] = counted->value;
    }
}

}  // namespace cairn::broker
