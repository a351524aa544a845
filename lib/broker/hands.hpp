// The actions by which the broker's decisions are carried out. One class implements them, and does all I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/time.hpp"
#include "lib/broker/messages.hpp"

namespace cairn::broker {

using ClientId = Number<struct ClientIdTag, std::uint64_t>;  // of a connection; never used again

// None of these functions calls back.
class Hands {
public:
    enum class Opening : std::uint8_t { Open, Taken };
    enum class Growth : std::uint8_t {
        Grown,
        Hidden,   // the kernel has sockets of the address that the broker has not: it put the new one after them
        Refused,  // no descriptor, no memory
    };

    virtual ~Hands() = default;
    // Returns the time. The other functions may take long.
    [[nodiscard]] virtual Instant read_clock() = 0;
    // Opens the first socket of the address. Taken: another process has the port.
    [[nodiscard]] virtual Opening open() = 0;
    // Opens one more socket, to which the kernel steers by its number: the next slot.
    [[nodiscard]] virtual Growth grow() = 0;
    // Keeps the sockets that a client brought, except those that are there already. Returns how many there are now.
    // Returns nullopt if they are not this address's, or differ from those that are there.
    [[nodiscard]] virtual std::optional<std::uint16_t> adopt(ClientId client) = 0;
    // Drops the datagrams that wait in the slot's socket.
    virtual void drain(Slot slot) = 0;
    // Sends the message. Returns false if there is no room; the client does not get it then.
    [[nodiscard]] virtual bool send(ClientId client, const Message& message) = 0;
    // Sends copies of all sockets.
    [[nodiscard]] virtual bool send_sockets(ClientId client) = 0;
    // Closes the connection. There are no more events of this client.
    virtual void end(ClientId client) = 0;
    // Sends the management datagram to its peer, from the address's queue pair 1.
    virtual void send_mad(const Will& will) = 0;
};

}  // namespace cairn::broker
