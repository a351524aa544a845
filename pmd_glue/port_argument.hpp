// The --port argument of every application: eth:N, uring:ADDRESS, or nothing for the first port there is.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/net/address.hpp"

namespace cairn::pmd {

struct EthdevChoice {
    std::uint16_t port_id = 0;
};
struct SocketChoice {
    net::IpAddress local{};
};
using PortChoice = std::variant<EthdevChoice, SocketChoice>;

// Returns the port that `text` names: "eth:0", "uring:192.0.2.1", or "uring" for the machine's first address. An empty
// text names EAL's first ethernet port, or "uring" if there is none; a line on stderr says which. Errors: no such form,
// port or address.
Result<PortChoice> choose_port(std::string_view text);
// As choose_port(), if only an ethernet port will do, as for raw frames.
Result<std::uint16_t> choose_ethdev(std::string_view text);

// Returns all of EAL's ethernet ports.
[[nodiscard]] std::vector<std::uint16_t> all_ports();

}  // namespace cairn::pmd
