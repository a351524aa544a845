#include "rpc/erpc/pacer.hpp"

#include "lib/roce/pace/dcqcn.hpp"
#include "lib/roce/pace/timely.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::erpc {

namespace {

constexpr Duration kHorizon = milliseconds(10);  // 32 packets of 4096 bytes, sent again, at the least rate of 15 MB/s

}  // namespace

std::unique_ptr<roce::CongestionControl> make_control(const CongestionConfig& config, std::size_t window_bytes,
                                                      Instant now) {
    const double bytes_per_s = config.link_bits_per_s / 8;
    switch (config.algorithm) {
        case CongestionAlgorithm::None:
            break;
        case CongestionAlgorithm::Timely:
            return std::make_unique<roce::Timely>(bytes_per_s, now,
                                                  roce::timely_per_round_trip(bytes_per_s, window_bytes));
        case CongestionAlgorithm::Dcqcn:
            return std::make_unique<roce::Dcqcn>(bytes_per_s, now, roce::dcqcn_for_link(bytes_per_s));
    }
    return nullptr;
}

std::unique_ptr<PacerWheel> make_wheel(const CongestionConfig& config, std::uint32_t sessions, Instant now) {
    if (config.algorithm == CongestionAlgorithm::None) {
        return nullptr;
    }
    return std::make_unique<PacerWheel>(kHorizon, sessions * 2, now);  // some have ended
}

}  // namespace cairn::erpc
