// What most sources of net_ring_test include, compiled once. Sources include what they use all the same. No guard: the
// compiler refuses one in the file that it precompiles.
#include <gtest/gtest.h>

#include "lib/verbs/connector.hpp"
#include "rpc/erpc/endpoint.hpp"
