// Headers that most sources of the folder of this name include, compiled once. Sources still include the headers that
// they use. There is no guard: the compiler refuses one in the file that it precompiles.
#include <fmt/format.h>

#include "lib/telemetry/counters.hpp"
#include "lib/worker/worker.hpp"
