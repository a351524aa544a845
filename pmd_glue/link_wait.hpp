// Waits for the link of a port whose driver asks its peer for it only once.
#pragma once

#include <cstdint>

namespace cairn::pmd {

// Returns when the link is up, or after two seconds. Starts the port again every 50 ms until then. Returns 0, or DPDK's
// code if the port could not be started again: it is stopped then. Called on the main thread, before a worker uses the
// port. net_memif needs it: a server that has not yet noticed the end of its last client refuses the next
// one, and that client's driver does not ask again (DPDK 22.11).
[[nodiscard]] int await_link(std::uint16_t port_id) noexcept;

}  // namespace cairn::pmd
