#include "apps/perf/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <array>
#include <map>

#include "apps/common/command_line.hpp"
#include "lib/roce/rc/limits.hpp"

namespace cairn::perf {

namespace {

const std::map<std::string, Operation> kOperations{{"send", Operation::Send},
                                                   {"write", Operation::Write},
                                                   {"read", Operation::Read},
                                                   {"cas", Operation::CompareSwap},
                                                   {"fadd", Operation::FetchAdd}};
constexpr std::uint16_t kRpingPort = 7174;
constexpr std::uint32_t kRpingBytes = 64;
constexpr std::uint32_t kRpingBytesLeast = 16;
constexpr std::uint32_t kRpingBytesMost = 65536;
const std::map<std::string, roce::ConnectionControl> kControls{{"none", roce::ConnectionControl::None},
                                                               {"dcqcn", roce::ConnectionControl::Dcqcn}};
const std::map<std::string, Test> kTests{{"bw", Test::Bandwidth}, {"lat", Test::Latency}};
const std::map<std::string, Transport> kTransports{{"rc", Transport::Rc}, {"uc", Transport::Uc}, {"ud", Transport::Ud}};

void declare(CLI::App& app, Options& options) {
    app.add_flag("--server", options.server, "serve clients, whatever they test, until a signal");
    app.add_flag("--once", options.once, "end with the first client");
    app.add_option("--peer", options.peer, "the server's IP address: be a client");
    app.add_option("--service-port", options.service_port, "where the server listens, as for rdma_cm")
        ->check(CLI::Range(1U, 65535U))
        ->capture_default_str();
    app.add_option("--ip", options.ip, "this port's IP address")->capture_default_str();
    app.add_option("--prefix", options.prefix_bits, "bits of the link's prefix; 0: every peer is on the link")
        ->check(CLI::Range(0U, 128U));
    app.add_option("--gateway", options.gateway, "router for peers that are not on the link");
    app.add_option("--port", options.port, "port: eth:N or uring:ADDRESS; without it the first there is");
    app::add_socket_mode(app, options.socket_mode);
    app.add_option("--path-mtu", options.path_mtu_bytes, "path MTU of the connections")
        ->check(CLI::IsMember({256U, 512U, 1024U, 2048U, 4096U}))
        ->capture_default_str();
    app.add_option("--traffic-class", options.traffic_class,
                   "DSCP and ECN bits of what is sent; 3: as if a switch had marked all of it")
        ->check(CLI::Range(0U, 255U))
        ->capture_default_str();
    app.add_option("--burst", options.burst, "packets per port burst")
        ->check(CLI::Range(1U, 64U))
        ->capture_default_str();
    app.add_option("--buffers", options.buffers, "packet buffers of the process")
        ->check(CLI::Range(512U, 4194304U))
        ->capture_default_str();
    app.add_option("--data-room", options.data_room_bytes, "bytes of a packet buffer; 0: what suits the driver")
        ->check(CLI::Range(0U, 16384U));
}

// What is measured.
void declare_test(CLI::App& app, Options& options) {
    app.add_option("--transport", options.transport,
                   "rc (reliable), uc (unreliable: send, write), ud (datagrams: send)")
        ->transform(CLI::CheckedTransformer(kTransports));
    app.add_option("--op", options.operation, "send, write, read, cas (compare and swap), fadd (fetch and add)")
        ->transform(CLI::CheckedTransformer(kOperations));
    app.add_option("--test", options.test, "bw: many at a time; lat: one at a time")
        ->transform(CLI::CheckedTransformer(kTests));
    app.add_option("--size", options.message_bytes, "bytes of a message; atomics have 8")
        ->check(CLI::Range(0U, roce::rc::kMaxMessageBytes))
        ->capture_default_str();
    app.add_flag("-a,--all", options.all_sizes, "all powers of two from 2 bytes to 8 MB, one after the other");
    app.add_option("--depth", options.depth, "operations outstanding over all queue pairs; 0: only connect")
        ->check(CLI::Range(0U, 16384U))
        ->capture_default_str();
    app.add_option("--qps", options.queue_pairs, "queue pairs, used in turn")
        ->check(CLI::Range(1U, 16384U))
        ->capture_default_str();
    app.add_option("--window", options.window_packets, "packets on their way, of a queue pair")
        ->check(CLI::Range(2U, 65536U))
        ->capture_default_str();
    app.add_option("--duration", options.duration_s, "seconds to measure each size")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_flag("--check", options.check, "verify all data at its end");
    app.add_option("--drop-per-million", options.drop_per_million, "fault injection: received packets to lose")
        ->check(CLI::Range(0U, 1000000U));
    app.add_flag("--go-back-n", options.go_back_n, "send all again behind a loss, as with peers that are not Cairn");
    app.add_option_function<std::string>(
           "--congestion-control,--cc",
           [&options](const std::string& name) { options.congestion = kControls.at(name); },
           "of connections: dcqcn (ECN-capable packets; acts on notifications alone), none")
        ->check(CLI::IsMember({"dcqcn", "none"}))
        ->default_str("dcqcn");
    app.add_option("--link-gbit", options.link_gbit, "rate of the link, at which congestion control begins")
        ->check(CLI::Range(0.1, 1000.0))
        ->capture_default_str();
    app.add_flag("--rping", options.rping, "rping's exchange, against rping as well; --size and --check are its own");
    app.add_option("--count", options.pings, "pings of an rping client")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app::add_polling(app, options.spin);
    app::add_output(app, options.pcap, options.json);
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
    const bool is_write = options.operation == Operation::Write && options.transport == Transport::Uc;
    if (options.transport != Transport::Rc && options.operation != Operation::Send && !is_write) {
        return Error{fmt::format("--transport {} has no {}", name_of(options.transport), name_of(options.operation)),
                     "give --op send, or write with uc"};
    }
    if (options.transport == Transport::Ud && options.message_bytes > options.path_mtu_bytes) {
        return Error{fmt::format("a datagram of {} bytes is more than a packet", options.message_bytes),
                     fmt::format("give --size {} or less, or a larger --path-mtu", options.path_mtu_bytes)};
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
    declare(app, options);
    declare_test(app, options);
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    if (options.rping) {
        options.service_port = app.count("--service-port") == 0 ? kRpingPort : options.service_port;
        options.message_bytes = app.count("--size") == 0 ? kRpingBytes : options.message_bytes;
    }
    if (options.transport == Transport::Ud) {
        options.operation = app.count("--op") == 0 ? Operation::Send : options.operation;
        options.message_bytes = app.count("--size") == 0 ? options.path_mtu_bytes : options.message_bytes;
    }
    if (is_atomic(options.operation)) {
        options.message_bytes = roce::rc::kAtomicBytes;
        options.all_sizes = false;
    }
    if (options.test == Test::Latency) {
        options.depth = options.queue_pairs = 1;
    }
    const Status judged = judge(options);
    return judged.ok() ? Result<Options>(options) : judged.error();
}

}  // namespace cairn::perf
