#include "apps/common/command_line.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <iostream>
#include <map>
#include <vector>

namespace cairn::app {

Status parse_arguments(CLI::App& app, int argc, char** argv, int first) {
    std::vector<char*> arguments{argv[0]};
    arguments.insert(arguments.end(), argv + first, argv + argc);
    try {
        app.parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        std::exit(0);
    } catch (const CLI::ParseError& error) {  // the library's way of refusing; ends here
        return Error{error.what(), "--help lists the arguments"};
    }
    return Nothing{};
}

void add_socket_mode(CLI::App& app, port::SocketMode& mode) {
    static const std::map<std::string, port::SocketMode> modes{
        {"defer", port::SocketMode::Defer}, {"sqpoll", port::SocketMode::Sqpoll}, {"plain", port::SocketMode::Plain}};
    app.add_option("--uring", mode, "how a socket is driven: defer, sqpoll (a kernel thread), plain (no ring)")
        ->transform(CLI::CheckedTransformer(modes));
}

void add_polling(CLI::App& app, bool& spin) {
    app.add_option_function<std::string>(
           "--poll", [&spin](const std::string& text) { spin = text == "spin"; },
           "adaptive, or spin: never give the CPU away")
        ->check(CLI::IsMember({"adaptive", "spin"}))
        ->default_str("adaptive");
}

void add_output(CLI::App& app, std::string& pcap, bool& json) {
    app.add_option("--pcap", pcap, "record the (first) port's RoCEv2 frames in this file, for Wireshark");
    app.add_flag("--json", json, "end with one JSON object on stdout");
}

}  // namespace cairn::app
