// cairn-rpcbench's own arguments, behind EAL's.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"
#include "lib/port/socket_io.hpp"
#include "rpc/erpc/pacer.hpp"

namespace cairn::rpcbench {

struct Options {
    std::string system = "erpc";
    std::string port;  // eth:N or uring:ADDRESS; empty: the first there is
    port::SocketMode socket_mode = port::SocketMode::Defer;
    bool server = false;
    std::string ip = "10.77.0.1";
    std::uint32_t prefix_bits = 0;
    std::string gateway;
    std::string peer;
    std::uint16_t service = 31850;
    std::uint32_t qpn = 0x100;
    std::uint32_t qkey = 0x0205;
    std::uint32_t request_bytes = 32;
    std::uint32_t response_bytes = 32;
    std::uint32_t window = 60;
    std::uint32_t sessions = 8;
    std::uint32_t credits = 32;
    erpc::CongestionConfig congestion{};
    double link_gbit = 100;
    bool go_back_n = false;
    std::uint32_t path_mtu_bytes = 1024;
    std::uint32_t burst = 16;
    std::uint32_t traffic_class = 0;
    std::uint32_t buffers = 16384;
    std::uint32_t data_room_bytes = 0;
    double duration_s = 5;
    std::uint32_t drop_per_million = 0;
    std::uint32_t deadline_ms = 0;
    std::uint32_t peer_timeout_ms = 2000;
    std::string pcap;
    bool pcap_all = false;
    bool spin = false;
    bool json = false;
};

// Parses argv[first...]. --help prints and exits 0; an error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

}  // namespace cairn::rpcbench
