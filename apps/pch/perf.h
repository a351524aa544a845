// Headers that most sources of the folder of this name include, compiled once. Sources still include the headers that
// they use. There is no guard: the compiler refuses one in the file that it precompiles.
#include "apps/perf/client.hpp"
#include "apps/perf/server.hpp"
