// Makes messages from the calls of users, and reads messages for users. Pure functions.
#pragma once

#include <optional>

#include "lib/cm/connection_table.hpp"
#include "lib/cm/types.hpp"
#include "lib/wire/cm_message.hpp"

namespace cairn::cm {

// Returns the bytes of private data that the user has in the message.
[[nodiscard]] std::size_t private_room(const ConnectRequest& request) noexcept;
[[nodiscard]] std::size_t private_room(const AcceptParameters& accepted) noexcept;
[[nodiscard]] std::size_t private_room(const ResolveRequest& request) noexcept;

// Judges if the route's remote can be asked from its local address.
[[nodiscard]] std::optional<CallRefusal> judge_route(const Route& route) noexcept;
[[nodiscard]] std::optional<CallRefusal> judge_connect(const ConnectRequest& request) noexcept;
[[nodiscard]] wire::Req make_req(const Config& config, const ConnectRequest& request, ConnectionId id) noexcept;
[[nodiscard]] wire::Rep make_rep(const Config& config, const Connection& connection,
                                 const AcceptParameters& accepted) noexcept;
// Makes the refusal of a message of the peer, which `message` names.
[[nodiscard]] wire::Rej make_rej(const Connection& connection, const Refusal& refusal, wire::Answered message) noexcept;
[[nodiscard]] wire::SidrReq make_sidr_req(const ResolveRequest& request, wire::SidrRequestId id) noexcept;

// Returns the reason to refuse a request that came over `route`, as far as it does not depend on the listening user.
// Returns nullopt if the request may be considered.
[[nodiscard]] std::optional<wire::RejectReason> judge_req(const wire::Req& req, const Route& route) noexcept;
// Returns true if the ends that a request of an is_ip_service() names are the ends of its route.
[[nodiscard]] bool names_ends_of(wire::ServiceId service, std::span<const std::uint8_t> private_data,
                                 const Route& route) noexcept;

// Returns the queue pair number of the replying end. XRC targets give it as their EE context number (as in Linux).
[[nodiscard]] Qpn qpn_of(const wire::Rep& rep, wire::TransportService transport) noexcept;
// Returns the queue pair's attributes. The first is for the end that received `req`, the second for the end whose `req`
// was answered by `rep`.
[[nodiscard]] QpParameters parameters_of(const wire::Req& req) noexcept;
[[nodiscard]] QpParameters parameters_of(const Config& config, const wire::Req& req, const wire::Rep& rep) noexcept;

// Private data as their reader sees them, without the connection manager's own parts.
struct ReceivedData {
    std::optional<IpEnds> ip{};
    std::uint32_t features = 0;
    PrivateBytes rest{};
};
[[nodiscard]] ReceivedData read_private_data(const wire::Req& req) noexcept;
[[nodiscard]] ReceivedData read_private_data(const wire::Rep& rep) noexcept;
[[nodiscard]] ReceivedData read_private_data(const wire::SidrReq& req) noexcept;

}  // namespace cairn::cm
