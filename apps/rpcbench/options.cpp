#include "apps/rpcbench/options.hpp"

#include <CLI/CLI.hpp>

#include <map>

#include "apps/common/command_line.hpp"
#include "lib/net/address.hpp"
#include "lib/port/ecn.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::rpcbench {

namespace {

void declare(CLI::App& app, Options& options) {
    app.add_option("--system", options.system, "RPC system")->check(CLI::IsMember({"erpc"}))->capture_default_str();
    app.add_flag("--server", options.server, "serve; also with --peer, then both call and serve");
    app.add_option("--ip", options.ip, "this port's IP address")->capture_default_str();
    app.add_option("--prefix", options.prefix_bits, "bits of the link's prefix; 0: every peer is on the link")
        ->check(CLI::Range(0U, 128U));
    app.add_option("--gateway", options.gateway, "router for peers that are not on the link");
    app.add_option("--peer", options.peer, "the server's IP address: be a client");
    app.add_option("--port", options.port, "port: eth:N or uring:ADDRESS; without it the first there is");
    app::add_socket_mode(app, options.socket_mode);
    app.add_option("--service", options.service, "name of the service, a port number: told and asked by SIDR")
        ->check(CLI::Range(1U, 65535U))
        ->capture_default_str();
    app.add_option("--path-mtu", options.path_mtu_bytes, "path MTU")
        ->check(CLI::IsMember({256U, 512U, 1024U, 2048U, 4096U}))
        ->capture_default_str();
    app.add_option("--traffic-class", options.traffic_class,
                   "DSCP and ECN bits of what is sent; without it 2, ECN-capable, with --cc dcqcn")
        ->check(CLI::Range(0U, 255U));
    app.add_option("--burst", options.burst, "packets per port burst")
        ->check(CLI::Range(1U, 64U))
        ->capture_default_str();
    app.add_option("--buffers", options.buffers, "packet buffers of the process")
        ->check(CLI::Range(512U, 4194304U))
        ->capture_default_str();
    app.add_option("--data-room", options.data_room_bytes, "bytes of a packet buffer; 0: what suits the driver")
        ->check(CLI::Range(0U, 16384U));
    app.add_option("--duration", options.duration_s, "seconds to measure; a server without --peer runs until a signal")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
}

// What is called, how often, and what is to go wrong.
void declare_load(CLI::App& app, Options& options) {
    app.add_option("--qpn", options.qpn, "queue pair number of the first lcore")
        ->check(CLI::Range(2U, 0xffffffU))
        ->capture_default_str();
    app.add_option("--qkey", options.qkey, "Q_Key of the service; both ends use the same")->capture_default_str();
    app.add_option("--req", options.request_bytes, "request bytes")
        ->check(CLI::Range(0U, erpc::kMaxMessageBytes))
        ->capture_default_str();
    app.add_option("--resp", options.response_bytes, "response bytes")
        ->check(CLI::Range(0U, erpc::kMaxMessageBytes))
        ->capture_default_str();
    app.add_option("--window", options.window, "calls outstanding over all sessions of an lcore; 0: only connect")
        ->check(CLI::Range(0U, 65536U))
        ->capture_default_str();
    app.add_option("--sessions", options.sessions, "sessions of an lcore")
        ->check(CLI::Range(1U, 24575U))  // three quarters of a server's table
        ->capture_default_str();
    app.add_option("--credits", options.credits, "packets in flight per session")
        ->check(CLI::Range(1U, 128U))
        ->capture_default_str();
    app.add_option("--cc", options.congestion.algorithm, "congestion control: timely, dcqcn, none")
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, erpc::CongestionAlgorithm>{{"timely", erpc::CongestionAlgorithm::Timely},
                                                             {"dcqcn", erpc::CongestionAlgorithm::Dcqcn},
                                                             {"none", erpc::CongestionAlgorithm::None}}));
    app.add_option("--link-gbit", options.link_gbit, "rate of the link, which no session exceeds; for --cc")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_flag("--go-back-n", options.go_back_n, "do not hold packets that arrive early");
    app.add_option("--drop-per-million", options.drop_per_million, "fault injection: received packets to lose")
        ->check(CLI::Range(0U, 1000000U));
    app.add_option("--deadline", options.deadline_ms, "milliseconds a call may take; 0: no deadline");
    app.add_option("--peer-timeout", options.peer_timeout_ms, "milliseconds of silence after which a peer is dead")
        ->check(CLI::Range(10U, 600000U))
        ->capture_default_str();
    app.add_flag("--pcap-all", options.pcap_all, "record all other frames too: ARP, neighbour discovery, strangers");
    app::add_polling(app, options.spin);
    app::add_output(app, options.pcap, options.json);
}

}  // namespace

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app("cairn-rpcbench: RPC rate and latency between two processes; EAL arguments first, then --");
    Options options;
    declare(app, options);
    declare_load(app, options);
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    if (!options.gateway.empty()) {
        const Result<net::IpAddress> gateway = net::IpAddress::parse(options.gateway);
        if (!gateway.ok()) {
            return gateway.error();
        }
    }
    options.congestion.link_bits_per_s = options.link_gbit * 1e9;
    if (app.count("--traffic-class") == 0 && options.congestion.algorithm == erpc::CongestionAlgorithm::Dcqcn) {
        options.traffic_class = port::kEct0;
    }
    if (!options.server && options.peer.empty()) {
        return Error{"neither --server nor --peer is given", "serve with --server, or call with --peer ADDRESS"};
    }
    return options;
}

}  // namespace cairn::rpcbench
