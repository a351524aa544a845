// The own arguments of cairn-rpcbench, behind EAL's.
#pragma once

#include <cstdint>
#include <string>

#include "apps/common/carrier_options.hpp"
#include "lib/base/result.hpp"
#include "rpc/erpc/pacer.hpp"

namespace cairn::rpcbench {

constexpr std::uint16_t kSessionsMax = 32767;  // of an lcore, as a client and as a server

struct Options {
    app::CarrierOptions carrier{};
    std::string system = "erpc";
    bool server = false;
    std::string peer;
    std::uint16_t service = 31850;
    std::uint32_t qpn = 0x100;
    std::uint32_t qkey = 0x0205;
    std::uint32_t request_bytes = 32;
    std::uint32_t response_bytes = 32;
    std::uint32_t window = 60;  // calls outstanding over all sessions of an lcore
    double rate_per_s = 0;      // calls that the process begins; 0: as many as the window allows
    bool check = false;
    std::uint32_t sessions = 8;
    std::uint32_t credits = 32;
    erpc::CongestionConfig congestion{};
    double link_gbit = 100;
    bool go_back_n = false;
    double duration_s = 5;
    std::uint32_t deadline_ms = 0;
    std::uint32_t peer_timeout_ms = 2000;
    bool spin = false;
    bool json = false;
};

// Parses argv[first...]. --help and --version print and exit with 0. An Error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

}  // namespace cairn::rpcbench
