#include <algorithm>
#include <utility>

#include "pmd_glue/echo.hpp"

namespace cairn::pmd {

Echo::Echo(ForwardMode mode, std::uint16_t burst, std::vector<std::unique_ptr<port::Port>> ports)
    : mode_(mode), burst_packets_(std::clamp<std::size_t>(burst, 1, kMaxBurst)), lanes_(ports.size()) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
        lanes_[i].port = std::move(ports[i]);
    }
}

Echo::~Echo() = default;

std::string Echo::reasons_text(std::size_t port) const {
    const Lane& lane = lanes_[port];
    telemetry::CounterList list;
    lane.port->list_counters(list);
    return list.add(lane.drops).text();
}

}  // namespace cairn::pmd
