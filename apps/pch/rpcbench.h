// Headers that most sources of the folder of this name include, compiled once. Sources still include the headers that
// they use. There is no guard: the compiler refuses one in the file that it precompiles.
#include "rpc/copyrpc/endpoint.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/scalerpc/endpoint.hpp"
