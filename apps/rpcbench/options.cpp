#include "apps/rpcbench/options.hpp"

#include "apps/common/choice.hpp"
#include "apps/common/command_line.hpp"
#include "lib/net/address.hpp"
#include "lib/port/ecn.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::rpcbench {

namespace {

using erpc::CongestionAlgorithm;

void declare(CLI::App& app, Options& options) {
    app.add_option("--system", options.system, "RPC system")->check(CLI::IsMember({"erpc"}))->capture_default_str();
    app.add_flag("--server", options.server, "serve; also with --peer, then both call and serve");
    app.add_option("--peer", options.peer, "the server's IP address: be a client");
    app::add_service(app, options.service);
    app::add_carrier(app, options.carrier);
    app::add_faults(app, options.carrier);
    app::add_path_mtu(app, options.carrier.path_mtu_bytes, "path MTU; both ends use the same")->capture_default_str();
    app.add_option("-D,--duration", options.duration_s,
                   "seconds to measure; a server without --peer runs until a signal")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--qpn", options.qpn, "queue pair number of the first lcore")
        ->check(CLI::Range(2U, 0xffffffU))
        ->capture_default_str();
    app.add_option("--qkey", options.qkey, "Q_Key of the service; both ends use the same")->capture_default_str();
    app.add_option("--peer-timeout", options.peer_timeout_ms, "milliseconds of silence after which a peer is dead")
        ->check(CLI::Range(20U, 600000U))
        ->capture_default_str();
    app::add_polling(app, options.spin);
    app::add_output(app, options.carrier.pcap, options.json);
}

// Which calls are made, how often, and which faults are injected.
void declare_load(CLI::App& app, Options& options) {
    app.add_option("--req", options.request_bytes, "request bytes")
        ->check(CLI::Range(0U, erpc::kMaxMessageBytes))
        ->capture_default_str();
    app.add_option("--resp", options.response_bytes, "response bytes; both ends use the same")
        ->check(CLI::Range(0U, erpc::kMaxMessageBytes))
        ->capture_default_str();
    app.add_option("-t,--window,--depth", options.window,
                   "calls outstanding at the most, over all sessions of an lcore; 0: only connect")
        ->check(CLI::Range(0U, 65536U))
        ->capture_default_str();
    app.add_option("--rate", options.rate_per_s,
                   "calls per second to begin, whether or not answers come; latency counts from when a call was due. "
                   "Without it as many as --window allows")
        ->check(CLI::PositiveNumber);
    app.add_flag("--check", options.check, "verify every byte of requests and answers");
    app.add_option("--sessions", options.sessions, "sessions of an lcore")
        ->check(CLI::Range(1U, 24575U))  // three quarters of a server's table
        ->capture_default_str();
    app.add_option("--credits", options.credits, "packets in flight per session")
        ->check(CLI::Range(1U, erpc::kMaxCredits))
        ->capture_default_str();
    app::add_choice(app, "--cc", options.congestion.algorithm,
                    app::Choices<CongestionAlgorithm>{{"timely", CongestionAlgorithm::Timely},
                                                      {"dcqcn", CongestionAlgorithm::Dcqcn},
                                                      {"none", CongestionAlgorithm::None}},
                    "congestion control; dcqcn sends ECN-capable packets unless --traffic-class says otherwise");
    app.add_option("--link-gbit", options.link_gbit, "rate of the link, which no session exceeds; for --cc")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_flag("--go-back-n", options.go_back_n, "do not hold packets that arrive early");
    app.add_option("--deadline", options.deadline_ms, "milliseconds a call may take; 0: no deadline");
}

Status judge(const Options& options) {
    if (!options.carrier.gateway.empty()) {
        const Result<net::IpAddress> gateway = net::IpAddress::parse(options.carrier.gateway);
        if (!gateway.ok()) {
            return gateway.error();
        }
    }
    if (!options.server && options.peer.empty()) {
        return Error{"neither --server nor --peer is given", "serve with --server, or call with --peer ADDRESS"};
    }
    if (options.check && options.response_bytes == 0) {
        return Error{"--check can not tell from answers of no bytes what the server got", "give --resp 1 or more"};
    }
    if (options.rate_per_s > 0 && options.window == 0) {
        return Error{"--rate needs calls outstanding, and --window 0 allows none", "raise --window"};
    }
    return Nothing{};
}

}  // namespace

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app("cairn-rpcbench: RPC rate and latency between two processes; EAL arguments first, then --");
    Options options;
    options.carrier.private_ip = app::kPrivateIp;
    declare(app, options);
    declare_load(app, options);
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    app::note_given(app, options.carrier);
    options.congestion.link_bits_per_s = options.link_gbit * 1e9;
    if (app.count("--traffic-class") == 0 && options.congestion.algorithm == CongestionAlgorithm::Dcqcn) {
        options.carrier.traffic_class = port::kEct0;
    }
    const Status judged = judge(options);
    return judged.ok() ? Result<Options>(options) : judged.error();
}

}  // namespace cairn::rpcbench
