// How a program gets to the broker of its address: it asks, and starts one if nobody is there.
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
// No broker can be had.
struct NoBroker {
    std::string why;
};
using Meeting = std::variant<Welcome, NoBroker, Refusal>;

struct MeetingConfig {
    Place place{};
    std::string program;  // to start; empty: none
    Duration patience{};
};

// Asks for a slot. Starts a program that ends at once a few times at most, with a pause between.
[[nodiscard]] Meeting ask_for_slot(const MeetingConfig& config);
// Comes back to a slot, with copies of the address's sockets. The Welcome has none. Starts the program once at most.
[[nodiscard]] Meeting come_back(const MeetingConfig& config, Slot slot, std::span<const int> sockets);

// Returns whom the address belongs to, for the operator: the listener's user and process.
[[nodiscard]] Error explain(const Place& place, Refusal why);

}  // namespace cairn::broker
