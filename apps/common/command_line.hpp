// What the programs' own arguments have in common.
#pragma once

#include <string>

#include "lib/base/result.hpp"
#include "lib/port/socket_io.hpp"

namespace CLI {
class App;
}

namespace cairn::app {

// Parses argv[first...] into what `app` was told of. --help prints and ends the program; an error names the argument.
Status parse_arguments(CLI::App& app, int argc, char** argv, int first);

// --uring defer | sqpoll | plain.
void add_socket_mode(CLI::App& app, port::SocketMode& mode);
// --poll adaptive | spin.
void add_polling(CLI::App& app, bool& spin);
// --pcap FILE, --json.
void add_output(CLI::App& app, std::string& pcap, bool& json);

}  // namespace cairn::app
