// cairn-sim --incast: the eRPC paper's incast experiment, simulated, next to the paper's measurements; or that of
// connections.
#pragma once

#include "apps/sim/options.hpp"

namespace cairn::simulate {

// Runs the experiments of `options`. Prints a line as each is over, and at last one JSON object if asked for.
void run_incasts(const Options& options);

}  // namespace cairn::simulate
