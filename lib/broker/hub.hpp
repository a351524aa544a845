// Hub: the state and the decisions of the broker of an address. It uses no I/O, clock or chance.
#pragma once

#include <limits>
#include <map>
#include <optional>

#include "lib/broker/counters.hpp"
#include "lib/broker/hands.hpp"
#include "lib/broker/programs.hpp"
#include "lib/broker/slots.hpp"

namespace cairn::broker {

struct HubConfig {
    Duration silence = seconds(2);         // the longest from a connection's begin to its slot
    Duration patience = seconds(1);        // the longest that a program waits for others that have the address, or may
                                           // have a service
    Duration again = milliseconds(20);     // how often a program that waits is looked at
    Duration rest = seconds(1);            // of a slot that became free, if there may be more sockets
    Duration idle = seconds(2);            // without a connection; then the broker is over
    std::uint16_t sockets = kMostSockets;  // at most; [2, kMostSockets]
    std::uint16_t strangers = 64;          // connections without a slot
};

class Hub {
public:
    // Makes the hub. `hands` outlive it. `local`: the address that is shared.
    Hub(Hands& hands, const net::IpAddress& local, const HubConfig& config, Instant now)
        : hands_(hands), config_(config), programs_(hands, local, counters_), idle_since_(now) {}
    Hub(const Hub&) = delete;
    Hub& operator=(const Hub&) = delete;

    // Takes in a new connection of the broker's own user.
    void on_connected(ClientId client, Instant now);
    // Takes in a message. `said` is nullopt if the bytes were not a message. The sockets of Sockets have come with it.
    void on_message(ClientId client, const std::optional<Message>& said, Instant now);
    // Takes in that the connection or its process ended.
    void on_lost(ClientId client, Instant now);
    // Takes in a datagram that came to the broker's own socket.
    void on_stray(const Stray& stray) { programs_.lead(stray, std::nullopt); }
    void on_timeout(Instant now);

    [[nodiscard]] Instant next_deadline() const noexcept;
    // Returns whether no program needs the broker any more. Clients that only look do not count, nor do silent ones.
    [[nodiscard]] bool is_over(Instant now) const noexcept { return is_idle() && now - idle_since_ >= config_.idle; }
    // Returns whether no program has the address or waits for it: another user may have it. Each peer of a program that
    // died has got a farewell message at least once by then.
    [[nodiscard]] bool is_unused() const noexcept;
    [[nodiscard]] std::size_t clients() const noexcept { return clients_.size(); }
    [[nodiscard]] const Slots& slots() const noexcept { return slots_; }
    [[nodiscard]] const Programs& programs() const noexcept { return programs_; }
    [[nodiscard]] telemetry::CounterSet<Counter>& counters() noexcept { return counters_; }
    [[nodiscard]] const telemetry::CounterSet<Counter>& counters() const noexcept { return counters_; }

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

    // Each function takes one kind of message. The last one takes messages of programs with a slot, and ends the
    // connection for all that are not expected.
    void hear(ClientId id, Client& client, const Join&, Instant now);
    void hear(ClientId id, Client& client, const Rejoin& said, Instant now);
    void hear(ClientId id, Client& client, const Sockets& said, Instant now);
    void hear(ClientId id, Client&, const Leave&, Instant now) { end(id, now); }
    void hear(ClientId id, Client& client, const Look&, Instant now);
    template <class Said>
    void hear(ClientId id, const Client& client, const Said& said, Instant now) {
        constexpr bool kOfPrograms = requires {
            programs_.hear(client.slot, said, now);
        };
        if constexpr (kOfPrograms) {
            if (client.state == Client::State::Member) {
                programs_.hear(client.slot, said, now);
                return;
            }
        }
        end_garbage(id, now);
    }
    [[nodiscard]] bool is_idle() const noexcept { return programs_.idle() && is_unused(); }
    void lend(ClientId id, Client& client, Instant now);
    [[nodiscard]] Lending try_lend(ClientId id, Client& client, Instant now);
    [[nodiscard]] Lending take_slot(Slot& slot, Instant now);
    [[nodiscard]] Lending grow(Instant now);
    void rejoin(ClientId id, Client& client, Instant now);
    void refuse(ClientId id, Refusal why, Instant now);
    void end_garbage(ClientId id, Instant now);
    void end(ClientId id, Instant now);
    void forget(Clients::iterator client, Instant now);

    Hands& hands_;
    const HubConfig config_;
    telemetry::CounterSet<Counter> counters_;
    Slots slots_;
    Clients clients_;
    Programs programs_;
    Instant idle_since_;
    Instant hidden_until_{std::numeric_limits<std::int64_t>::min()};  // until then there are sockets that no client has
                                                                      // claimed
};

}  // namespace cairn::broker
