// The own arguments of cairn-perf, after EAL's.
#pragma once

#include <cstdint>
#include <string>

#include "apps/common/port_options.hpp"
#include "lib/base/result.hpp"
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
    app::PortOptions ports{};  // a path MTU of 0, the default, means the largest that both ends carry
    bool server = false;
    bool once = false;  // the server ends with its first client
    std::string peer;
    std::uint16_t service_port = 18515;
    bool rping = false;         // librdmacm's exchange instead of a measurement
    std::uint64_t pings = 100;  // by an rping client
    Transport transport = Transport::Rc;
    Operation operation = Operation::Write;
    Test test = Test::Bandwidth;
    std::uint32_t message_bytes = 65536;
    bool size_given = false;
    bool all_sizes = false;
    bool both_ways = false;    // the server does the same operation to its client
    std::uint32_t depth = 64;  // operations outstanding over all queue pairs
    std::uint32_t queue_pairs = 1;
    bool queue_pairs_given = false;
    std::uint32_t packet_window = 256;
    std::uint64_t iterations = 0;  // 0: as many as fit into `duration_s`
    double duration_s = 5;
    bool go_back_n = false;  // without selective retransmission
    roce::ConnectionControl congestion = roce::ConnectionControl::Dcqcn;
    double link_gbit = 25;
    roce::ContextCacheEmulation context_cache{};
    bool check = false;
    bool spin = false;
    bool json = false;
};

// Parses argv[first...]. --help and --version print and exit with 0. An Error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

}  // namespace cairn::perf
