// The headers that most sources of the folder of this name include, compiled once. Sources still include all that they
// use. There is no guard: the compiler refuses one in the file that it precompiles.
#include <gtest/gtest.h>

#include "lib/sim/verbs/verbs_scenario.hpp"
#include "rpc/sim/erpc_scenario.hpp"
#include "rpc/sim/linked_scenario.hpp"
