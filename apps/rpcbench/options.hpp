// The own arguments of cairn-rpcbench, after EAL's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/common/port_options.hpp"
#include "lib/base/result.hpp"
#include "lib/roce/engine_config.hpp"
#include "rpc/copyrpc/endpoint_config.hpp"
#include "rpc/erpc/pacer.hpp"
#include "rpc/scalerpc/endpoint_config.hpp"

namespace cairn::rpcbench {

constexpr std::uint16_t kSessionsMax = 32767;  // of an lcore, as a client and as a server

enum class SystemKind : std::uint8_t { Erpc, Copyrpc, Scalerpc, Rawwrite, Ud };
// Returns the name as in --system and in JSON.
[[nodiscard]] const char* name_of(SystemKind system) noexcept;

// Clients that each have a session of their own, instead of `window` calls over all sessions.
struct ClientOptions {
    std::uint32_t count = 0;      // of an lcore; 0: none
    std::uint32_t batch = 1;      // calls that a client begins at once
    std::uint32_t think_us = 0;   // between its batches
    double active_percent = 100;  // the others are connected only
};

struct ErpcOptions {
    std::uint32_t qpn = 0x100;
    std::uint32_t qkey = 0x0205;
    std::uint32_t credits = 32;  // packets of a session in flight
    erpc::CongestionConfig congestion{};
    double link_gbit = 100;
    bool go_back_n = false;
};

struct CopyrpcOptions {
    std::uint32_t ring_bytes = 0;  // of each session, for received messages; 0: follows from the size of the calls
    std::uint32_t receives = copyrpc::EndpointConfig{}.receives;  // batches of a session's peer in flight
    copyrpc::Flow flow = copyrpc::Flow::Credit;
    std::uint32_t hold_messages = 0;  // that a batch is to have; 0: no batch is held
};

struct ScalerpcOptions {
    std::uint32_t block_bytes = 0;  // 0: by --req and --resp
    std::uint32_t blocks = 16;      // of a session
    std::uint32_t group = 40;
    std::uint32_t slice_us = 100;
    scalerpc::Features features{};
    bool serves_time = false;  // this server gives the time to servers with slices in step
    std::string time_server;   // the IP address of the server that this one follows; empty: none
    std::uint16_t time_service = 31851;
    std::uint32_t cohorts = 2;         // of servers in step
    std::uint32_t cohort = 0;          // of a client of such servers
    std::uint32_t work_us = 0;         // that a server's handlers compute
    std::uint32_t legacy_threads = 0;  // of a worker, for types with handlers that take longer than a slice; 0: none

    // Returns whether slices are in step with those of other servers.
    [[nodiscard]] bool keeps_time() const noexcept { return serves_time || !time_server.empty(); }
};
constexpr std::uint16_t kTimeSessions = 64;  // followers of a time server's worker

struct MeasuredTime {
    double duration_s = 5;
    std::uint32_t warm_up_ms = 500;  // before it
};

struct Options {
    app::PortOptions ports{};
    SystemKind system = SystemKind::Erpc;
    bool server = false;
    std::string peer;
    std::uint16_t service = 31850;
    std::uint32_t request_bytes = 32;
    std::uint32_t response_bytes = 32;
    std::uint32_t window = 60;  // calls outstanding over all sessions of an lcore
    ClientOptions clients{};
    double rate_per_s = 0;  // calls that the process begins; 0: as many as the window allows
    bool check = false;
    std::uint32_t sessions = 8;                    // of an lcore; the most that a server of connections takes
    std::optional<std::uint16_t> host_sessions{};  // of these, of one host; 0: its share; nullopt: all
    ErpcOptions erpc{};
    CopyrpcOptions copyrpc{};
    ScalerpcOptions scalerpc{};
    roce::ContextCacheEmulation context_cache{};
    MeasuredTime time{};
    std::uint32_t deadline_ms = 0;
    std::uint32_t peer_timeout_ms = 2000;
    bool stages = false;  // see StageWatch
    bool spin = false;
    bool json = false;
};

// Parses argv[first...]. --help and --version print and exit with 0. An Error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

}  // namespace cairn::rpcbench
