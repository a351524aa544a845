// The inhabitants of a simulated world of one address.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "lib/broker/hub.hpp"
#include "tests/unit/broker/kernel_model.hpp"

namespace cairn::broker {

struct Program {
    enum class State { Asking, Member, Lost, Refused };
    Process process = 0;
    State state = State::Asking;
    bool stopped = false;
    ClientId client{};
    Slot slot{};
    std::vector<SocketId> sockets{};  // copies
    Instant back_at{};                // of a program that lost its broker
    std::set<wire::ServiceId> services{};
    bool late = false;     // it was away for longer than the others wait for it
    bool unheard = false;  // its question was lost with a broker
};

class World;

class Broker final : public Hands {
public:
    Broker(World& of, Process is) : world(of), process(is) {}
    Instant read_clock() override;
    Opening open() override;
    Growth grow() override;
    std::optional<std::uint16_t> adopt(ClientId client) override;
    void drain(Slot) override {}
    bool send(ClientId client, const Message& message) override;
    bool send_sockets(ClientId client) override;
    void end(ClientId client) override;
    void send_mad(const Will&) override {}

    World& world;
    const Process process;
    std::vector<SocketId> sockets;
    bool others = false;
};

struct Chances {
    std::uint32_t start, end, kill_broker, stop, forward;
};

}  // namespace cairn::broker
