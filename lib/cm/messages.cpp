#include "lib/cm/messages.hpp"

#include "lib/cm/timeouts.hpp"

namespace cairn::cm {

namespace {

using wire::FeatureTrailer;
using wire::IpCmHeader;

constexpr std::uint16_t kPermissiveLid = 0xffff;

bool is_known(wire::TransportService transport) noexcept {
    using enum wire::TransportService;
    return transport == Rc || transport == Uc || transport == Extended;
}

template <class Request>
std::size_t header_bytes(const Request& request) noexcept {
    return wire::is_ip_service(request.service) ? IpCmHeader::kBytes : 0;
}

std::size_t trailer_bytes(std::uint32_t features) noexcept {
    return features != 0 ? FeatureTrailer::kBytes : 0;
}

// Writes header, data and trailer, as far as they exist, to the private data of a request. The data fit.
template <std::size_t kBytes, class Request>
void fill(wire::PrivateData<kBytes>& out, const Request& request) noexcept {
    const std::size_t header = header_bytes(request);
    if (header != 0) {
        emit_at(out.data(),
                IpCmHeader{request.source_port, request.route.local.octets(), request.route.remote.octets()});
    }
    std::copy(request.private_data.begin(), request.private_data.end(), out.begin() + header);
}

template <std::size_t kBytes>
void append_trailer(wire::PrivateData<kBytes>& out, std::uint32_t features) noexcept {
    if (features != 0) {
        emit_at(out.data() + kBytes - FeatureTrailer::kBytes, FeatureTrailer{features});
    }
}

template <std::size_t kBytes>
ReceivedData read_parts(const wire::PrivateData<kBytes>& data, bool with_header, bool with_trailer) noexcept {
    ReceivedData received;
    std::span<const std::uint8_t> rest(data);
    if (with_trailer) {
        const auto trailer =
            FeatureTrailer::parse(read_raw<wire::RawFeatureTrailer>(data.data() + kBytes - FeatureTrailer::kBytes));
        if (trailer) {
            received.features = trailer->features;
            rest = rest.first(kBytes - FeatureTrailer::kBytes);
        }
    }
    const auto header =
        with_header ? IpCmHeader::parse(read_raw<wire::RawIpCmHeader>(data.data())) : std::optional<IpCmHeader>{};
    if (header) {
        received.ip = IpEnds{net::IpAddress::from_v6(header->source), header->source_port,
                             net::IpAddress::from_v6(header->destination)};
        rest = rest.subspan(IpCmHeader::kBytes);
    }
    received.rest = PrivateBytes::of(rest);
    return received;
}

}  // namespace

std::size_t private_room(const ConnectRequest& request) noexcept {
    return wire::Req{}.private_data.size() - header_bytes(request) - trailer_bytes(request.features);
}

std::size_t private_room(const AcceptParameters& accepted) noexcept {
    return wire::Rep{}.private_data.size() - trailer_bytes(accepted.features);
}

std::size_t private_room(const ResolveRequest& request) noexcept {
    return wire::SidrReq{}.private_data.size() - header_bytes(request);
}

std::optional<CallRefusal> judge_route(const Route& route) noexcept {
    const bool same_family = route.local.is_v4() == route.remote.is_v4();
    return route.remote.is_station() && same_family ? std::nullopt : std::optional(CallRefusal::BadAddress);
}

std::optional<CallRefusal> judge_connect(const ConnectRequest& request) noexcept {
    if (request.private_data.size() > private_room(request)) {
        return CallRefusal::PrivateDataTooLong;
    }
    const bool known_mtu = wire::bytes_of(wire::path_mtu_of(request.path_mtu_bytes)) == request.path_mtu_bytes;
    return is_known(request.transport) && known_mtu ? judge_route(request.route) : CallRefusal::BadParameters;
}

wire::Req make_req(const Config& config, const ConnectRequest& request, ConnectionId id) noexcept {
    wire::Req req;
    req.local_comm_id = id;
    req.service_id = request.service;
    req.local_ca_guid = config.ca_guid;
    req.local_qpn = request.qpn;
    const bool xrc = request.transport == wire::TransportService::Extended;
    req.responder_resources = xrc ? std::uint8_t{0} : request.responder_resources;  // XRC initiators answer no READs
    req.initiator_depth = request.initiator_depth;
    req.remote_response_timeout = config.response_timeout;
    req.service = request.transport;
    req.extended_transport = xrc ? wire::kExtendedXrc : std::uint8_t{0};
    req.flow_control = request.flow_control;
    req.starting_psn = request.starting_psn;
    req.local_response_timeout = config.response_timeout;
    req.retry_count = request.retry_count;
    req.pkey = request.pkey;
    req.path_mtu = wire::path_mtu_of(request.path_mtu_bytes);
    req.rnr_retry = request.rnr_retry;
    req.max_cm_retries = config.max_retries;
    req.srq = request.srq;
    req.primary.local_lid = kPermissiveLid;
    req.primary.remote_lid = kPermissiveLid;
    req.primary.local_gid = request.route.local.octets();
    req.primary.remote_gid = request.route.remote.octets();
    req.primary.flow_label = request.flow_label;
    req.primary.traffic_class = request.traffic_class;
    req.primary.hop_limit = request.hop_limit;
    req.primary.ack_timeout = ack_timeout_of(config.packet_lifetime, config.ack_delay);
    fill(req.private_data, request);
    append_trailer(req.private_data, request.features);
    return req;
}

wire::Rep make_rep(const Config& config, const Connection& connection, const AcceptParameters& accepted) noexcept {
    wire::Rep rep;
    rep.ids = {connection.id, connection.remote_id};
    const bool xrc = connection.transport == wire::TransportService::Extended;
    if (xrc) {
        rep.local_eecn = wire::Eecn{accepted.qpn.value};
    } else {
        rep.local_qpn = accepted.qpn;
    }
    rep.starting_psn = accepted.starting_psn;
    rep.responder_resources = std::min(accepted.responder_resources, connection.initiator_depth);
    rep.initiator_depth = std::min(accepted.initiator_depth, connection.responder_resources);
    rep.target_ack_delay = config.ack_delay;
    rep.failover = connection.has_alternate ? wire::Failover::NotSupported : wire::Failover::Accepted;
    rep.flow_control = accepted.flow_control;
    rep.rnr_retry = accepted.rnr_retry;
    rep.srq = accepted.srq || xrc;
    rep.local_ca_guid = config.ca_guid;
    std::copy(accepted.private_data.begin(), accepted.private_data.end(), rep.private_data.begin());
    append_trailer(rep.private_data, accepted.features);
    return rep;
}

wire::Rej make_rej(const Connection& connection, const Refusal& refusal, wire::Answered message) noexcept {
    wire::Rej rej;
    // A peer that got no name of ours gets none from its refusal either (12.6.7).
    rej.ids = {connection.state == State::ReqRcvd ? ConnectionId{} : connection.id, connection.remote_id};
    rej.message = message;
    rej.reason = refusal.reason;
    rej.info_bytes = static_cast<std::uint8_t>(refusal.info.size());
    std::copy(refusal.info.begin(), refusal.info.end(), rej.info.begin());
    std::copy(refusal.private_data.begin(), refusal.private_data.end(), rej.private_data.begin());
    return rej;
}

wire::SidrReq make_sidr_req(const ResolveRequest& request, wire::SidrRequestId id) noexcept {
    wire::SidrReq req;
    req.request_id = id;
    req.pkey = request.pkey;
    req.service_id = request.service;
    fill(req.private_data, request);
    return req;
}

std::optional<wire::RejectReason> judge_req(const wire::Req& req, const Route& route) noexcept {
    const bool known_extension =
        req.service != wire::TransportService::Extended || req.extended_transport == wire::kExtendedXrc;
    if (!is_known(req.service) || !known_extension) {
        return wire::RejectReason::InvalidTransport;
    }
    if (wire::bytes_of(req.path_mtu) == 0) {
        return wire::RejectReason::InvalidPathMtu;
    }
    // The queue pairs will talk to the host that the request came from: a request cannot point them at a third host.
    if (req.primary.local_gid != route.remote.octets() || req.primary.remote_gid != route.local.octets()) {
        return wire::RejectReason::InvalidGid;
    }
    if (!names_ends_of(req.service_id, req.private_data, route)) {
        return wire::RejectReason::Consumer;  // the reason that Linux gives
    }
    return std::nullopt;
}

bool names_ends_of(wire::ServiceId service, std::span<const std::uint8_t> private_data, const Route& route) noexcept {
    if (!wire::is_ip_service(service)) {
        return true;
    }
    CAIRN_ASSERT(private_data.size() >= IpCmHeader::kBytes);
    const auto header = IpCmHeader::parse(read_raw<wire::RawIpCmHeader>(private_data.data()));
    return header && header->source == route.remote.octets() && header->destination == route.local.octets();
}

Qpn qpn_of(const wire::Rep& rep, wire::TransportService transport) noexcept {
    return transport == wire::TransportService::Extended ? Qpn{rep.local_eecn.value} : rep.local_qpn;
}

QpParameters parameters_of(const wire::Req& req) noexcept {
    QpParameters qp;
    qp.transport = req.service;
    qp.remote_qpn = req.local_qpn;
    qp.send_psn = req.starting_psn;
    qp.path_mtu_bytes = wire::bytes_of(req.path_mtu);
    qp.pkey = req.pkey;
    qp.max_dest_rd_atomic = req.initiator_depth;
    qp.max_rd_atomic = req.responder_resources;
    qp.ack_timeout = req.primary.ack_timeout;
    qp.retry_count = req.retry_count;
    qp.rnr_retry = req.rnr_retry;
    qp.flow_control = req.flow_control;
    qp.srq = req.srq;
    qp.flow_label = req.primary.flow_label;
    qp.traffic_class = req.primary.traffic_class;
    qp.hop_limit = req.primary.hop_limit;
    return qp;
}

QpParameters parameters_of(const Config& config, const wire::Req& req, const wire::Rep& rep) noexcept {
    QpParameters qp = parameters_of(req);  // the common values, and our own wishes
    qp.remote_qpn = qpn_of(rep, req.service);
    qp.send_psn = rep.starting_psn;
    qp.max_dest_rd_atomic = std::min(req.responder_resources, rep.initiator_depth);
    qp.max_rd_atomic = std::min(req.initiator_depth, rep.responder_resources);
    qp.ack_timeout = ack_timeout_of(config.packet_lifetime, rep.target_ack_delay);
    qp.rnr_retry = rep.rnr_retry;
    qp.flow_control = rep.flow_control;
    qp.srq = rep.srq;
    return qp;
}

ReceivedData read_private_data(const wire::Req& req) noexcept {
    return read_parts(req.private_data, wire::is_ip_service(req.service_id), true);
}

ReceivedData read_private_data(const wire::Rep& rep) noexcept {
    return read_parts(rep.private_data, false, true);
}

ReceivedData read_private_data(const wire::SidrReq& req) noexcept {
    return read_parts(req.private_data, wire::is_ip_service(req.service_id), false);
}

}  // namespace cairn::cm
