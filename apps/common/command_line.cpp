#include "apps/common/command_line.hpp"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <vector>

#include "apps/common/choice.hpp"

namespace cairn::app {

Status parse_arguments(CLI::App& app, int argc, char** argv, int first) {
    const std::string name = std::filesystem::path(argv[0]).filename().string();
    app.set_version_flag("--version", name + " " CAIRN_VERSION);
    std::vector<char*> arguments{argv[0]};
    arguments.insert(arguments.end(), argv + first, argv + argc);
    try {
        app.parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        std::exit(0);
    } catch (const CLI::CallForVersion& version) {
        std::cout << version.what() << '\n';
        std::exit(0);
    } catch (const CLI::ParseError& error) {  // the library refuses by this exception, which ends here
        return Error{error.what(), "--help lists the arguments"};
    }
    return Nothing{};
}

CLI::Option* add_path_mtu(CLI::App& app, std::uint16_t& path_mtu_bytes, const std::string& what) {
    return app.add_option("-m,--path-mtu", path_mtu_bytes, what)->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
}

void add_service(CLI::App& app, std::uint16_t& service) {
    app.add_option("-p,--service,--service-port", service, "name of the service: a port number, as rdma_cm has them")
        ->check(CLI::Range(1, 65535))
        ->capture_default_str();
}

void add_socket_mode(CLI::App& app, port::SocketMode& mode) {
    add_choice(app, "--uring", mode,
               Choices<port::SocketMode>{{"defer", port::SocketMode::Defer},
                                         {"sqpoll", port::SocketMode::Sqpoll},
                                         {"plain", port::SocketMode::Plain}},
               "how a socket is driven: defer, sqpoll (a kernel thread), plain (no ring)");
}

void add_polling(CLI::App& app, bool& spin) {
    add_choice(app, "--poll", spin, Choices<bool>{{"adaptive", false}, {"spin", true}},
               "adaptive, or spin: never give the CPU away");
}

void add_pcap(CLI::App& app, std::string& pcap) {
    app.add_option("--pcap", pcap, "record the (first) port's RoCEv2 frames in this file, for Wireshark");
}

void add_output(CLI::App& app, std::string& pcap, bool& json) {
    add_pcap(app, pcap);
    app.add_flag("--json", json, "the result as one JSON object, the last line of stdout, instead of a table");
}

}  // namespace cairn::app
