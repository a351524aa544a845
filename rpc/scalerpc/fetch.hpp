// READs of the requests that wait at a client.
#pragma once

#include <cstdint>

#include "rpc/scalerpc/pools.hpp"
#include "rpc/scalerpc/statistics.hpp"

namespace cairn::scalerpc {

// Posts READs of the entry's requests into the blocks of the session, which has a berth. Neighbouring small ones are
// one. Returns how many requests they read: fewer than there are if the send queue has no room for all.
std::uint32_t fetch(const EndpointConfig& config, const Pools& pools, Session& session, const Entry& entry,
                    Statistics& statistics) noexcept;

}  // namespace cairn::scalerpc
