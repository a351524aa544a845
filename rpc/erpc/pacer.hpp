// Congestion control and pacing of an endpoint's sessions: the controller, and the wheel of sessions that wait.
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
    double link_bits_per_s = 25e9;  // the highest rate of a session
};

// A session that has packets to send when its time comes. Departs: in the eRPC paper the packets themselves wait in the
// wheel. Such a packet keeps the time that an old rate gave it. With 32 credits on a crowded link nearly all packets of
// a flow wait there. So a new rate shows at the bottleneck a whole window later. With 50 flows at 25 Gbit/s and 1 KB
// that is 1 ms, while the queue holds 50 us. No controller is stable over such a lag.
struct PacedSession {
    std::uint64_t token;  // differs from that of a later session with the same number
    std::uint16_t session;
};

using PacerWheel = roce::TimingWheel<PacedSession>;

// Returns a controller at link rate for a session with at most `window_bytes` under way, or nullptr for None.
[[nodiscard]] std::unique_ptr<roce::CongestionControl> make_control(const CongestionConfig& config,
                                                                    std::size_t window_bytes, Instant now);
// Returns the wheel for `sessions`, or nullptr for None.
[[nodiscard]] std::unique_ptr<PacerWheel> make_wheel(const CongestionConfig& config, std::uint32_t sessions,
                                                     Instant now);

}  // namespace cairn::erpc
