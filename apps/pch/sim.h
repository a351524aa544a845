// What most sources of the folder of this name include, compiled once. Sources include what they use all the same. No
// guard: the compiler refuses one in the file that it precompiles.
#include "apps/sim/crash.hpp"
#include "apps/sim/report.hpp"
#include "apps/sim/swarm.hpp"
