// The trace of a simulated file system, one line for each call, answer, message, death and restart.
#pragma once

#include <string>

#include "fs/sim/cluster_event.hpp"

namespace cairn::simulate {

// Returns "time sender -> receiver call N, the request"; for an answer its result; for messages between shards their
// kind.
[[nodiscard]] std::string trace_line(const fs::ClusterEvent& event);

}  // namespace cairn::simulate
