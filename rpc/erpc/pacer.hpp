// Congestion control and pacing of an endpoint's sessions: which controller, and sessions that wait for their time.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/types.hpp"
#include "lib/roce/pace/congestion_control.hpp"
#include "lib/roce/pace/timing_wheel.hpp"

namespace cairn::erpc {

enum class CongestionAlgorithm : std::uint8_t { None, Timely, Dcqcn };

struct CongestionConfig {
    CongestionAlgorithm algorithm = CongestionAlgorithm::None;
    double link_bits_per_s = 25e9;  // what a session may send at most
};

// A session that has packets to send when its time comes. Packets themselves do not wait in the wheel, as they do in
// eRPC: one that was put there keeps the time that an old rate gave it. With 32 credits and a flow at its share of a
// crowded link nearly all of its packets are there, and a new rate shows at the bottleneck a whole window later: 1 ms
// with 50 flows at 25 Gbit/s and 1 KB, where the queue holds 50 us. No controller is stable over such a lag.
struct PacedSession {
    std::uint64_t token;  // tells it from a later session of this number
    std::uint16_t session;
};

using PacerWheel = roce::TimingWheel<PacedSession>;

// The controller, at link rate, of a session with so many bytes under way at most. nullptr for None.
[[nodiscard]] std::unique_ptr<roce::CongestionControl> make_control(const CongestionConfig& config,
                                                                    std::size_t window_bytes, Instant now);
// The wheel for so many sessions. nullptr for None.
[[nodiscard]] std::unique_ptr<PacerWheel> make_wheel(const CongestionConfig& config, std::uint32_t sessions,
                                                     Instant now);

}  // namespace cairn::erpc
