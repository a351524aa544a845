// What became of each frame of a history, one line for each copy.
#pragma once

#include <string>

#include "tests/sim/world_plan.hpp"

namespace cairn::simulate {

// "sent  from -> to  packet type, session, request, packet number, bytes  fate". Bytes are the frame's.
[[nodiscard]] std::string trace_line(const sim::WorldPlan& plan, const sim::Network::Passage& passage,
                                     const sim::Frame& frame);

}  // namespace cairn::simulate
