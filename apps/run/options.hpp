// The arguments of cairn-run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace cairn::launch {

// The means by which the program sees its devices in /sys/class/infiniband and /dev/infiniband.
enum class View : std::uint8_t {
    Auto,        // by namespaces if they are allowed, else by the shim
    Namespaces,  // private user and mount namespaces
    Shim,        // a preloaded library
    None         // not at all
};

enum class Task : std::uint8_t { Run, Info, Stat };

struct Options {
    Task task = Task::Run;
    View view = View::Auto;
    // They replace the variables of the environment.
    std::optional<std::string> devices{};
    std::optional<std::string> pcap{};
    std::optional<std::string> faults{};
    std::optional<std::string> poll{};
    int stat_pid = 0;  // of Task::Stat; 0: all programs
    std::vector<std::string> command{};
};

// Parses the arguments. Errors: a wrong argument, by name, and the remedy; no program.
Result<Options> parse_options(int argc, char** argv);

}  // namespace cairn::launch
