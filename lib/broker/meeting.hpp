// Connects a program with the broker of its address, and starts a broker if there is none.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lib/broker/packets.hpp"

namespace cairn::broker {

// A slot, and copies of the address's sockets.
struct Welcome {
    OwnedFd connection;
    Slot slot{};
    std::vector<OwnedFd> sockets{};
};
// The reason why there is no broker.
struct NoBroker {
    std::string why;
};
using Meeting = std::variant<Welcome, NoBroker, Refusal>;

struct MeetingConfig {
    Place place{};
    std::string program;  // to start; empty: none
    Duration patience{};
};

// Asks for a slot. If no broker listens, starts the program, with a pause between attempts. A program that ends at once
// is started a few times at most.
[[nodiscard]] Meeting ask_for_slot(const MeetingConfig& config);
// Comes back to a slot, with copies of the address's sockets. The Welcome has none. Starts the program at most once.
[[nodiscard]] Meeting come_back(const MeetingConfig& config, Slot slot, std::span<const int> sockets);

// Explains to the operator which user and process the address belongs to: those of the listener.
[[nodiscard]] Error explain(const Place& place, Refusal why);

}  // namespace cairn::broker
