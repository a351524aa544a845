// The common part of every program's main(): EAL, signals, and one line for an error.
#pragma once

#include <functional>
#include <string_view>

#include "apps/common/exit_status.hpp"
#include "lib/base/result.hpp"

namespace cairn::app {

// A program that is called after EAL took its arguments. argv[first] is its own first argument. Returns the exit
// status.
using Program = std::function<Result<int>(int argc, char** argv, int first)>;

// Starts EAL with the arguments up to "--", except if -h, --help or --version come after it. Turns SIGINT and SIGTERM
// into a clean stop, runs the program, and prints its error as "name: cause; remedy". Without a device there are
// `lcores` lcores, unless the arguments name them.
int run(std::string_view name, int argc, char** argv, const Program& program, unsigned lcores = 1) noexcept;

}  // namespace cairn::app
