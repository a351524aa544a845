#include "apps/sim/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <thread>

#include "apps/common/command_line.hpp"
#include "apps/sim/crash.hpp"

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
    app.add_flag("--trace", options.trace, "with --seed: print what became of each frame")->needs(one);
    app.add_option("--pcap", options.pcap, "with --seed: write the last frames to this file, for Wireshark")
        ->needs(one);
    app.add_option("--jobs", options.jobs, "threads, each with a world of its own; without it one per CPU")
        ->check(CLI::Range(1U, static_cast<unsigned>(kMaxUnderWay)));
    app.add_flag("--small", options.small, "one client, one server, 10 ms of harm: many short histories");
    app.add_flag("--json", options.json, "end with one JSON object on stdout");
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
    CLI::App app("cairn-sim: eRPC in simulated worlds; each seed is a history of faults in virtual time");
    Options options;
    options.jobs = std::clamp(std::thread::hardware_concurrency(), 1U, static_cast<unsigned>(kMaxUnderWay));
    std::uint64_t seed = 0;
    declare(app, options, seed);
    const Status parsed = app::parse_arguments(app, argc, argv, 1);
    if (!parsed.ok()) {
        return parsed.error();
    }
    if (app.count("--seed") != 0) {
        options.single = true;
        options.first = seed;
        options.seeds = options.jobs = 1;
    }
    return options;
}

}  // namespace cairn::simulate
