// Arguments that several programs have.
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

// Parses argv[first...] into the variables known to `app`. --help and --version print and end the program. An Error
// names the argument.
Status parse_arguments(CLI::App& app, int argc, char** argv, int first);

// Adds --path-mtu, -m: one of RoCE's sizes, or 0 if that is the default.
CLI::Option* add_path_mtu(CLI::App& app, std::uint16_t& path_mtu_bytes, const std::string& what);
// Adds --service: the number by which clients find a server.
void add_service(CLI::App& app, std::uint16_t& service);
// Adds --uring defer | sqpoll | plain.
void add_socket_mode(CLI::App& app, port::SocketMode& mode);
// Adds --poll adaptive | spin.
void add_polling(CLI::App& app, bool& spin);
// Adds --pcap FILE.
void add_pcap(CLI::App& app, std::string& pcap);
// Adds --pcap and --json. Without --json the result is a table.
void add_output(CLI::App& app, std::string& pcap, bool& json);

}  // namespace cairn::app
