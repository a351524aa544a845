// The own arguments of cairn-testpmd, after EAL's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/common/port_options.hpp"
#include "lib/base/result.hpp"
#include "pmd_glue/forwarder.hpp"

namespace cairn::testpmd {

struct Options {
    std::string mode = "io";
    std::vector<std::string> ports;  // eth:N or uring:ADDRESS; empty: all of EAL's, else a socket
    app::PortOptions each_port{};    // for each port; `port` and addresses are filled in later
    std::string ip;                  // of the first ethernet port; empty: kPrivateIp, if the device reaches no network
                                     // or the mode only sends
    std::string peer = "10.77.0.2";
    std::string peer_mac = "ff:ff:ff:ff:ff:ff";
    std::uint16_t frame_bytes = 114;
    double period_s = 1;
    double duration_s = 0;
    bool spin = false;
    bool json = false;
};

// Parses argv[first...]. --help and --version print and exit with 0. An Error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

// Returns the options of a forwarder. Errors: no such mode; no address.
Result<pmd::ForwardConfig> forward_config(const Options& options);

}  // namespace cairn::testpmd
