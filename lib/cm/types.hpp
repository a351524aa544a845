// The requests, answers and queue pair attributes that users exchange with the connection manager.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/sip_hash.hpp"
#include "lib/base/types.hpp"
#include "lib/cm/name_share.hpp"
#include "lib/net/address.hpp"
#include "lib/wire/cm_request.hpp"
#include "lib/wire/cm_sidr.hpp"
#include "lib/wire/ip_cm.hpp"

namespace cairn::cm {

// Drawn at random. No two connections of a manager have the same one at a time; a free one may be drawn again.
using ConnectionId = wire::CommId;

// The two ends of a management datagram's way.
struct Route {
    net::IpAddress local{};
    net::IpAddress remote{};

    friend bool operator==(const Route&, const Route&) noexcept = default;
};

// A datagram to be sent to queue pair 1 of `route.remote`.
struct OutMad {
    Route route{};
    wire::MadBytes bytes{};
};

// How a request is abandoned: with a refusal, or as if it had not come, since its user has no room. In the second case
// its sender asks again.
enum class Parting : std::uint8_t { Refuses, Ignores };

// One configuration for all connections of a manager.
struct Config {
    SipKey seed{1, 0};                           // another one in each life of the program; hard to guess
    NameShare names{};                           // if several managers serve one host
    std::uint64_t ca_guid = 0;                   // of the adapter
    std::uint32_t max_connections = 65536;       // including connections that ended lately; <= 2^20
    std::uint32_t max_datagram_requests = 4096;  // outstanding, in each direction
    std::uint32_t max_queued = 4096;             // messages that wait to be sent; beyond it no input is taken
    wire::CmTimeout response_timeout{17};        // time in which both ends answer: 0.54 s
    wire::CmTimeout packet_lifetime{12};         // of the network, one way: 17 ms
    wire::CmTimeout ack_delay{15};               // the longest wait of a packet for our acknowledgement: 0.13 s
    wire::CmTimeout service_timeout{22};         // asked for if the user takes long: 17 s
    wire::CmRetries max_retries{15};
};

// Private data by value. Received data have the size of their field, also if the sender used only a part of it.
struct PrivateBytes {
    std::array<std::uint8_t, 224> octets{};
    std::uint8_t size = 0;

    [[nodiscard]] static PrivateBytes of(std::span<const std::uint8_t> bytes) noexcept {
        PrivateBytes made;
        made.size = static_cast<std::uint8_t>(std::min(bytes.size(), made.octets.size()));
        std::copy_n(bytes.begin(), made.size, made.octets.begin());
        return made;
    }
    [[nodiscard]] std::span<const std::uint8_t> view() const noexcept { return std::span(octets).first(size); }
};

// The attributes with which a queue pair goes to RTR and RTS, apart from its own choices.
struct QpParameters {
    wire::TransportService transport =
        wire::TransportService::Rc;  // or Uc, or Extended: XRC, where the asking end is the initiator
    Qpn remote_qpn{};
    Psn send_psn{};  // the first that this end sends, as the peer expects
    std::uint32_t path_mtu_bytes = 1024;
    Pkey pkey{0xffff};
    std::uint8_t max_dest_rd_atomic = 0;  // upper bound: READs and atomics that the peer will have outstanding
    std::uint8_t max_rd_atomic = 0;       // upper bound: READs and atomics that the peer answers at a time
    wire::CmTimeout ack_timeout{};        // the longest silence before packets are sent again
    wire::RetryCount retry_count{};
    wire::RetryCount rnr_retry{};
    bool flow_control = false;  // end to end, by credits
    bool srq = false;           // the peer's queue pair shares its receive queue
    wire::FlowLabel flow_label{};
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 64;
};

// The two ends of a connection by IP and port, for services with is_ip_service() (annex A11).
struct IpEnds {
    net::IpAddress source{};  // the end that asks
    std::uint16_t source_port = 0;
    net::IpAddress destination{};
};

struct ConnectRequest {
    Route route{};
    wire::ServiceId service{};
    std::uint16_t source_port = 0;                                  // of a service with is_ip_service()
    wire::TransportService transport = wire::TransportService::Rc;  // or Uc, or Extended: XRC, from an initiator
    Qpn qpn{};
    Psn starting_psn{};  // the first that the peer sends; hard to guess
    std::uint32_t path_mtu_bytes = 1024;
    Pkey pkey{0xffff};
    std::uint8_t responder_resources = 1;  // READs and atomics that our queue pair answers at a time
    std::uint8_t initiator_depth = 1;      // READs and atomics that it has outstanding at most
    wire::RetryCount retry_count{7};
    wire::RetryCount rnr_retry{7};
    bool srq = false;
    bool flow_control = false;
    wire::FlowLabel flow_label{};
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 64;
    std::uint32_t features = wire::kFeaturesOfRc;  // offered; any of them takes 8 bytes of the private data
    std::span<const std::uint8_t> private_data{};  // at most 92 bytes; 56 with is_ip_service()
};

struct AcceptParameters {
    Qpn qpn{};
    Psn starting_psn{};                    // as in ConnectRequest
    std::uint8_t responder_resources = 1;  // at most the offered number is promised
    std::uint8_t initiator_depth = 1;
    wire::RetryCount rnr_retry{7};
    bool srq = false;
    bool flow_control = false;
    std::uint32_t features = 0;                    // agreed to; any of them takes 8 bytes of the private data
    std::span<const std::uint8_t> private_data{};  // at most 196 bytes
};

// The reason to refuse a connection, or a request for one.
struct Refusal {
    wire::RejectReason reason = wire::RejectReason::Consumer;
    std::span<const std::uint8_t> info{};          // at most 72 bytes
    std::span<const std::uint8_t> private_data{};  // at most 148 bytes
};

// The answer of a service over datagrams.
struct DatagramService {
    Qpn qpn{};
    Qkey qkey{};
    std::span<const std::uint8_t> private_data{};  // at most 136 bytes
};

struct ResolveRequest {
    Route route{};
    wire::ServiceId service{};
    std::uint16_t source_port = 0;  // of a service with is_ip_service()
    Pkey pkey{0xffff};
    std::span<const std::uint8_t> private_data{};  // at most 216 bytes; 180 with is_ip_service()
};

// The reason why a call did nothing.
enum class CallRefusal : std::uint8_t {
    UnknownConnection,  // it has ended or never existed
    WrongState,         // the call makes no sense in the connection's present state
    PrivateDataTooLong,
    BadParameters,
    BadAddress,  // no single host has it, or its family is not ours
    NoRoom,      // the limit of connections or requests is reached
    ServiceTaken,
    UnknownService,
};

}  // namespace cairn::cm
