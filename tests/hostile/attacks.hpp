// The attacks by name. Each runs until its attacker's time is over.
#pragma once

#include <span>

#include "tests/hostile/attacker.hpp"

namespace cairn::hostile {

constexpr unsigned kHosts = 16;  // attacks on servers send in their names

struct Attack {
    const char* name;
    void (*run)(Attacker&);
    const char* what;  // for --help
};

[[nodiscard]] std::span<const Attack> attacks_on_packets();        // any program
[[nodiscard]] std::span<const Attack> attacks_on_sessions();       // eRPC servers
[[nodiscard]] std::span<const Attack> attacks_on_connections();    // RDMA listeners
[[nodiscard]] std::span<const Attack> attacks_by_idle_sessions();  // RPC servers over connections

}  // namespace cairn::hostile
