// cairn-run: runs programs that were built for RDMA adapters on our libraries.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "apps/common/exit_status.hpp"
#include "apps/run/libraries.hpp"
#include "apps/run/options.hpp"
#include "apps/run/program.hpp"
#include "apps/run/stat.hpp"
#include "apps/run/view.hpp"
#include "lib/ibverbs/device_config.hpp"

namespace {

using namespace cairn;

void set_variable(const char* name, const std::optional<std::string>& value) {
    if (value) {
        setenv(name, value->c_str(), 1);
    }
}

// Sets the variables of the environment that the options replace.
void set_environment(const launch::Options& options, const launch::Libraries& libraries) {
    set_variable("CAIRN_DEVICES", options.devices);
    set_variable("CAIRN_PCAP", options.pcap);
    set_variable("CAIRN_FAULTS", options.faults);
    set_variable("CAIRN_POLL", options.poll);
    const char* const before = std::getenv("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", libraries.search_path(before == nullptr ? "" : before).c_str(), 1);
}

// Becomes the program. Returns the reason if it cannot.
Error execute(const std::string& path, const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) {
        arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    execv(path.c_str(), arguments.data());
    return Error{fmt::format("cannot run {}: {}", path, std::strerror(errno)), "give a program's path"};
}

Result<int> run_program(const launch::Options& options, const launch::Libraries& libraries) {
    const Result<std::string> path = launch::reach_program(options.command.front(), libraries);
    if (!path.ok()) {
        return path.error();
    }
    const Result<ibverbs::Environment> environment = ibverbs::read_environment();
    if (!environment.ok()) {
        return environment.error();
    }
    const Status shown =
        launch::show_devices(options.view, launch::plan_view(environment.value().devices), libraries.shim);
    return shown.ok() ? execute(path.value(), options.command) : shown.error();
}

Result<int> show_info(const launch::Libraries& libraries) {
    const Result<ibverbs::Environment> environment = ibverbs::read_environment();
    if (!environment.ok()) {
        return environment.error();
    }
    const Status shown = launch::show_info(libraries, environment.value().devices);
    return shown.ok() ? Result<int>(0) : shown.error();
}

Result<int> run(int argc, char** argv) {
    const Result<launch::Options> parsed = launch::parse_options(argc, argv);
    if (!parsed.ok()) {
        return parsed.error();
    }
    const launch::Options& options = parsed.value();
    std::error_code refused;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", refused);
    if (refused) {
        return Error{"cannot read /proc/self/exe: " + refused.message(), "mount /proc"};
    }
    const Result<launch::Libraries> libraries = launch::find_libraries(self.parent_path().string());
    if (!libraries.ok()) {
        return libraries.error();
    }
    set_environment(options, libraries.value());
    switch (options.task) {
        case launch::Task::Stat:
            return launch::show_counters(options.stat_pid);
        case launch::Task::Info:
            return show_info(libraries.value());
        case launch::Task::Run:
            break;
    }
    return run_program(options, libraries.value());
}

}  // namespace

int main(int argc, char** argv) {
    return app::exit_status("cairn-run", [&] { return run(argc, argv); });
}
