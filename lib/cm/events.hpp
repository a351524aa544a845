// What the connection manager yields: what its user is to do or to know.
#pragma once

#include <optional>
#include <type_traits>
#include <variant>

#include "lib/cm/types.hpp"

namespace cairn::cm {

// Somebody wants a connection. Move a queue pair to RTR and RTS with `qp`, depths narrowed as wanted, then accept();
// or reject(). The peer is asked for time meanwhile.
struct Requested {
    ConnectionId id{};
    wire::ServiceId service{};
    Route route{};
    QpParameters qp{};
    std::uint32_t features = 0;  // offered: none by peers that are not Cairn
    std::optional<IpEnds> ip{};
    PrivateBytes private_data{};
};

// Our connect() was accepted. Move the queue pair to RTR and RTS with `qp`, then ready(); or reject().
struct Replied {
    ConnectionId id{};
    QpParameters qp{};
    std::uint32_t features = 0;  // agreed
    PrivateBytes private_data{};
};

// The peer of an accepted connection is ready, too. Of connections of our own ready() says so.
struct Established {
    ConnectionId id{};
    PrivateBytes private_data{};
};

// The connection did not come about, or fell apart before or after.
struct Rejected {
    ConnectionId id{};
    wire::RejectReason reason{};
    bool by_peer = true;  // or by the manager: what the peer replied belongs to an earlier life of it
    PrivateBytes info{};
    PrivateBytes private_data{};
};

// The peer answered none of the retries.
struct Unreachable {
    ConnectionId id{};
};

// The peer wants to end. Stop, move the queue pair to ERR, then disconnect().
struct DisconnectRequested {
    ConnectionId id{};
    PrivateBytes private_data{};
};

// The connection that disconnect() was called for, or that the peer showed to have forgotten, is over.
struct Disconnected {
    ConnectionId id{};
    PrivateBytes private_data{};
};

// The last event of a connection: no packet of it can come any more, its queue pair's number may be used again. Not of
// requests that were refused or abandoned.
struct Released {
    ConnectionId id{};
};

using DatagramId = wire::SidrRequestId;

// Somebody asks for a service over datagrams that has no standing answer: answer() it.
struct DatagramRequested {
    DatagramId id{};
    wire::ServiceId service{};
    Route route{};
    Pkey pkey{};
    std::optional<IpEnds> ip{};
    PrivateBytes private_data{};
};

// What resolve() found.
struct Resolved {
    DatagramId id{};
    std::optional<wire::SidrStatus> status{};  // nothing: no answer
    Qpn qpn{};                                 // this and the key when the status is Valid
    Qkey qkey{};
    PrivateBytes private_data{};
};

using Event = std::variant<Requested, Replied, Established, Rejected, Unreachable, DisconnectRequested, Disconnected,
                           Released, DatagramRequested, Resolved>;

[[nodiscard]] inline bool is_of(const Event& event, ConnectionId id) noexcept {
    return std::visit(
        [id]<class Kind>(const Kind& kind) {
            if constexpr (std::is_same_v<decltype(kind.id), ConnectionId>) {
                return kind.id == id;
            }
            return false;
        },
        event);
}

}  // namespace cairn::cm
