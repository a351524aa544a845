// A configuration file: arguments of a program by their names, in TOML.
#pragma once

#include <string>

#include "lib/base/result.hpp"

namespace CLI {
class App;
}

namespace cairn::fsd {

// Gives the arguments of `app` that were not given yet the values of the file's table [fs]. Called after parsing.
// Errors name the file, the line and the key: no such argument, or one that refuses the value.
Status read_config(const std::string& file_name, CLI::App& app);

}  // namespace cairn::fsd
