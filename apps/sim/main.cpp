// cairn-sim: runs production code in simulated worlds, one history for each seed. No EAL.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "apps/common/exit_status.hpp"
#include "apps/sim/crash.hpp"
#include "apps/sim/incast.hpp"
#include "apps/sim/options.hpp"
#include "apps/sim/report.hpp"
#include "apps/sim/swarm.hpp"
#include "apps/sim/sync.hpp"
#include "lib/sim/capture.hpp"

namespace {

using namespace cairn;

constexpr int kPromiseBroken = 1;

// Makes the first signal stop the program. A second one ends it at once.
void stop_on_signals() noexcept {
    for (const int signal : {SIGINT, SIGTERM}) {
        struct sigaction action {};
        action.sa_handler = [](int) { simulate::request_stop(); };
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        sigaction(signal, &action, nullptr);
    }
}

Result<int> run(int argc, char** argv) {
    const Result<simulate::Options> parsed = simulate::parse_options(argc, argv);
    if (!parsed.ok()) {
        return parsed.error();
    }
    const simulate::Options& options = parsed.value();
    if (!options.pcap.empty() && !sim::Capture().write(options.pcap)) {
        return Error{fmt::format("--pcap {} cannot be written", options.pcap), "name a file in a folder that is there"};
    }
    stop_on_signals();
    if (!options.incast.empty()) {
        simulate::run_incasts(options);
        return 0;
    }
    if (options.sync) {
        simulate::run_sync(options);
        return 0;
    }
    simulate::report_crashes();
    const simulate::Tally tally = simulate::Swarm(options).run();
    fmt::print(options.json || options.trace ? stderr : stdout, "{}\n", tally.text(options));
    if (options.json) {
        fmt::print("{}\n", tally.json(options));
    }
    return tally.failures.empty() ? 0 : kPromiseBroken;
}

}  // namespace

int main(int argc, char** argv) {
    return app::exit_status("cairn-sim", [&] { return run(argc, argv); });
}
