#include "lib/port/lossy_port.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::port {

// mutants: port-lossy-receive-burst
std::size_t LossyPort::receive_burst(std::span<PacketRef> out, Instant now) noexcept {
    const std::size_t came = inner_->receive_burst(out, now);
    std::size_t left = 0;
    for (PacketRef& packet : out.first(came)) {
        if (chances_.next() % 1'000'000U < drop_per_million_) {
            counters_.count(LossyCounter::Injected);
            inner_->release_burst({&packet, 1});
        } else {
            out[left++] = packet;
        }
    }
    return left;
}

std::string LossyPort::describe() const {
    return fmt::format("{}; {} of a million packets received are lost on purpose", inner_->describe(),
                       drop_per_million_);
}

// mutants: port-lossy-list-counters
void LossyPort::list_counters(telemetry::CounterList& list) const {
    inner_->list_counters(list);
    list.add(counters_);
}

}  // namespace cairn::port
