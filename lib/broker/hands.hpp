// What the broker's decisions have done for them: the one place that acts is behind it.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/time.hpp"
#include "lib/broker/messages.hpp"

namespace cairn::broker {

using ClientId = Number<struct ClientIdTag, std::uint64_t>;  // of a connection; never used again

// None of these calls back.
class Hands {
public:
    enum class Opening : std::uint8_t { Open, Taken };
    enum class Growth : std::uint8_t {
        Grown,
        Hidden,   // the kernel has sockets of the address that the broker has not: it put the new one behind them
        Refused,  // no descriptor, no memory
    };

    virtual ~Hands() = default;
    // The time now. What the other functions do may take long.
    [[nodiscard]] virtual Instant read_clock() = 0;
    // Opens the first socket of the address. Taken: somebody else has the port.
    [[nodiscard]] virtual Opening open() = 0;
    // Opens one more, which the kernel steers to by its number: the next slot.
    [[nodiscard]] virtual Growth grow() = 0;
    // Keeps the sockets that a client brought, as far as there are none yet. Returns how many there are now. Nothing:
    // they are not this address's, or not the same as those that are there.
    [[nodiscard]] virtual std::optional<std::uint16_t> adopt(ClientId client) = 0;
    // Drops what waits in the slot's socket.
    virtual void drain(Slot slot) = 0;
    // False: there is no room, and the client is not told.
    [[nodiscard]] virtual bool send(ClientId client, const Message& message) = 0;
    // Sends copies of all sockets.
    [[nodiscard]] virtual bool send_sockets(ClientId client) = 0;
    // Hangs up. The client is not heard of again.
    virtual void end(ClientId client) = 0;
    // Sends the management datagram to its peer, from the address's queue pair 1.
    virtual void send_mad(const Will& will) = 0;
};

}  // namespace cairn::broker
