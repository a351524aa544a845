// Congestion control and pacing of an endpoint's sessions: which controller, and packets that wait for their time.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/types.hpp"
#include "lib/roce/congestion_control.hpp"
#include "lib/roce/timing_wheel.hpp"

namespace cairn::erpc {

enum class CongestionAlgorithm : std::uint8_t { None, Timely, Dcqcn };

struct CongestionConfig {
    CongestionAlgorithm algorithm = CongestionAlgorithm::None;
    double link_bits_per_s = 25e9;  // what a session may send at most
};

// One packet of a call: number `number` of its common order (see transfer.hpp).
struct PacedPacket {
    std::uint64_t request_number;  // tells it from the slot's later requests
    std::uint32_t number;
    std::uint16_t session;
    std::uint8_t slot;
};

using PacerWheel = roce::TimingWheel<PacedPacket>;

// A session's controller, at link rate. nullptr for None.
[[nodiscard]] std::unique_ptr<roce::CongestionControl> make_control(const CongestionConfig& config, Instant now);
// The wheel for the packets of `sessions` with so many credits each. nullptr for None.
[[nodiscard]] std::unique_ptr<PacerWheel> make_wheel(const CongestionConfig& config, std::uint32_t sessions,
                                                     std::uint32_t credits, Instant now);

}  // namespace cairn::erpc
