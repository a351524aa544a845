// The events of the connection manager. The comment of each has its meaning and the call that answers it, if any.
#pragma once

#include <optional>
#include <type_traits>
#include <variant>

#include "lib/cm/types.hpp"

namespace cairn::cm {

// A peer asks for a connection. The user narrows the depths of `qp` as wanted, moves a queue pair to RTR and RTS with
// it, and calls accept(). Or it calls reject(). Until then the manager asks the peer for time.
struct Requested {
    ConnectionId id{};
    wire::ServiceId service{};
    Route route{};
    QpParameters qp{};
    std::uint32_t features = 0;  // offered; peers that are not Cairn offer none
    std::optional<IpEnds> ip{};
    PrivateBytes private_data{};
};

// The peer accepted our connect(). The user moves the queue pair to RTR and RTS with `qp` and calls ready(), or it
// calls reject().
struct Replied {
    ConnectionId id{};
    QpParameters qp{};
    std::uint32_t features = 0;  // agreed by both ends
    PrivateBytes private_data{};
};

// The peer of an accepted connection is ready, too. For a connection of our own, ready() establishes it without an
// event.
struct Established {
    ConnectionId id{};
    PrivateBytes private_data{};
};

// The connection was not made, or fell apart later.
struct Rejected {
    ConnectionId id{};
    wire::RejectReason reason{};
    bool by_peer = true;  // false: by the manager, since the peer's reply belongs to an earlier life of the peer
    PrivateBytes info{};
    PrivateBytes private_data{};
};

// The peer answered none of the retries.
struct Unreachable {
    ConnectionId id{};
};

// The peer wants to end the connection. The user stops, moves the queue pair to ERR and calls disconnect().
struct DisconnectRequested {
    ConnectionId id{};
    PrivateBytes private_data{};
};

// The connection is over, after disconnect() or because the peer has forgotten it.
struct Disconnected {
    ConnectionId id{};
    PrivateBytes private_data{};
    bool by_timeout = false;  // the peer did not answer
};

// The last event of a connection: no packet of it can come any more, and its queue pair number may be used again. A
// request that was refused or abandoned has no such event.
struct Released {
    ConnectionId id{};
};

using DatagramId = wire::SidrRequestId;

// A peer asks for a service over datagrams without a standing answer. The user calls answer().
struct DatagramRequested {
    DatagramId id{};
    wire::ServiceId service{};
    Route route{};
    Pkey pkey{};
    std::optional<IpEnds> ip{};
    PrivateBytes private_data{};
};

// The result of resolve().
struct Resolved {
    DatagramId id{};
    std::optional<wire::SidrStatus> status{};  // nullopt: no answer came
    Qpn qpn{};                                 // valid, with the key, if the status is Valid
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
