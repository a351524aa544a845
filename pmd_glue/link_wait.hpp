// Waits for the link of a port whose driver asks its peer for it only once.
#pragma once

#include <cstdint>

namespace cairn::pmd {

// Waits for the link, for two seconds at most, and starts the port again every 50 ms. Returns 0, or DPDK's code if the
// port could not be started again: it is stopped then. Called on the main thread, before a worker uses the port.
// net_memif needs it. A server that has not yet noticed the end of its last client refuses the next one. That client's
// driver does not ask again (DPDK 22.11).
[[nodiscard]] int await_link(std::uint16_t port_id) noexcept;

}  // namespace cairn::pmd
