// Headers that most sources of the folder of this name include, compiled once. Sources still include the headers that
// they use. There is no guard: the compiler refuses one in the file that it precompiles.
#include "apps/sim/crash.hpp"
#include "apps/sim/report.hpp"
#include "apps/sim/swarm.hpp"
