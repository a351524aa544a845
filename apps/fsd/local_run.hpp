// Runs a daemon without a network: no EAL, no huge pages, a thread for each shard.
#pragma once

#include "apps/fsd/options.hpp"

namespace cairn::fsd {

// Serves until SIGINT or SIGTERM comes. Returns the exit status.
Result<int> run_locally(const Options& options);

}  // namespace cairn::fsd
