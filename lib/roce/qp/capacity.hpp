// The capacity of a queue pair.
#pragma once

#include <cstdint>

#include "lib/wire/opcode.hpp"

namespace cairn::roce {

// Fixed when the queue pair is made. Each number lies within the limits of limits.hpp (asserted by the queues).
struct QpCapacity {
    std::uint32_t send_slots = 128;
    std::uint32_t receive_slots = 128;
    std::uint32_t max_sges = 4;
    std::uint32_t inline_bytes = 64;
    std::uint32_t window_packets = 256;         // SENDs and WRITEs that may be outstanding
    wire::Service service = wire::Service::Rc;  // or Uc, or Xrc (asserted)
    bool reuses_slots = false;                  // of connections: see SendQueue::reuse_slots()
};

}  // namespace cairn::roce
