// What an endpoint is told when it is made.
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
    std::uint32_t calls_max = 4096;  // outstanding and backlogged, all sessions together
    std::uint16_t credits = kDefaultCredits;
    SipKey seed{};  // hard to guess, no other endpoint's: tokens and numbers follow from it
    Duration peer_timeout = kPeerTimeout;
    std::uint32_t max_message_bytes = kMaxMessageBytes;
    std::uint32_t transfers_max = 256;  // messages of several packets under way, in each direction
    bool selective = true;              // packets that arrive early are held; else all behind a gap come again
    bool short_path = true;             // small calls take it; without, all take the long one, to the same end
    CongestionConfig congestion{};
    rpc::BackgroundPool* background = nullptr;  // for set_background_handler(); outlives the endpoint, serves no other
    // The round trips (ns) of packets of large messages are recorded here, if given; outlives the endpoint.
    telemetry::Histogram* round_trips = nullptr;
};

}  // namespace cairn::erpc
