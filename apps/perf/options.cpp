#include "apps/perf/options.hpp"

#include <fmt/format.h>

#include <array>

#include "apps/common/choice.hpp"
#include "apps/common/command_line.hpp"
#include "apps/common/emulation.hpp"
#include "lib/roce/qp/limits.hpp"

namespace cairn::perf {

namespace {

constexpr std::uint32_t kLatencyBytes = 2;
constexpr std::uint16_t kRpingPort = 7174;
constexpr std::uint32_t kRpingBytes = 64;
constexpr std::uint32_t kRpingBytesLeast = 16;
constexpr std::uint32_t kRpingBytesMost = 65536;

void declare(CLI::App& app, Options& options) {
    app.add_flag("--server", options.server, "serve clients, whatever they test, until a signal");
    app.add_flag("--once", options.once, "end with the first client");
    app.add_option("--peer", options.peer, "the server's IP address: be a client");
    app::add_service(app, options.service_port);
    app::add_ports(app, options.ports);
    app::add_faults(app, options.ports);
    app::add_context_cache(app, options.context_cache);
    app::add_path_mtu(app, options.ports.path_mtu_bytes,
                      "path MTU of the connections; without it the largest that both ends carry");
    app.add_flag("--go-back-n", options.go_back_n, "send all again behind a loss, as with peers that are not Cairn");
    app::add_choice(app, "--cc,--congestion-control", options.congestion,
                    app::Choices<roce::ConnectionControl>{{"dcqcn", roce::ConnectionControl::Dcqcn},
                                                          {"none", roce::ConnectionControl::None}},
                    "of connections; dcqcn sends ECN-capable packets and acts on notifications alone");
    app.add_option("--link-gbit", options.link_gbit, "rate of the link, at which congestion control begins")
        ->check(CLI::Range(0.1, 1000.0))
        ->capture_default_str();
    app.add_option("--packet-window", options.packet_window, "packets on their way, of a queue pair")
        ->check(CLI::Range(2U, 65536U))
        ->capture_default_str();
    app::add_polling(app, options.spin);
    app::add_output(app, options.ports.pcap, options.json);
}

// Declares the arguments of the test.
void declare_test(CLI::App& app, Options& options) {
    app::add_choice(app, "-c,--transport", options.transport,
                    app::Choices<Transport>{{"rc", Transport::Rc}, {"uc", Transport::Uc}, {"ud", Transport::Ud}},
                    "rc (reliable), uc (unreliable: send, write), ud (datagrams: send)");
    app::add_choice(app, "--op", options.operation,
                    app::Choices<Operation>{{"send", Operation::Send},
                                            {"write", Operation::Write},
                                            {"read", Operation::Read},
                                            {"cas", Operation::CompareSwap},
                                            {"fadd", Operation::FetchAdd}},
                    "cas: compare and swap, fadd: fetch and add");
    app::add_choice(app, "--test", options.test, app::Choices<Test>{{"bw", Test::Bandwidth}, {"lat", Test::Latency}},
                    "bw: many at a time; lat: one at a time");
    app.add_option("-s,--size", options.message_bytes,
                   "bytes of a message; without it 65536, a path MTU with ud, 2 with lat; atomics have 8")
        ->check(CLI::Range(0U, roce::kMaxMessageBytes));
    app.add_flag("-a,--all", options.all_sizes, "all powers of two from 2 bytes to 8 MB, one after the other");
    app.add_flag("-b,--bidirectional", options.both_ways,
                 "the server does the same to its client at the same time (bw of send, write, read over rc)");
    app.add_option("-t,--depth,--window", options.depth, "operations outstanding over all queue pairs; 0: only connect")
        ->check(CLI::Range(0U, 16384U))
        ->capture_default_str();
    app.add_option("-q,--qps", options.queue_pairs, "queue pairs, used in turn; without it one for each lcore")
        ->check(CLI::Range(1U, 16384U))
        ->capture_default_str();
    auto* const duration = app.add_option("-D,--duration", options.duration_s, "seconds to measure each size")
                               ->check(CLI::PositiveNumber)
                               ->capture_default_str();
    app.add_option("-n,--iterations", options.iterations, "operations to measure of each size, instead of --duration")
        ->check(CLI::PositiveNumber)
        ->excludes(duration);
    app.add_flag("--check", options.check, "verify all data at its end");
    app.add_flag("--rping", options.rping, "rping's exchange, against rping as well; --size and --check are its own");
    app.add_option("--count", options.pings, "pings of an rping client")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
}

Status judge(const Options& options) {
    if (!options.server && options.peer.empty()) {
        return Error{"neither --server nor --peer is given", "serve with --server, or test with --peer ADDRESS"};
    }
    if (options.server && !options.peer.empty()) {
        return Error{"both --server and --peer are given", "choose one"};
    }
    if (options.once && !options.server) {
        return Error{"--once is a server's", "leave it out"};
    }
    if (options.rping && (options.message_bytes < kRpingBytesLeast || options.message_bytes > kRpingBytesMost)) {
        return Error{fmt::format("--size {} is not for --rping", options.message_bytes),
                     fmt::format("give {} to {}", kRpingBytesLeast, kRpingBytesMost)};
    }
    if (options.iterations != 0 && options.depth == 0) {
        return Error{"--iterations needs operations outstanding, and --depth 0 allows none", "raise --depth"};
    }
    const bool is_write = options.operation == Operation::Write && options.transport == Transport::Uc;
    if (options.transport != Transport::Rc && options.operation != Operation::Send && !is_write) {
        return Error{fmt::format("--transport {} has no {}", name_of(options.transport), name_of(options.operation)),
                     "give --op send, or write with uc"};
    }
    const std::uint32_t most = options.ports.path_mtu_bytes;
    if (options.transport == Transport::Ud && options.size_given && most != 0 && options.message_bytes > most) {
        return Error{fmt::format("a datagram of {} bytes is more than a packet", options.message_bytes),
                     fmt::format("give --size {} or less, or a larger --path-mtu", most)};
    }
    const bool both_can = options.transport == Transport::Rc && options.test == Test::Bandwidth &&
                          !is_atomic(options.operation) && !options.check;
    if (options.both_ways && !both_can) {
        return Error{"--bidirectional is for --test bw of send, write or read over rc, without --check",
                     "leave it out, or test one of those"};
    }
    if (options.transport == Transport::Uc && options.check && options.operation == Operation::Write &&
        options.test == Test::Bandwidth) {
        return Error{"nothing reads back what unreliable WRITEs wrote", "give --op send, or --test lat"};
    }
    if (options.message_bytes == 0 && options.test == Test::Latency && options.operation == Operation::Write) {
        return Error{"a WRITE of no bytes can not be seen by who polls memory", "give --size 1 or more"};
    }
    return Nothing{};
}

}  // namespace

const char* name_of(Operation operation) noexcept {
    constexpr std::array<const char*, static_cast<std::size_t>(Operation::Count)> kNames{"send", "write", "read", "cas",
                                                                                         "fadd"};
    return kNames[static_cast<std::size_t>(operation)];
}

const char* name_of(Test test) noexcept {
    return test == Test::Bandwidth ? "bw" : "lat";
}

const char* name_of(Transport transport) noexcept {
    constexpr std::array<const char*, static_cast<std::size_t>(Transport::Count)> kNames{"rc", "uc", "ud"};
    return kNames[static_cast<std::size_t>(transport)];
}

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app(
        "cairn-perf: bandwidth and latency of RDMA operations between two processes; EAL arguments first, then --");
    Options options;
    options.ports.private_ip = app::kPrivateIp;
    options.ports.burst = 32;
    options.ports.path_mtu_bytes = 0;
    declare(app, options);
    declare_test(app, options);
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    app::note_given(app, options.ports);
    options.size_given = app.count("--size") != 0;
    if (!options.size_given && options.test == Test::Latency) {
        options.message_bytes = kLatencyBytes;
    }
    if (options.rping) {
        options.service_port = app.count("--service") == 0 ? kRpingPort : options.service_port;
        options.message_bytes = options.size_given ? options.message_bytes : kRpingBytes;
    }
    if (options.transport == Transport::Ud) {
        options.operation = app.count("--op") == 0 ? Operation::Send : options.operation;
    }
    if (is_atomic(options.operation)) {
        options.message_bytes = roce::kAtomicBytes;
        options.all_sizes = false;
    }
    options.queue_pairs_given = app.count("--qps") != 0;
    if (options.test == Test::Latency) {
        options.depth = options.queue_pairs = 1;
    }
    const Status judged = judge(options);
    return judged.ok() ? Result<Options>(options) : judged.error();
}

}  // namespace cairn::perf
