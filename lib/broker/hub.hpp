// Hub: what the broker of an address knows and decides. It uses no I/O, clock or chance.
#pragma once

#include <map>
#include <optional>

#include "lib/broker/counters.hpp"
#include "lib/broker/messages.hpp"
#include "lib/broker/slots.hpp"

namespace cairn::broker {

using ClientId = Number<struct ClientIdTag, std::uint64_t>;  // of a connection; never used again

// What the hub has done for it. None of these calls it back.
class Hands {
public:
    enum class Opening : std::uint8_t { Open, Taken };
    enum class Growth : std::uint8_t {
        Grown,
        Hidden,   // the kernel has sockets of the address that the broker has not: it put the new one behind them
        Refused,  // no descriptor, no memory
    };

    virtual ~Hands() = default;
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
};

struct HubConfig {
    Duration silence = seconds(2);         // the longest from a connection's begin to its slot
    Duration patience = seconds(1);        // the longest that a program waits for others that have the address
    Duration again = milliseconds(20);     // how often a program that waits is looked at
    Duration rest = seconds(1);            // of a slot that became free, if there may be more sockets
    Duration idle = seconds(2);            // without a connection; then the broker is over
    std::uint16_t sockets = kMostSockets;  // at most; [2, kMostSockets]
    std::uint16_t strangers = 64;          // connections without a slot
};

class Hub {
public:
    // `hands` outlive the hub.
    Hub(Hands& hands, const HubConfig& config, Instant now) noexcept
        : hands_(hands), config_(config), idle_since_(now) {}
    Hub(const Hub&) = delete;
    Hub& operator=(const Hub&) = delete;

    // A connection of the broker's own user began.
    void on_connected(ClientId client, Instant now);
    // It said this; nothing: what is no message. Sockets have their descriptors.
    void on_message(ClientId client, const std::optional<Message>& said, Instant now);
    // It ended, or its process did.
    void on_lost(ClientId client, Instant now);
    // A datagram came to the broker's own socket.
    void on_stray(const Stray& stray) { forward(stray, nullptr); }
    void on_timeout(Instant now);

    [[nodiscard]] Instant next_deadline() const noexcept;
    // Nobody needs the broker any more.
    [[nodiscard]] bool is_over(Instant now) const noexcept {
        return clients_.empty() && now - idle_since_ >= config_.idle;
    }
    [[nodiscard]] std::size_t clients() const noexcept { return clients_.size(); }
    [[nodiscard]] const Slots& slots() const noexcept { return slots_; }
    [[nodiscard]] telemetry::CounterSet<Counter>& counters() noexcept { return counters_; }

private:
    struct Client {
        enum class State : std::uint8_t {
            Silent,    // has said nothing
            Bringing,  // said Rejoin; its sockets come
            Waiting,   // said Join
            Member,    // has a slot
        };
        State state = State::Silent;
        Slot slot{};              // of a member, or what it claims
        std::uint16_t owed = 0;   // sockets that it is to bring
        Instant due{};            // when a connection without a slot ends
        Instant patient_until{};  // of one that waits
    };
    using Clients = std::map<ClientId, Client>;
    enum class Lending : std::uint8_t { Done, PortTaken, Full, NoAnswer, NoResources };

    void hear(ClientId id, Client& client, const Join&, Instant now);
    void hear(ClientId id, Client& client, const Rejoin& said, Instant now);
    void hear(ClientId id, Client& client, const Sockets& said, Instant now);
    void hear(ClientId id, Client& client, const Leave&, Instant now);
    void hear(ClientId id, Client& client, const Stray& said, Instant now);
    void hear(ClientId id, Client&, const Lent&, Instant now) { end_garbage(id, now); }
    void hear(ClientId id, Client&, const Refused&, Instant now) { end_garbage(id, now); }

    void lend(ClientId id, Client& client, Instant now);
    [[nodiscard]] Lending try_lend(ClientId id, Client& client, Instant now);
    [[nodiscard]] Lending take_slot(Slot& slot, Instant now);
    void rejoin(ClientId id, Client& client, Instant now);
    void forward(const Stray& stray, const Client* from);
    void refuse(ClientId id, Refusal why, Instant now);
    void end_garbage(ClientId id, Instant now);
    void end(ClientId id, Instant now);
    void forget(Clients::iterator client, Instant now);

    Hands& hands_;
    const HubConfig config_;
    Slots slots_;
    Clients clients_;
    std::map<Slot, ClientId> members_;
    Instant idle_since_;
    telemetry::CounterSet<Counter> counters_;
};

}  // namespace cairn::broker
