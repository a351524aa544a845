// Connector: connections by IP address and port, as rdma_cm makes them. It is a user of the connection manager and
// takes queue pairs through their states.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "lib/connections/home.hpp"
#include "lib/roce/qp/event_sink.hpp"
#include "lib/roce/qp/qp_ring.hpp"
#include "lib/verbs/device.hpp"

namespace cairn::verbs {

using cm::ConnectionId;
using cm::DatagramId;

// The Q_Key that rdma_cm's datagram services expect by default.
constexpr Qkey kRdmaCmQkey{0x01234567};

// The choices of either end of a connection.
struct ConnectionChoice {
    // Returns the queue pair's ACK timeout if its peer asks for `asked`. 0 is the longest of all: it has no end.
    [[nodiscard]] constexpr std::uint8_t ack_timeout_of(std::uint8_t asked) const noexcept {
        return ack_timeout_max != 0 && (asked == 0 || asked > ack_timeout_max) ? ack_timeout_max : asked;
    }

    Rights access{};                        // RemoteWrite, RemoteRead, RemoteAtomic: the peer's rights
    std::uint8_t responder_resources = 16;  // READs and atomics that are answered at a time
    std::uint8_t initiator_depth = 16;      // READs and atomics that are outstanding at most
    std::uint8_t rnr_retry = 7;             // retries while the peer is not ready; 7: without end
    wire::RnrTimer min_rnr_timer{1};        // pause that we ask a peer for while our queue pair is not ready
    // Upper bounds for the peer's demands on our queue pair.
    std::uint8_t ack_timeout_max = 0;  // 4.096 us * 2^it until a packet without an answer is sent again; 0: any
    std::uint8_t rnr_retry_max = 7;    // 7: any
    std::uint32_t features = wire::kFeaturesOfRc;  // offered, or agreed to if the peer offers them too
    std::span<const std::uint8_t> private_data{};
};

struct ConnectTo {
    net::IpAddress remote{};
    std::uint16_t port = 0;
    std::uint32_t path_mtu_bytes = 1024;
    std::uint8_t retry_count = 7;
    ConnectionChoice choice{};  // at most 56 bytes of private data, 8 fewer with features
};

// One per device, on its thread. Queue pairs belong to the user. They are in RESET when the connector gets them, and
// outlive their connection, whose last event is Released.
//
// The events are the connection manager's, except for the steps that the connector does by itself. After connect() it
// handles Replied and reports Established once the queue pair is in RTS. After accept() it reports Established on the
// peer's RTU or first request, whichever comes first. DisconnectRequested, Disconnected, Rejected and Unreachable leave
// the queue pair in ERR. The user answers Requested by accept() or reject(), and DisconnectRequested by disconnect().
//
// After accept() the queue pair takes send requests, which leave once the connection is established. Before that the
// peer may have the connection with an earlier life of this program. A late copy of the peer's request looks new to
// this life. An early message would then take a place in the order of the earlier life's messages.
class Connector final : private cm::User, private worker::Tenant {
public:
    // Makes a connector. Both arguments belong to one worker (asserted) and outlive it.
    Connector(Device& device, connections::Home& home);
    Connector(const Connector&) = delete;
    Connector& operator=(const Connector&) = delete;
    // Abandons its connections and notifies their peers.
    ~Connector();

    // Listens to a port. With Shared, connectors of several workers may listen to one port. Errors: the port is taken;
    // no backlog.
    Status listen(std::uint16_t port, std::uint32_t backlog,
                  connections::Sharing sharing = connections::Sharing::Alone);
    Status unlisten(std::uint16_t port);
    // Asks for a connection. Errors: the private data are too long; the port does not carry the path MTU; no room; the
    // queue pair is not in RESET, or is an XRC target.
    Result<ConnectionId> connect(Qp& qp, const ConnectTo& to, Instant now);
    // Accepts a request. Errors: the connection is gone; its path MTU is too large; the queue pair has another service
    // than the request, or is an XRC initiator; the errors of connect().
    Status accept(ConnectionId id, Qp& qp, const ConnectionChoice& choice, Instant now);
    Status reject(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now);
    Status disconnect(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now);
    // Forgets the connection: no event of it comes any more, and its queue pair is in ERR.
    void abandon(ConnectionId id, Instant now);

