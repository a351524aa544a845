// What a user of the connection manager tells it and is told: requests, answers, queue pair attributes.
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

using ConnectionId = wire::CommId;  // not given again while anybody may still mean the old one

// Between whom a management datagram travels.
struct Route {
    net::IpAddress local{};
    net::IpAddress remote{};

    friend bool operator==(const Route&, const Route&) noexcept = default;
};

// A datagram to be sent to the queue pair 1 of `route.remote`.
struct OutMad {
    Route route{};
    wire::MadBytes bytes{};
};

// One for all connections of a manager.
struct Config {
    SipKey seed{1, 0};                           // another one in each life of the program, hard to guess
    NameShare names{};                           // where several managers serve one host
    std::uint64_t ca_guid = 0;                   // of the adapter
    std::uint32_t max_connections = 65536;       // with those that ended lately; <= 2^20
    std::uint32_t max_datagram_requests = 4096;  // outstanding ones each way
    std::uint32_t max_queued = 4096;             // messages waiting to be sent before more input is refused
    wire::CmTimeout response_timeout{17};        // within which both ends answer: 0.54 s
    wire::CmTimeout packet_lifetime{12};         // of the network, one way: 17 ms
    wire::CmTimeout ack_delay{15};               // the longest that a packet waits for our acknowledgement: 0.13 s
    wire::CmTimeout service_timeout{22};         // what we ask for when the user takes long: 17 s
    wire::CmRetries max_retries{15};
};

// Private data by value. Received data has the size of its field, whatever the sender meant of it.
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

// What a queue pair must know to talk to its peer: all that its way to RTR and RTS takes besides its own choices.
struct QpParameters {
    wire::TransportService transport =
        wire::TransportService::Rc;  // or Uc, or Extended: XRC, who asks is the initiator
    Qpn remote_qpn{};
    Psn send_psn{};  // the first that we send: the peer expects it
    std::uint32_t path_mtu_bytes = 1024;
    Pkey pkey{0xffff};
    std::uint8_t max_dest_rd_atomic = 0;  // at most: READs and atomics that the peer will have outstanding
    std::uint8_t max_rd_atomic = 0;       // at most: that it answers at a time
    wire::CmTimeout ack_timeout{};        // the longest silence before packets are sent again
    wire::RetryCount retry_count{};
    wire::RetryCount rnr_retry{};
    bool flow_control = false;  // end to end, by credits
    wire::FlowLabel flow_label{};
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 64;
};

// The two ends of a connection by IP and port, of services that is_ip_service() (annex A11).
struct IpEnds {
    net::IpAddress source{};  // who asks
    std::uint16_t source_port = 0;
    net::IpAddress destination{};
};

struct ConnectRequest {
    Route route{};
    wire::ServiceId service{};
    std::uint16_t source_port = 0;                                  // of an is_ip_service()
    wire::TransportService transport = wire::TransportService::Rc;  // or Uc, or Extended: XRC, from an initiator
    Qpn qpn{};
    Psn starting_psn{};  // the first that the peer is to send; hard to guess
    std::uint32_t path_mtu_bytes = 1024;
    Pkey pkey{0xffff};
    std::uint8_t responder_resources = 1;  // READs and atomics that our queue pair answers at a time
    std::uint8_t initiator_depth = 1;      // and asks at most
    wire::RetryCount retry_count{7};
    wire::RetryCount rnr_retry{7};
    bool srq = false;
    bool flow_control = false;
    wire::FlowLabel flow_label{};
    std::uint8_t traffic_class = 0;
    std::uint8_t hop_limit = 64;
    std::uint32_t features = wire::kFeatureSelective;  // offered; they take 8 bytes of the private data, none take none
    std::span<const std::uint8_t> private_data{};      // 92 bytes at most, of an is_ip_service() 56
};

struct AcceptParameters {
    Qpn qpn{};
    Psn starting_psn{};                    // as above
    std::uint8_t responder_resources = 1;  // not more than offered is promised
    std::uint8_t initiator_depth = 1;
    wire::RetryCount rnr_retry{7};
    bool srq = false;
    bool flow_control = false;
    std::uint32_t features = 0;                    // those agreed to; they take 8 bytes of the private data
    std::span<const std::uint8_t> private_data{};  // 196 bytes at most
};

// Why a connection or a request for one is refused.
struct Refusal {
    wire::RejectReason reason = wire::RejectReason::Consumer;
    std::span<const std::uint8_t> info{};          // 72 bytes at most
    std::span<const std::uint8_t> private_data{};  // 148 bytes at most
};

// What a service over datagrams tells whoever asks.
struct DatagramService {
    Qpn qpn{};
    Qkey qkey{};
    std::span<const std::uint8_t> private_data{};  // 136 bytes at most
};

struct ResolveRequest {
    Route route{};
    wire::ServiceId service{};
    std::uint16_t source_port = 0;  // of an is_ip_service()
    Pkey pkey{0xffff};
    std::span<const std::uint8_t> private_data{};  // 216 bytes at most, of an is_ip_service() 180
};

// Why a call did nothing.
enum class CallStatus : std::uint8_t {
    Ok,
    UnknownConnection,  // it has ended, or never was
    WrongState,         // what is asked makes no sense in the state that the connection is in by now
    PrivateDataTooLong,
    BadParameters,
    BadAddress,  // no host's, or of another family than ours
    NoRoom,      // as many connections or requests as there may be
    ServiceTaken,
    UnknownService,
};

}  // namespace cairn::cm
