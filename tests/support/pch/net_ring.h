// The headers that most sources of net_ring_test include, compiled once. Sources still include all that they use. There
// is no guard: the compiler refuses one in the file that it precompiles.
#include <gtest/gtest.h>

#include "lib/verbs/connector.hpp"
#include "rpc/erpc/endpoint.hpp"
