// What the programs' own arguments have in common.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"
#include "lib/port/socket_io.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cairn::app {

// Parses argv[first...] into what `app` was told of. --help and --version print and end the program; an error names the
// argument.
Status parse_arguments(CLI::App& app, int argc, char** argv, int first);

// --path-mtu, -m: of RoCE's sizes; 0, where it may be left out, as the default.
CLI::Option* add_path_mtu(CLI::App& app, std::uint16_t& path_mtu_bytes, const std::string& what);
// --service: where a server is found.
void add_service(CLI::App& app, std::uint16_t& service);
// --uring defer | sqpoll | plain.
void add_socket_mode(CLI::App& app, port::SocketMode& mode);
// --poll adaptive | spin.
void add_polling(CLI::App& app, bool& spin);
// --pcap FILE, --json; without the latter the result is a table.
void add_output(CLI::App& app, std::string& pcap, bool& json);

}  // namespace cairn::app
