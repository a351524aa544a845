#include "apps/testpmd/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <array>
#include <optional>

#include "apps/common/command_line.hpp"

namespace cairn::testpmd {

namespace {

std::string modes_text() {
    std::string text;
#define CAIRN_X(enumerator, name, what) text += fmt::format("\n  {:<10} {}", name, what);
    CAIRN_FORWARD_MODES(CAIRN_X)
#undef CAIRN_X
    return text;
}

void declare(CLI::App& app, Options& options) {
    app.add_option("--forward-mode", options.mode, "what to do with frames")->capture_default_str();
    app.add_option("--port", options.ports,
                   "port: eth:N or (roce-echo) uring:ADDRESS, several times; without it all of EAL's, else a socket");
    app::add_socket_mode(app, options.each_port.socket_mode);
    app.add_option("--ip", options.ip,
                   std::string("address of the first ethernet port; the others count up; without it ") +
                       app::kPrivateIp + " where they reach only this machine's processes, or send only");
    app.add_option("--peer", options.peer, "txonly: destination address")->capture_default_str();
    app.add_option("--peer-mac", options.peer_mac, "txonly: destination MAC")->capture_default_str();
    app.add_option("--frame-bytes", options.frame_bytes, "txonly: bytes of a frame, without FCS")
        ->check(CLI::Range(60, 9000))
        ->capture_default_str();
    app::add_buffers(app, options.each_port);
    app::add_path_mtu(app, options.each_port.path_mtu_bytes, "largest path MTU to make room for")
        ->capture_default_str();
    app.add_option("--stats-period", options.period_s, "seconds between statistics lines; 0: none")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--duration", options.duration_s, "seconds to run; 0: until a signal")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app::add_polling(app, options.spin);
    app::add_output(app, options.each_port.pcap, options.json);
}

}  // namespace

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app("cairn-testpmd: forwards frames; EAL arguments first, then --\nForward modes:" + modes_text());
    Options options;
    options.each_port.burst = 32;
    declare(app, options);
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    for (const char* name : {"--peer", "--peer-mac", "--frame-bytes"}) {
        if (app.count(name) != 0 && options.mode != "txonly") {
            return Error{fmt::format("{} is for --forward-mode txonly", name), "leave it out, or choose that mode"};
        }
    }
    constexpr std::array<const char*, 3> kNotOfSockets{"--ip", "--buffers", "--path-mtu"};
    app::note_given(app, options.each_port, kNotOfSockets);
    return options;
}

Result<pmd::ForwardConfig> forward_config(const Options& options) {
    pmd::ForwardConfig config;
    const std::optional<pmd::ForwardMode> mode = pmd::forward_mode_named(options.mode);
    if (!mode.has_value()) {
        return Error{fmt::format("--forward-mode {} is none", options.mode), "--help lists the modes"};
    }
    const Result<net::IpAddress> local = net::IpAddress::parse(options.ip.empty() ? app::kPrivateIp : options.ip);
    const Result<net::IpAddress> peer = net::IpAddress::parse(options.peer);
    const Result<net::MacAddress> mac = net::MacAddress::parse(options.peer_mac);
    if (!local.ok()) {
        return local.error();
    }
    if (!peer.ok()) {
        return peer.error();
    }
    if (!mac.ok()) {
        return mac.error();
    }
    if (local.value().is_v4() != peer.value().is_v4() && *mode == pmd::ForwardMode::TxOnly) {
        return Error{"--ip and --peer are of two families", "give both as IPv4 or both as IPv6"};
    }
    config.mode = *mode;
    config.burst = options.each_port.burst;
    config.frame_bytes = options.frame_bytes;
    config.local = local.value();
    config.peer = peer.value();
    config.peer_mac = mac.value();
    return config;
}

}  // namespace cairn::testpmd
