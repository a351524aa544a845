// The own arguments of cairn-pktgen, after EAL's.
#pragma once

#include <string>

#include "apps/common/port_options.hpp"
#include "lib/base/result.hpp"

namespace cairn::pktgen {

struct Options {
    std::string script;
    app::PortOptions ports{};
    bool spin = false;
    bool json = false;
};

// Parses argv[first...]. --help and --version print and exit with 0. An Error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

}  // namespace cairn::pktgen
