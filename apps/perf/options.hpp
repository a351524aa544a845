// cairn-perf's own arguments, behind EAL's.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"
#include "lib/port/socket_io.hpp"
#include "lib/roce/engine_config.hpp"

namespace cairn::perf {

enum class Operation : std::uint8_t { Send, Write, Read, CompareSwap, FetchAdd, Count };
enum class Test : std::uint8_t { Bandwidth, Latency, Count };
enum class Transport : std::uint8_t { Rc, Uc, Ud, Count };

[[nodiscard]] const char* name_of(Operation operation) noexcept;
[[nodiscard]] const char* name_of(Test test) noexcept;
[[nodiscard]] const char* name_of(Transport transport) noexcept;
[[nodiscard]] constexpr bool is_atomic(Operation operation) noexcept {
    return operation == Operation::CompareSwap || operation == Operation::FetchAdd;
}

struct Options {
    std::string port;  // eth:N or uring:ADDRESS; empty: the first there is
    port::SocketMode socket_mode = port::SocketMode::Defer;
    bool server = false;
    bool once = false;  // a server ends with its first client
    std::string ip = "10.77.0.1";
    std::uint32_t prefix_bits = 0;
    std::string gateway;
    std::string peer;
    std::uint16_t service_port = 18515;
    bool rping = false;         // librdmacm's exchange instead of a measurement
    std::uint64_t pings = 100;  // of an rping client
    Transport transport = Transport::Rc;
    Operation operation = Operation::Write;
    Test test = Test::Bandwidth;
    std::uint32_t message_bytes = 65536;
    bool all_sizes = false;
    std::uint32_t depth = 64;  // operations outstanding over all queue pairs
    std::uint32_t queue_pairs = 1;
    std::uint32_t window_packets = 256;
    std::uint32_t path_mtu_bytes = 1024;
    std::uint32_t traffic_class = 0;
    std::uint32_t burst = 32;
    std::uint32_t buffers = 16384;
    std::uint32_t data_room_bytes = 0;
    double duration_s = 5;
    std::uint32_t drop_per_million = 0;
    bool go_back_n = false;  // no selective retransmission
    roce::ConnectionControl congestion = roce::ConnectionControl::Dcqcn;
    double link_gbit = 25;
    bool check = false;
    std::string pcap;
    bool spin = false;
    bool json = false;
};

// Parses argv[first...]. --help prints and exits 0; an error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

}  // namespace cairn::perf
