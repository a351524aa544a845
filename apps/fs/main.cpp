// cairn-fs: reads and changes a file system's files from the command line.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "apps/common/exit_status.hpp"
#include "apps/fs/bench.hpp"
#include "apps/fs/elsewhere.hpp"
#include "apps/fs/options.hpp"
#include "apps/fs/session.hpp"

namespace {

using namespace cairn;

struct Command {
    std::string_view name;
    void (*run)(fstool::Session&);
};

void bench(fstool::Session& session) {
    if (session.options.elsewhere && !fstool::Elsewhere(session.fs.view()).is_anywhere()) {
        session.fail({"all shards are this daemon's", "--elsewhere is for file systems of several nodes"});
        return;
    }
    const auto files =
        fstool::bench_files_of_client(session.fs, "/cairn-bench." + std::to_string(::getpid()), session.options);
    if (const Status done = fstool::run_bench(*files, session.options); !done.ok()) {
        session.fail(done.error());
    }
}

constexpr std::array kCommands{
    Command{"bench", bench},
    Command{"cat", fstool::write_out},
    Command{"chmod", fstool::change_mode},
    Command{"cp", fstool::copy},
    Command{"df", fstool::show_room},
    Command{"fsck", fstool::check_all},
    Command{"ln", fstool::make_link},
    Command{"ls", fstool::list},
    Command{"mkdir", fstool::make_directories},
    Command{"mv", fstool::move},
    Command{"rm", fstool::remove},
    Command{"scrub", fstool::scrub_all},
    Command{"stat", fstool::show_attributes},
    Command{"status", fstool::show_status},
    Command{"touch", fstool::touch},
    Command{"truncate", fstool::truncate},
};

Result<int> run(int argc, char** argv) {
    const Result<fstool::Options> parsed = fstool::parse_options(argc, argv);
    if (!parsed.ok()) {
        return parsed.error();
    }
    const fstool::Options& options = parsed.value();
    if (options.command == "bench" && options.bench == "balance") {
        fmt::print("{}\n", fstool::measure_balance());
        return 0;
    }
    if (options.command == "bench" && !options.directory.empty()) {
        const auto files = fstool::bench_files_of_directory(options.directory);
        const Status done = fstool::run_bench(*files, options);
        return done.ok() ? 0 : app::complain("cairn-fs", done.error().text());
    }
    const Duration timeout{static_cast<std::int64_t>(options.timeout_s * 1e9)};
    fs::ClientOptions client_options{options.socket, timeout};
    if (options.relaxed) {
        client_options.relaxed = true;
    }
    const Result<std::unique_ptr<fs::Client>> client = fs::Client::connect(client_options);
    if (!client.ok()) {
        (void)app::complain("cairn-fs", client.error().text());
        return 1;
    }
    fstool::Session session(*client.value(), options);
    for (const Command& command : kCommands) {
        if (command.name == options.command) {
            command.run(session);
        }
    }
    return session.status();
}

}  // namespace

int main(int argc, char** argv) {
    const int status = app::exit_status("cairn-fs", [&] { return run(argc, argv); });
    return std::fflush(stdout) == 0 ? status : app::complain("cairn-fs", "standard output cannot be written");
}
