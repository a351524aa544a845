// cairn-testpmd's own arguments, behind EAL's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/port/socket_io.hpp"
#include "pmd_glue/forwarder.hpp"

namespace cairn::testpmd {

struct Options {
    std::string mode = "io";
    std::vector<std::string> ports;  // eth:N or uring:ADDRESS; empty: all of EAL's, else a socket
    port::SocketMode socket_mode = port::SocketMode::Defer;
    std::string ip = "10.77.0.1";
    std::string peer = "10.77.0.2";
    std::string peer_mac = "ff:ff:ff:ff:ff:ff";
    std::uint16_t burst = 32;
    std::uint16_t frame_bytes = 114;
    std::uint32_t buffers = 16384;
    std::uint16_t path_mtu_bytes = 1024;
    double period_s = 1;
    double duration_s = 0;
    std::string pcap;
    bool spin = false;
    bool json = false;
};

// Parses argv[first...]. --help prints and exits 0; an error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

// What of them tells a forwarder what to do. Errors: no such mode, no address.
Result<pmd::ForwardConfig> forward_config(const Options& options);

}  // namespace cairn::testpmd
