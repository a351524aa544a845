#include "apps/sim/options.hpp"

#include <algorithm>
#include <string>
#include <thread>

#include "apps/common/choice.hpp"
#include "apps/common/command_line.hpp"
#include "apps/sim/crash.hpp"
#include "rpc/sim/incast_world.hpp"

namespace cairn::simulate {

namespace {

void declare(CLI::App& app, Options& options, std::uint64_t& seed) {
    auto* const seeds = app.add_option("--seeds", options.seeds, "histories to live through")
                            ->check(CLI::PositiveNumber)
                            ->capture_default_str();
    auto* const first = app.add_option("--first", options.first, "seed of the first; the others count up")
                            ->check(CLI::NonNegativeNumber)
                            ->capture_default_str();
    auto* const minutes = app.add_option("--minutes", options.minutes, "time to go on for, instead of --seeds")
                              ->check(CLI::PositiveNumber)
                              ->excludes(seeds);
    auto* const one = app.add_option("--seed", seed, "live through this one history")
                          ->check(CLI::NonNegativeNumber)
                          ->excludes(seeds)
                          ->excludes(first)
                          ->excludes(minutes);
    app.add_flag("--trace", options.trace, "with --seed: print what became of each frame, or of each call")->needs(one);
    app.add_option("--pcap", options.pcap, "with --seed: write the last frames to this file, for Wireshark")
        ->needs(one);
    app.add_option("--jobs", options.jobs, "threads, each with a world of its own; without it one per CPU")
        ->check(CLI::Range(1U, static_cast<unsigned>(kMaxUnderWay)));
    app.add_flag("--small", options.small, "one client, one server, 6 ms of harm: many short histories");
    app::add_choice(app, "--world", options.world,
                    app::Choices<WorldKind>{{"erpc", WorldKind::Erpc},
                                            {"rc", WorldKind::Rc},
                                            {"cm", WorldKind::Cm},
                                            {"ud", WorldKind::Ud},
                                            {"verbs", WorldKind::Verbs},
                                            {"copyrpc", WorldKind::Copyrpc},
                                            {"scalerpc", WorldKind::Scalerpc},
                                            {"mixed", WorldKind::Mixed},
                                            {"fs", WorldKind::Fs}},
                    "erpc: clients and servers; rc: two queue pairs, reliable or not; cm: connection managers; "
                    "ud: queue pairs of datagrams and their groups; verbs: devices whose users connect; "
                    "copyrpc: endpoints that call each other over rings; "
                    "scalerpc: endpoints whose clients take turns; "
                    "mixed: of erpc, ud, verbs, copyrpc and scalerpc several on the same workers; "
                    "fs: shards of a file system, their clients, media that lose power, full stores")
        ->excludes("--small");
    app.add_flag("--json", options.json, "end with one JSON object on stdout");
}

void declare_incast(CLI::App& app, Options& options) {
    using erpc::CongestionAlgorithm;
    auto* const incast = app.add_option("--incast", options.incast,
                                        "instead of histories: so many clients send 8 MB requests to one server, or "
                                        "(--world rc) write 1 to 8 MB to it, with 25 Gbit/s links; 20,50,100 as in the "
                                        "eRPC paper")
                             ->delimiter(',')
                             ->check(CLI::Range(std::size_t{1}, sim::IncastWorld::kMaxClients))
                             ->excludes("--seeds")
                             ->excludes("--minutes")
                             ->excludes("--seed");
    const app::Choices<CongestionAlgorithm> algorithms{{"none", CongestionAlgorithm::None},
                                                       {"timely", CongestionAlgorithm::Timely},
                                                       {"dcqcn", CongestionAlgorithm::Dcqcn}};
    app.add_option_function<std::vector<std::string>>(
           "--cc",
           [&options, algorithms](const std::vector<std::string>& words) {
               options.algorithms.clear();
               std::transform(words.begin(), words.end(), std::back_inserter(options.algorithms),
                              [&algorithms](const std::string& word) { return app::choice_named(algorithms, word); });
           },
           "with --incast: of timely (not with --world rc), dcqcn and none; without it all there are")
        ->delimiter(',')
        ->check(CLI::IsMember(app::words_of(algorithms)))
        ->needs(incast);
    app.add_option("--path-mtu", options.path_mtu_bytes, "with --incast: payload of a packet")
        ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}))
        ->capture_default_str()
        ->needs(incast);
}

void declare_sync(CLI::App& app, Options& options) {
    app.add_flag(
           "--sync", options.sync,
           "instead of histories: clients of three ScaleRPC servers at once, whose slices are synchronised or not; "
           "how long do they stall; --first chooses their clocks")
        ->excludes("--seeds")
        ->excludes("--minutes")
        ->excludes("--seed")
        ->excludes("--incast")
        ->excludes("--world")
        ->excludes("--small");
}

// Judges --incast: which worlds have one, and with which control.
Status judge_incast(const CLI::App& app, Options& options) {
    using erpc::CongestionAlgorithm;
    if (options.incast.empty() || options.world == WorldKind::Erpc) {
        return Nothing{};
    }
    if (options.world != WorldKind::Rc) {
        return Error{"this --world has no --incast", "give --world erpc or rc"};
    }
    if (app.count("--cc") == 0) {
        std::erase(options.algorithms, CongestionAlgorithm::Timely);
    }
    const auto& wanted = options.algorithms;
    if (std::find(wanted.begin(), wanted.end(), CongestionAlgorithm::Timely) != wanted.end()) {
        return Error{"connections have no --cc timely: their acknowledgements do not say how long a host held them",
                     "give none or dcqcn, or --world erpc"};
    }
    return Nothing{};
}

// Judges --pcap: which worlds have frames.
Status judge_frames(const Options& options) {
    if (options.world == WorldKind::Fs && !options.pcap.empty()) {
        return Error{"this --world has no frames for --pcap", "give --trace, or another --world"};
    }
    return Nothing{};
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
    CLI::App app("cairn-sim: production code in simulated worlds; each seed is a history of faults in virtual time");
    Options options;
    options.jobs = std::clamp(std::thread::hardware_concurrency(), 1U, static_cast<unsigned>(kMaxUnderWay));
    std::uint64_t seed = 0;
    declare(app, options, seed);
    declare_incast(app, options);
    declare_sync(app, options);
    const Status parsed = app::parse_arguments(app, argc, argv, 1);
    if (!parsed.ok()) {
        return parsed.error();
    }
    for (const Status& judged : {judge_incast(app, options), judge_frames(options)}) {
        if (!judged.ok()) {
            return judged.error();
        }
    }
    if (app.count("--seed") != 0) {
        options.single = true;
        options.first = seed;
        options.seeds = options.jobs = 1;
    }
    return options;
}

}  // namespace cairn::simulate
