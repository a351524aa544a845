// Paths to hosts and groups.
#pragma once

#include <infiniband/verbs.h>

#include "lib/ibverbs/objects.hpp"

namespace cairn::ibverbs {

[[nodiscard]] net::IpAddress to_address(const ibv_gid& gid) noexcept;
[[nodiscard]] ibv_gid to_gid(const net::IpAddress& address) noexcept;

// Writes the path of the address vector to `path`. Needs the lock. Returns an errno value. EINVAL: the vector names no
// host of the device's address family, or none of its GIDs. ENOMEM: there are too many paths.
[[nodiscard]] int open_path(Adapter& adapter, const ibv_ah_attr& wanted, port::Path*& path) noexcept;

}  // namespace cairn::ibverbs
