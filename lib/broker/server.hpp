// Server: the running broker of one address. It acts for the hub.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/broker/hub.hpp"
#include "lib/broker/kernel_group.hpp"
#include "lib/broker/packets.hpp"
#include "lib/broker/stray_reader.hpp"

namespace cairn::broker {

// Runs the hub. Belongs to one thread.
class Server final : private Hands {
public:
    // Makes a server. `listener` is the socket of listen_at(place); programs of `user` may have the address. Errors: no
    // descriptor is left.
    static Result<std::unique_ptr<Server>> make(const Place& place, OwnedFd listener, const HubConfig& config,
                                                std::uint32_t user);
    ~Server() override;

    // Serves until no program has needed the broker for a while, or none needs it and another user wants the address.
    // It also ends if `ends` returns true, which is called at each wakeup and once a second.
    void run(const std::function<bool()>& ends);
    [[nodiscard]] const Hub& hub() const noexcept { return hub_; }

private:
    // A connection, and the process at its other end.
    struct Connection {
        OwnedFd socket;
        OwnedFd process;  // pidfd; not open: the process gave none
        std::vector<OwnedFd> brought{};
        bool ended = false;
    };
    using Connections = std::map<ClientId, Connection>;

    Server(const Place& place, OwnedFd listener, OwnedFd epoll, const HubConfig& config, std::uint32_t user);
    [[nodiscard]] bool watch(int fd, std::uint64_t what) noexcept;
    void serve(std::uint64_t what);
    [[nodiscard]] bool serve_listener();
    void connect(OwnedFd socket);
    void hear_all();
    void turn_away();
    void rest_listener(Instant until) noexcept;
    void wake_listener(Instant now) noexcept;
    void serve_own_socket();
    void serve_connection(ClientId id);
    void take(ClientId id, Connection& connection, Packet& packet);
    void lose(ClientId id);
    void forget(Connection& connection) noexcept;
    void close_ended();

    Instant read_clock() override;
    Opening open() override;
    Growth grow() override;
    std::optional<std::uint16_t> adopt(ClientId client) override;
    void drain(Slot slot) override;
    bool send(ClientId client, const Message& message) override;
    bool send_sockets(ClientId client) override;
    void end(ClientId client) override;
    void send_mad(const Will& will) override;

    const Place place_;
    std::vector<OwnedFd> strangers_;  // of other users, until all that wait are accepted: close last
    bool makes_room_ = false;         // for them
    OwnedFd listener_;                // closes after the sockets: the next broker then finds the port free
    KernelGroup group_;
    OwnedFd epoll_;
    const std::uint32_t user_;
    StrayReader strays_;
    Hub hub_;
    Connections connections_;
    std::vector<ClientId> ended_;
    Instant listener_rests_until_ = Instant::never();  // never: it does not rest
    std::uint64_t last_id_ = 0;
    Psn psn_{};  // of the next management datagram
};

}  // namespace cairn::broker
