// The client that a call to a shard comes from.
#pragma once

#include "fs/sim/shard_client.hpp"

namespace cairn::test {

using fs::ShardClient;
using fs::Told;

}  // namespace cairn::test
