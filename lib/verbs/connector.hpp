// Connector: connections by IP address and port, as rdma_cm makes them. Carries the connection manager's messages over
// queue pair 1 and takes queue pairs through their states.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "lib/connections/home.hpp"
#include "lib/verbs/device.hpp"

namespace cairn::verbs {

using cm::ConnectionId;
using cm::DatagramId;

// What rdma_cm's datagram services expect unless told otherwise.
constexpr Qkey kRdmaCmQkey{0x01234567};

// What either end chooses.
struct ConnectionChoice {
    Rights access{};                                   // RemoteWrite, RemoteRead, RemoteAtomic: what the peer may do
    std::uint8_t responder_resources = 16;             // READs and atomics answered at a time
    std::uint8_t initiator_depth = 16;                 // and asked
    std::uint8_t rnr_retry = 7;                        // how often a peer that is not ready is asked again; 7: for ever
    wire::RnrTimer min_rnr_timer{1};                   // how long we ask to be left alone when not ready ourselves
    std::uint32_t features = wire::kFeatureSelective;  // offered, or agreed to where the peer offers them too
    std::span<const std::uint8_t> private_data{};
};

struct ConnectTo {
    net::IpAddress remote{};
    std::uint16_t port = 0;
    std::uint32_t path_mtu_bytes = 1024;
    std::uint8_t retry_count = 7;
    ConnectionChoice choice{};  // with 56 bytes of private data at most, 8 fewer with features
};

// One per device, of its thread. Queue pairs are the user's, in RESET when they are given here, and outlive their
// connection, whose last event is Released.
//
// Events are cm's, with what this does of itself: an accepted connect() is Established once its queue pair is in RTS
// (Replied is not seen), an accepted one by the peer's word or its first request, whichever comes first;
// DisconnectRequested, Disconnected, Rejected and Unreachable leave the queue pair in ERR. The user answers Requested
// by accept() or reject(), DisconnectRequested by disconnect().
class Connector final : private cm::User, private worker::Tenant {
public:
    // Both are of one worker (asserted) and outlive it.
    Connector(Device& device, connections::Home& home);
    Connector(const Connector&) = delete;
    Connector& operator=(const Connector&) = delete;
    // Its connections are given up: their peers are told.
    ~Connector();

    // Errors: the port is taken, no backlog. Shared: connectors of several workers may listen to one port.
    Status listen(std::uint16_t port, std::uint32_t backlog,
                  connections::Sharing sharing = connections::Sharing::Alone);
    Status unlisten(std::uint16_t port);
    // Errors: private data too long, a path MTU that the port does not carry, no room, a queue pair not in RESET, an
    // XRC target.
    Result<ConnectionId> connect(Qp& qp, const ConnectTo& to, Instant now);
    // Errors: the connection is gone, its path MTU too large, a queue pair of another service than asked for, an XRC
    // initiator, or as connect().
    Status accept(ConnectionId id, Qp& qp, const ConnectionChoice& choice, Instant now);
    Status reject(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now);
    Status disconnect(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now);
    // Forgets the connection: no event of it comes any more, its queue pair is in ERR.
    void abandon(ConnectionId id, Instant now);

    // Services over datagrams, by SIDR. `standing`: what whoever asks is told; nothing: each question is a
    // DatagramRequested, to be answered or refused. Errors: the port is taken, private data of more than 136 bytes.
    Status listen_datagrams(std::uint16_t port, const std::optional<cm::DatagramService>& standing = std::nullopt,
                            connections::Sharing sharing = connections::Sharing::Alone);
    Status unlisten_datagrams(std::uint16_t port);
    Status answer(DatagramId id, const cm::DatagramService& service, Instant now);
    Status refuse(DatagramId id, std::span<const std::uint8_t> private_data, Instant now);
    // Asks for the queue pair and the Q_Key behind a port of the host; a Resolved comes. Errors: private data of more
    // than 180 bytes, no host's address, as many questions as there may be.
    Result<DatagramId> resolve(const net::IpAddress& remote, std::uint16_t port,
                               std::span<const std::uint8_t> private_data, Instant now);

    [[nodiscard]] std::optional<cm::Event> poll_event();

private:
    // A connection, from the first that is heard or said of it.
    struct Link {
        enum class Stage : std::uint8_t {
            Asked,       // a peer's request waits for our answer: it has no queue pair
            Connecting,  // our request waits for its answer, or was answered
            Accepted,    // a peer's, with a queue pair
        };
        Stage stage{};
        Qp* qp = nullptr;
        Psn starting_psn{};
        ConnectionChoice choice{};  // its features are those agreed
        // Of a peer's request.
        cm::QpParameters parameters{};
        std::uint32_t features = 0;  // offered
        port::Path* path = nullptr;  // by which it came; pinned
    };

    void on_event(const cm::Event& event, Instant now) override;
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }
    [[nodiscard]] bool keep_request(const cm::Requested& requested, Instant now);
    void on_traffic_ended(ConnectionId id);
    [[nodiscard]] Status find_way(const net::IpAddress& remote, Instant now);
    void hear_peers();
    void finish_connect(const cm::Replied& replied, Instant now);
    [[nodiscard]] ModifyVerdict bring_up(const Link& link, const cm::QpParameters& parameters, port::Path& path);
    void stop(ConnectionId id);
    void forget(ConnectionId id);
    static void end(Link& link) noexcept;

    Device& device_;
    connections::Home& home_;
    std::unordered_map<std::uint32_t, Link> links_;
    std::deque<ConnectionId> unheard_;  // accepted ones that are not known to be established
    std::deque<cm::Event> events_;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::verbs
