// cairn-sim --sync: clients of several ScaleRPC servers, simulated, with synchronised slices or without.
#pragma once

#include "apps/sim/options.hpp"

namespace cairn::simulate {

// Prints a line for each way to synchronise, and at last one JSON object if asked for.
void run_sync(const Options& options);

}  // namespace cairn::simulate
