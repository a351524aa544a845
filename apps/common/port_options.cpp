#include "apps/common/port_options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "apps/common/command_line.hpp"

namespace cairn::app {

void add_port(CLI::App& app, PortOptions& options) {
    app.add_option("--port", options.port, "port: eth:N or uring:ADDRESS; without it the first there is");
    add_socket_mode(app, options.socket_mode);
}

void add_buffers(CLI::App& app, PortOptions& options) {
    app.add_option("--burst", options.burst, "packets per burst of an ethernet port")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    app.add_option("--buffers", options.buffers, "packet buffers of each ethernet port")
        ->check(CLI::Range(512U, 4194304U))
        ->capture_default_str();
}

void add_ports(CLI::App& app, PortOptions& options) {
    add_port(app, options);
    app.add_option("--ip", options.ip,
                   std::string("the ethernet port's IP address; without it ") + kPrivateIp +
                       " where it reaches only this machine's processes");
    app.add_option("--prefix", options.prefix_bits, "bits of the link's prefix; 0: every peer is on the link")
        ->check(CLI::Range(0U, 128U));
    app.add_option("--gateway", options.gateway, "router for peers that are not on the link");
    app.add_option("--traffic-class", options.traffic_class,
                   "DSCP and ECN bits of what is sent; 3: as if a switch had marked all of it")
        ->check(CLI::Range(0U, 255U));
    add_buffers(app, options);
    app.add_option("--data-room", options.data_room_bytes, "bytes of a packet buffer; 0: what suits the driver")
        ->check(CLI::Range(0, 16384));
    app.add_flag("--pcap-all", options.pcap_all, "record all other frames too: ARP, neighbour discovery, strangers");
}

void add_faults(CLI::App& app, PortOptions& options) {
    app.add_option("--drop-per-million", options.drop_per_million, "fault injection: received packets to lose")
        ->check(CLI::Range(0U, 1'000'000U));
}

void note_given(const CLI::App& app, PortOptions& options, std::span<const char* const> for_ethernet) {
    const auto given = [&app](const char* name) {
        const CLI::Option* const option = app.get_option_no_throw(name);
        return option != nullptr && option->count() != 0;
    };
    const auto ethernet = std::find_if(for_ethernet.begin(), for_ethernet.end(), given);
    options.for_ethernet = ethernet != for_ethernet.end() ? *ethernet : "";
    options.for_sockets = given("--uring") ? "--uring" : "";
}

}  // namespace cairn::app
