// Messages made from what users say, and what messages say to users. Pure.
#pragma once

#include <optional>

#include "lib/cm/connection_table.hpp"
#include "lib/cm/types.hpp"
#include "lib/wire/cm_message.hpp"

namespace cairn::cm {

// How much a user may say in a message's private data.
[[nodiscard]] std::size_t private_room(const ConnectRequest& request) noexcept;
[[nodiscard]] std::size_t private_room(const AcceptParameters& accepted) noexcept;
[[nodiscard]] std::size_t private_room(const ResolveRequest& request) noexcept;

// Whether a host can be asked by it.
[[nodiscard]] CallStatus judge_route(const Route& route) noexcept;
[[nodiscard]] CallStatus judge_connect(const ConnectRequest& request) noexcept;
[[nodiscard]] wire::Req make_req(const Config& config, const ConnectRequest& request, ConnectionId id) noexcept;
[[nodiscard]] wire::Rep make_rep(const Config& config, const Connection& connection,
                                 const AcceptParameters& accepted) noexcept;
// Refuses what `message` says the peer sent.
[[nodiscard]] wire::Rej make_rej(const Connection& connection, const Refusal& refusal, wire::Answered message) noexcept;
[[nodiscard]] wire::SidrReq make_sidr_req(const ResolveRequest& request, wire::SidrRequestId id) noexcept;

// Why a request that came over `route` is refused whoever listens; nothing: it may be looked at.
[[nodiscard]] std::optional<wire::RejectReason> judge_req(const wire::Req& req, const Route& route) noexcept;
// Whether the ends that a request of an is_ip_service() names are those of its route.
[[nodiscard]] bool names_ends_of(wire::ServiceId service, std::span<const std::uint8_t> private_data,
                                 const Route& route) noexcept;

// Where XRC targets, whom others call by their EE context number, have theirs (as Linux does, too).
[[nodiscard]] Qpn qpn_of(const wire::Rep& rep, wire::TransportService transport) noexcept;
// Of the end that received `req`; and of the one whose `req` was answered by `rep`.
[[nodiscard]] QpParameters parameters_of(const wire::Req& req) noexcept;
[[nodiscard]] QpParameters parameters_of(const Config& config, const wire::Req& req, const wire::Rep& rep) noexcept;

// Private data as its reader sees it: without what is the connection manager's own.
struct ReceivedData {
    std::optional<IpEnds> ip{};
    std::uint32_t features = 0;
    PrivateBytes rest{};
};
[[nodiscard]] ReceivedData read_private_data(const wire::Req& req) noexcept;
[[nodiscard]] ReceivedData read_private_data(const wire::Rep& rep) noexcept;
[[nodiscard]] ReceivedData read_private_data(const wire::SidrReq& req) noexcept;

}  // namespace cairn::cm
