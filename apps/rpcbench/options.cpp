#include "apps/rpcbench/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <string>
#include <vector>

#include "apps/common/choice.hpp"
#include "apps/common/command_line.hpp"
#include "apps/common/emulation.hpp"
#include "apps/rpcbench/time_options.hpp"
#include "lib/net/address.hpp"
#include "lib/port/ecn.hpp"
#include "rpc/copyrpc/endpoint_config.hpp"
#include "rpc/copyrpc/hello.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::rpcbench {

namespace {

using copyrpc::Hello;
using copyrpc::RingShape;
using erpc::CongestionAlgorithm;

constexpr std::uint32_t kServerSessions = 64;  // of copyrpc, without --sessions

const app::Choices<SystemKind> kSystems{{"erpc", SystemKind::Erpc},
                                        {"copyrpc", SystemKind::Copyrpc},
                                        {"scalerpc", SystemKind::Scalerpc},
                                        {"rawwrite", SystemKind::Rawwrite},
                                        {"ud", SystemKind::Ud}};

struct Feature {
    const char* name;
    bool scalerpc::Features::*value;
};
constexpr std::array kFeatures{
    Feature{"grouping", &scalerpc::Features::grouping}, Feature{"sharing", &scalerpc::Features::sharing},
    Feature{"warmup", &scalerpc::Features::warmup},     Feature{"priority", &scalerpc::Features::priority},
    Feature{"packing", &scalerpc::Features::packing},   Feature{"colouring", &scalerpc::Features::colouring},
};

// The arguments that only some systems use.
struct Owned {
    const char* argument;
    SystemKind system;
    SystemKind other;  // the same one, or another that has it
};
constexpr Owned only(const char* argument, SystemKind system) {
    return {argument, system, system};
}
constexpr Owned of_blocks(const char* argument) {
    return {argument, SystemKind::Scalerpc, SystemKind::Rawwrite};
}
constexpr std::array kOwned{
    only("--qpn", SystemKind::Erpc),
    only("--qkey", SystemKind::Erpc),
    only("--credits", SystemKind::Erpc),
    only("--cc", SystemKind::Erpc),
    only("--link-gbit", SystemKind::Erpc),
    only("--go-back-n", SystemKind::Erpc),
    only("--ring", SystemKind::Copyrpc),
    only("--receives", SystemKind::Copyrpc),
    only("--flow", SystemKind::Copyrpc),
    only("--hold", SystemKind::Copyrpc),
    of_blocks("--block"),
    of_blocks("--blocks"),
    only("--group", SystemKind::Scalerpc),
    only("--slice", SystemKind::Scalerpc),
    only("--without", SystemKind::Scalerpc),
    only("--serve-time", SystemKind::Scalerpc),
    only("--follow-time", SystemKind::Scalerpc),
    only("--time-service", SystemKind::Scalerpc),
    only("--cohorts", SystemKind::Scalerpc),
    only("--cohort", SystemKind::Scalerpc),
    only("--work", SystemKind::Scalerpc),
    only("--legacy", SystemKind::Scalerpc),
};

void declare(CLI::App& app, Options& options) {
    app::add_choice(app, "--system", options.system, kSystems, "RPC system; both ends use the same");
    app.add_flag("--server", options.server, "serve; also with --peer, then both call and serve");
    app.add_option("--peer", options.peer, "the server's IP address: be a client");
    app::add_service(app, options.service);
    app::add_ports(app, options.ports);
    app::add_faults(app, options.ports);
    app::add_context_cache(app, options.context_cache);
    app::add_path_mtu(app, options.ports.path_mtu_bytes, "path MTU; both ends use the same")->capture_default_str();
    app.add_option("-D,--duration", options.time.duration_s,
                   "seconds to measure; a server without --peer runs until a signal")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--warm-up", options.time.warm_up_ms, "milliseconds of calls before what is measured")
        ->check(CLI::Range(0U, 60'000U))
        ->capture_default_str();
    app.add_option("--qpn", options.erpc.qpn, "queue pair number of the first lcore")
        ->check(CLI::Range(2U, 0xffffffU))
        ->capture_default_str();
    app.add_option("--qkey", options.erpc.qkey, "Q_Key of the service; both ends use the same")->capture_default_str();
    app.add_option("--peer-timeout", options.peer_timeout_ms, "milliseconds of silence after which a peer is dead")
        ->check(CLI::Range(20U, 600000U))
        ->capture_default_str();
    app.add_flag(
        "--stages", options.stages,
        "tell what receiving, handling and sending take per call, and what of it the handlers take; it costs each "
        "turn some 60 ns, and each handler 30");
    app::add_polling(app, options.spin);
    app::add_output(app, options.ports.pcap, options.json);
}

// Declares the arguments of an RPC system for its sessions.
void declare_systems(CLI::App& app, Options& options) {
    app.add_option("--credits", options.erpc.credits, "erpc: packets in flight per session")
        ->check(CLI::Range(1U, erpc::kMaxCredits))
        ->capture_default_str();
    app::add_choice(app, "--cc", options.erpc.congestion.algorithm,
                    app::Choices<CongestionAlgorithm>{{"timely", CongestionAlgorithm::Timely},
                                                      {"dcqcn", CongestionAlgorithm::Dcqcn},
                                                      {"none", CongestionAlgorithm::None}},
                    "erpc: congestion control; dcqcn sends ECN-capable packets unless --traffic-class says otherwise");
    app.add_option("--link-gbit", options.erpc.link_gbit, "erpc: rate of the link, which no session exceeds; for --cc")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_flag("--go-back-n", options.erpc.go_back_n, "erpc: do not hold packets that arrive early");
    app.add_option("--ring", options.copyrpc.ring_bytes,
                   "copyrpc: bytes of a session's ring for what comes, a power of two; a message takes an eighth at "
                   "most, longer ones travel by themselves. auto: by sessions, --window, --req and --resp")
        ->default_str("auto")
        ->transform(CLI::Validator(
            [](std::string& text) {
                if (text == "auto") {
                    text = "0";
                    return std::string();
                }
                return CLI::Range(RingShape::kLeastBytes, RingShape::kMostBytes)(text);
            },
            fmt::format("auto, {} to {}", RingShape::kLeastBytes, RingShape::kMostBytes)));
    app.add_option("--receives", options.copyrpc.receives, "copyrpc: batches of a session's peer in flight")
        ->capture_default_str()
        ->check(CLI::Range(Hello::kLeastReceives, Hello::kMostReceives));
    app::add_choice(app, "--flow", options.copyrpc.flow,
                    app::Choices<copyrpc::Flow>{{"credit", copyrpc::Flow::Credit}, {"read", copyrpc::Flow::Read}},
                    "copyrpc: how an end learns what its peer has read; both ends use the same");
    app.add_option("--hold", options.copyrpc.hold_messages,
                   "copyrpc: batches wait for so many messages if those are likely to come within 5 us")
        ->check(CLI::Range(1U, 1024U));
}

void declare_blocks(CLI::App& app, Options& options) {
    using scalerpc::BlockShape;
    ScalerpcOptions& own = options.scalerpc;
    app.add_option("--block", own.block_bytes,
                   "scalerpc, rawwrite: bytes of a block, which takes one message; both ends use the same. Without it "
                   "by --req and --resp")
        ->check(CLI::Range(BlockShape::kLeastBytes, BlockShape::kMostBytes));
    app.add_option("--blocks", own.blocks, "scalerpc, rawwrite: blocks of a session; both ends use the same")
        ->check(CLI::Range(1U, BlockShape::kMostBlocks))
        ->capture_default_str();
    app.add_option("--group", own.group, "scalerpc: clients of a group")
        ->check(CLI::Range(2U, 1024U))
        ->capture_default_str();
    app.add_option("--slice", own.slice_us, "scalerpc: microseconds of a group's slice")
        ->check(CLI::Range(1U, 1'000'000U))
        ->capture_default_str();
    std::vector<std::string> names;
    std::transform(kFeatures.begin(), kFeatures.end(), std::back_inserter(names),
                   [](const Feature& feature) { return feature.name; });
    app.add_option_function<std::vector<std::string>>(
           "--without",
           [&own](const std::vector<std::string>& words) {
               for (const Feature& feature : kFeatures) {
                   own.features.*feature.value = std::find(words.begin(), words.end(), feature.name) == words.end();
               }
           },
           "scalerpc: what the server does not do")
        ->check(CLI::IsMember(names))
        ->delimiter(',');
    app.add_option("--work", own.work_us, "scalerpc: microseconds for which a server's handlers compute")
        ->check(CLI::Range(0U, 1'000'000U))
        ->capture_default_str();
    app.add_option("--legacy", own.legacy_threads,
                   "scalerpc: threads of a server's worker that execute what takes its handlers longer than a slice")
        ->check(CLI::Range(1U, 64U));
}

// Declares the kind and rate of calls, and the injected faults.
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
    app.add_option("--clients", options.clients.count,
                   "clients of an lcore, each with a session of its own: it begins --batch calls, waits for all of "
                   "them, thinks, and goes on; with --rate, when its next ones are due. Instead of --window and "
                   "--sessions")
        ->check(CLI::Range(1U, 24575U));
    app.add_option("--batch", options.clients.batch, "calls that each of --clients begins at once")
        ->check(CLI::Range(1U, 1024U))
        ->capture_default_str();
    app.add_option("--think", options.clients.think_us, "microseconds that each of --clients thinks between batches")
        ->check(CLI::Range(0U, 10'000'000U))
        ->capture_default_str();
    app.add_option("--active", options.clients.active_percent,
                   "percent of --clients that call; the others are connected only")
        ->check(CLI::Range(0.0, 100.0))
        ->capture_default_str();
    app.add_option("--rate", options.rate_per_s,
                   "calls per second to begin, whether or not answers come; latency counts from when a call was due. "
                   "Active --clients have a share each, at times of a Poisson process. Without it as many as --window "
                   "allows")
        ->check(CLI::PositiveNumber);
    app.add_flag("--check", options.check, "verify every byte of requests and answers");
    app.add_option("--sessions", options.sessions,
                   "sessions of an lcore; a server of connections takes so many (without the argument 64)")
        ->check(CLI::Range(1U, 24575U))  // three quarters of a server's table
        ->capture_default_str();
    app.add_option("--host-sessions", options.host_sessions,
                   "sessions that a server of connections takes of one host; 0: three times as many as are free. "
                   "Without it as many as there are")
        ->check(CLI::Range(0U, 24575U));
    app.add_option("--deadline", options.deadline_ms, "milliseconds a call may take; 0: no deadline");
}

Status judge_system(const CLI::App& app, const Options& options) {
    const auto strange = std::find_if(kOwned.begin(), kOwned.end(), [&](const Owned& each) {
        return each.system != options.system && each.other != options.system && app.count(each.argument) != 0;
    });
    if (strange != kOwned.end()) {
        return Error{fmt::format("{} is an argument of --system {}, and this is {}", strange->argument,
                                 name_of(strange->system), name_of(options.system)),
                     "leave it out"};
    }
    if (options.copyrpc.ring_bytes != 0 && !std::has_single_bit(options.copyrpc.ring_bytes)) {
        return Error{fmt::format("--ring {} is no power of two", options.copyrpc.ring_bytes),
                     fmt::format("give --ring {}", std::bit_floor(options.copyrpc.ring_bytes))};
    }
    for (const char* own : {"--work", "--legacy"}) {
        if (!options.server && app.count(own) != 0) {
            return Error{fmt::format("{} is for a server", own), "add --server, or leave it out"};
        }
    }
    return judge_time(app, options);
}

// Judges the arguments of the two kinds of load, which exclude each other. A client that thinks has no calls that are
// due.
Status judge_clients(const CLI::App& app) {
    const auto given = [&app](const char* argument) { return app.count(argument) != 0; };
    if (!given("--clients")) {
        for (const char* own : {"--batch", "--think", "--active"}) {
            if (given(own)) {
                return Error{fmt::format("{} is an argument of --clients, which is not given", own),
                             "give --clients, too"};
            }
        }
        return Nothing{};
    }
    for (const char* other : {"--window", "--sessions"}) {
        if (given(other)) {
            return Error{fmt::format("{} and --clients exclude each other", other), "leave one of them out"};
        }
    }
    if (given("--rate") && given("--think")) {
        return Error{"--think and --rate exclude each other: with a rate each client's calls have their times",
                     "leave one of them out"};
    }
    return Nothing{};
}

Status judge(const Options& options) {
    if (!options.ports.gateway.empty()) {
        const Result<net::IpAddress> gateway = net::IpAddress::parse(options.ports.gateway);
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
    const bool is_connected = options.system != SystemKind::Erpc && options.system != SystemKind::Ud;
    if (options.host_sessions && (!options.server || !is_connected)) {
        return Error{"--host-sessions is an argument of servers with --system copyrpc, scalerpc or rawwrite",
                     "leave it out"};
    }
    if (options.rate_per_s > 0 && options.window == 0) {
        return Error{"--rate needs calls outstanding, and --window 0 allows none", "raise --window"};
    }
    return Nothing{};
}

}  // namespace

const char* name_of(SystemKind system) noexcept {
    return std::find_if(kSystems.begin(), kSystems.end(), [system](const auto& each) { return each.second == system; })
        ->first.c_str();
}

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app("cairn-rpcbench: RPC rate and latency between two processes; EAL arguments first, then --");
    Options options;
    options.ports.private_ip = app::kPrivateIp;
    declare(app, options);
    declare_load(app, options);
    declare_systems(app, options);
    declare_blocks(app, options);
    declare_time(app, options);
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    app::note_given(app, options.ports);
    options.erpc.congestion.link_bits_per_s = options.erpc.link_gbit * 1e9;
    if (app.count("--traffic-class") == 0 && options.erpc.congestion.algorithm == CongestionAlgorithm::Dcqcn) {
        options.ports.traffic_class = port::kEct0;
    }
    if (options.system != SystemKind::Erpc && options.peer.empty() && app.count("--sessions") == 0) {
        options.sessions = kServerSessions;
    }
    if (options.clients.count != 0) {
        options.sessions = options.clients.count;
        options.window = options.clients.count * options.clients.batch;
    }
    const Status fits = judge_clients(app).ok() ? judge_system(app, options) : judge_clients(app);
    const Status judged = fits.ok() ? judge(options) : fits;
    return judged.ok() ? Result<Options>(options) : judged.error();
}

}  // namespace cairn::rpcbench
