// Who asks a shard.
#pragma once

#include "fs/sim/shard_client.hpp"

namespace cairn::test {

using fs::ShardClient;
using fs::Told;

}  // namespace cairn::test