    // Listens to a service over datagrams, by SIDR. `standing` is the answer to every question. Without it each
    // question becomes a DatagramRequested, which the user answers or refuses. Errors: the port is taken; more than 136
    // bytes of private data.
    Status listen_datagrams(std::uint16_t port, const std::optional<cm::DatagramService>& standing = std::nullopt,
                            connections::Sharing sharing = connections::Sharing::Alone);
    Status unlisten_datagrams(std::uint16_t port);
    Status answer(DatagramId id, const cm::DatagramService& service, Instant now);
    Status refuse(DatagramId id, std::span<const std::uint8_t> private_data, Instant now);
    // Asks the host for the queue pair and the Q_Key of a port. A Resolved follows. Errors: more than 180 bytes of
    // private data; no single host has the address; the limit of questions is reached.
    Result<DatagramId> resolve(const net::IpAddress& remote, std::uint16_t port,
                               std::span<const std::uint8_t> private_data, Instant now);

    [[nodiscard]] std::optional<cm::Event> poll_event();

private:
    // Notes the first request of a peer whose RTU has not come. Its queue pair outlives it.
    class AwaitedPeer final : public roce::EventSink {
    public:
        AwaitedPeer(Connector& connector, ConnectionId id, Qp& qp) noexcept : connector_(connector), id_(id), qp_(qp) {
            qp_.set_first_request_sink(this);
        }
        ~AwaitedPeer() override {
            qp_.set_first_request_sink(nullptr);
            connector_.heard_.remove(*this);
        }
        void on_event() noexcept override;
        [[nodiscard]] ConnectionId id() const noexcept { return id_; }

        roce::QpRingLink<AwaitedPeer> link{};  // in the ring of peers whose first request came

    private:
        Connector& connector_;
        const ConnectionId id_;
        Qp& qp_;
    };
    // A connection, from the first event or call on.
    struct Link {
        enum class Stage : std::uint8_t {
            Asked,       // a peer's request waits for our answer; it has no queue pair
            Connecting,  // our request waits for its answer, or was answered
            Accepted,    // a peer's request with a queue pair
        };
        Stage stage{};
        Qp* qp = nullptr;
        Psn starting_psn{};
        ConnectionChoice choice{};  // its features are the agreed ones
        // The following members belong to a peer's request.
        cm::QpParameters parameters{};
        std::uint32_t features = 0;  // offered by the peer
        port::Path* path = nullptr;  // the path by which it came; pinned
    };

    void on_event(const cm::Event& event, Instant now) override;
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override {
        return heard_.size() != 0 ? Instant{} : Instant::never();
    }
    [[nodiscard]] bool keep_request(const cm::Requested& requested, Instant now);
    void on_traffic_ended(ConnectionId id);
    [[nodiscard]] Status find_way(const net::IpAddress& remote, Instant now);
    void hear_peer(ConnectionId id);
    void let_send(ConnectionId id);
    void finish_connect(const cm::Replied& replied, Instant now);
    [[nodiscard]] std::optional<ModifyRefusal> bring_up(const Link& link, const cm::QpParameters& parameters,
                                                        port::Path& path);
    void stop(ConnectionId id);
    void forget(ConnectionId id);
    static void end(Link& link) noexcept;

    Device& device_;
    connections::Home& home_;
    std::unordered_map<std::uint32_t, Link> links_;
    std::unordered_map<std::uint32_t, AwaitedPeer> awaited_;  // of accepted connections that are not established yet
    roce::QpRing<AwaitedPeer> heard_;                         // peers of awaited_ whose first request came
    std::deque<cm::Event> events_;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::verbs
