// The --port argument that every application takes: eth:N, or nothing for the first port.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace cairn::pmd {

// The ethdev port that `text` names. With an empty text the first one, which a line on stderr says.
// Errors: no such form, no such port, no port at all.
Result<std::uint16_t> choose_port(std::string_view text);

// All of EAL's ethernet ports.
[[nodiscard]] std::vector<std::uint16_t> all_ports();

}  // namespace cairn::pmd
