// cairn-pktgen's own arguments, behind EAL's.
#pragma once

#include <string>

#include "lib/base/result.hpp"
#include "lib/port/socket_io.hpp"

namespace cairn::pktgen {

struct Options {
    std::string script;
    std::string port;  // eth:N or uring:ADDRESS; empty: the first there is
    port::SocketMode socket_mode = port::SocketMode::Defer;
    std::string pcap;
    bool spin = false;
    bool json = false;
};

// Parses argv[first...]. --help prints and exits 0; an error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

}  // namespace cairn::pktgen
