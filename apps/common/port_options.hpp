// The port of a program and its settings: arguments that the programs share.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "lib/port/socket_io.hpp"

namespace CLI {
class App;
}

namespace cairn::app {

struct PortOptions {
    std::string port;  // as choose_port() takes it
    std::string ip;    // address of an ethernet port, which needs one; a socket has its own
    // The address that a device without `ip` gets if it reaches only processes of this machine. If it is empty, `ip` is
    // needed.
    std::string private_ip;
    std::string ip_remedy = "give --ip ADDRESS";
    std::string gateway;  // empty: none
    std::uint32_t prefix_bits = 0;
    std::uint16_t workers = 1;
    std::uint16_t path_mtu_bytes = 1024;  // 0: the largest that the port carries
    std::uint16_t data_room_bytes = 0;
    std::uint16_t frame_bytes = 0;                 // the largest frame that is sent, if it may exceed those of the path
                                                   // MTU
    const char* frame_argument = "--frame-bytes";  // the argument by which the user sets it
    std::uint32_t buffers = 16384;
    std::uint16_t burst = 16;
    std::uint32_t traffic_class = 0;  // DSCP and ECN of sent packets
    port::SocketMode socket_mode = port::SocketMode::Defer;
    std::uint32_t drop_per_million = 0;  // fault injection: share of received packets that are lost
    std::string pcap;                    // empty: no capture
    bool pcap_all = false;
    // The given arguments, if any, that only one kind of port uses. The other kind refuses them.
    std::string for_ethernet;
    std::string for_sockets;
};

// The address of an end if its device reaches no network.
constexpr const char* kPrivateIp = "10.77.0.1";

// Adds --port, --uring.
void add_port(CLI::App& app, PortOptions& options);
// Adds --burst, --buffers.
void add_buffers(CLI::App& app, PortOptions& options);
// Adds the arguments of both, and --ip, --prefix, --gateway, --traffic-class, --data-room, --pcap, --pcap-all.
void add_ports(CLI::App& app, PortOptions& options);
// Adds --drop-per-million, which make_port() uses.
void add_faults(CLI::App& app, PortOptions& options);
// The arguments that sockets do not use.
constexpr std::array<const char*, 7> kForEthernet{"--ip",      "--prefix",    "--gateway", "--burst",
                                                  "--buffers", "--data-room", "--pcap-all"};
// Notes which of the given arguments not every port uses. Called after parsing.
void note_given(const CLI::App& app, PortOptions& options, std::span<const char* const> for_ethernet = kForEthernet);

}  // namespace cairn::app
