// cairn-fs: a file system's files, from the command line.
#include <array>
#include <cstdio>
#include <string_view>

#include "apps/common/exit_status.hpp"
#include "apps/fs/options.hpp"
#include "apps/fs/session.hpp"

namespace {

using namespace cairn;

struct Command {
    std::string_view name;
    void (*run)(fstool::Session&);
};

constexpr std::array kCommands{
    Command{"cat", fstool::write_out},
    Command{"chmod", fstool::change_mode},
    Command{"cp", fstool::copy},
    Command{"df", fstool::show_room},
    Command{"ln", fstool::make_link},
    Command{"ls", fstool::list},
    Command{"mkdir", fstool::make_directories},
    Command{"mv", fstool::move},
    Command{"rm", fstool::remove},
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
    const Duration timeout{static_cast<std::int64_t>(options.timeout_s * 1e9)};
    const Result<std::unique_ptr<fs::Client>> client = fs::Client::connect({options.socket, timeout});
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
