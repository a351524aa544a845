// What most sources of the folder of this name include, compiled once. Sources include what they use all the same. No
// guard: the compiler refuses one in the file that it precompiles.
#include <fmt/format.h>

#include "lib/telemetry/counters.hpp"
#include "lib/worker/worker.hpp"
