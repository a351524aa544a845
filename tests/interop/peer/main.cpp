// verbs-peer: EAL arguments -- own arguments; the other end of guest/verbs-peer.c, ucmatose, udaddy.
#include <CLI/CLI.hpp>

#include "apps/common/app.hpp"
#include "apps/common/command_line.hpp"
#include "tests/interop/peer/peer.hpp"

namespace {

using namespace cairn;

struct Test {
    const char* name;
    std::uint16_t service_port;
    void (*run)(interop::Peer& peer, const interop::Options& options);
};
constexpr std::array kTests{Test{"steps", 18516, interop::run_steps}, Test{"cmatose", 7471, interop::run_cmatose},
                            Test{"udaddy", 7174, interop::run_udaddy}};

Result<interop::Options> parse_options(int argc, char** argv, int first) {
    CLI::App app("verbs-peer: one end of a test against librdmacm elsewhere; EAL arguments first, then --");
    interop::Options options;
    options.ports.path_mtu_bytes = 4096;
    app.add_option("--port", options.ports.port, "port: eth:N or uring:ADDRESS");
    app.add_option("--ip", options.ports.ip, "the ethernet port's IP address");
    app.add_option("--data-room", options.ports.data_room_bytes, "bytes of a packet buffer");
    app.add_option("--pcap", options.ports.pcap, "record the frames in this file");
    app.add_option("--ask", options.ask, "the server's IP address: be the client");
    app.add_option("--linger", options.linger_s, "seconds to stay when all is done, for messages that were lost");
    app.add_option("--test", options.test, "steps, cmatose, udaddy");
    app.add_flag("--unreliable", options.unreliable, "steps over an unreliable connection");
    app.add_option("--connections", options.connections, "of cmatose and udaddy");
    app.add_option("--messages", options.messages, "of those, each way on each connection");
    app.add_option("--size", options.message_bytes, "bytes of such a message");
    app.add_option("steps", options.steps, "KIND[:BYTES[:s]] in their order");
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    return parsed.ok() ? Result<interop::Options>(options) : parsed.error();
}

Result<int> run_test(const Test& test, interop::Options options) {
    options.service_port = test.service_port;
    auto ports = app::Ports::open(options.ports);
    if (!ports.ok()) {
        return ports.error();
    }
    auto port = ports.value().make_port(0);
    if (!port.ok()) {
        return port.error();
    }
    const Status captured = ports.value().start_capture();
    if (!captured.ok()) {
        return captured.error();
    }
    interop::Peer peer(*port.value());
    test.run(peer, options);
    peer.linger(seconds(options.linger_s));
    std::fprintf(stderr, "%s", peer.device().worker().counters().text().c_str());
    return 0;
}

Result<int> run(int argc, char** argv, int first) {
    const Result<interop::Options> options = parse_options(argc, argv, first);
    if (!options.ok()) {
        return options.error();
    }
    for (const Test& test : kTests) {
        if (options.value().test == test.name) {
            return run_test(test, options.value());
        }
    }
    return Error{"there is no test " + options.value().test, "--help lists them"};
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("verbs-peer", argc, argv, run);
}
