// What happens in a simulated file system, one line for each call, answer, message, death and restart.
#pragma once

#include <string>

#include "fs/sim/cluster_event.hpp"

namespace cairn::simulate {

// "time  who -> whom  call N, what is asked"; of an answer how it ends; of messages between shards their kind.
[[nodiscard]] std::string trace_line(const fs::ClusterEvent& event);

}  // namespace cairn::simulate
