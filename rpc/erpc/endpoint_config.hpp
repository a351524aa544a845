// The configuration of an endpoint.
#pragma once

#include <cstdint>

#include "lib/base/secret_numbers.hpp"
#include "lib/roce/ud/mux.hpp"
#include "lib/telemetry/histogram.hpp"
#include "rpc/erpc/limits.hpp"
#include "rpc/erpc/pacer.hpp"

namespace cairn::rpc {
class BackgroundPool;
}

namespace cairn::erpc {

struct EndpointConfig {
    roce::UdConfig qp{};
    std::uint16_t sessions_max = 1024;
    std::uint32_t calls_max = 4096;  // calls in slots and backlogs of all sessions together
    std::uint16_t credits = kDefaultCredits;
    SipKey seed{};  // hard to guess, and different for each endpoint; tokens and numbers follow from it
    Duration peer_timeout = kPeerTimeout;  // kLeastPeerTimeout or more
    std::uint32_t max_message_bytes = kMaxMessageBytes;
    std::uint32_t transfers_max =
        256;                 // messages of several packets under way, in each direction; 1 ... kMostTransfers
    bool selective = true;   // holds packets that arrive early; otherwise all packets after a gap come again
    bool short_path = true;  // small calls take the short path; results are the same without it
    CongestionConfig congestion{};
    // The threads of background handlers. The pool outlives the endpoint, and serves no other endpoint meanwhile.
    rpc::BackgroundPool* background = nullptr;
    // If given, takes the round trips (ns) of packets of large messages. It outlives the endpoint.
    telemetry::Histogram* round_trips = nullptr;
};

}  // namespace cairn::erpc
