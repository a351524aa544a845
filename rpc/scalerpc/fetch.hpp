// READs of requests that wait at a client.
#pragma once

#include <cstdint>

#include "rpc/scalerpc/pools.hpp"
#include "rpc/scalerpc/statistics.hpp"

namespace cairn::scalerpc {

// Posts READs of the entry's requests into the blocks of the session, which has a pool slot. Small neighbours share one
// READ. Returns how many requests are READ, which are fewer if the send queue has no room for all.
std::uint32_t fetch(const EndpointConfig& config, const Pools& pools, Session& session, const Entry& entry,
                    Statistics& statistics) noexcept;

}  // namespace cairn::scalerpc
