#include "apps/common/ports.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "lib/base/secret.hpp"
#include "lib/port/faulty_port.hpp"
#include "lib/port/uring_port.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/port_argument.hpp"

namespace cairn::app {

namespace {

Status judge_given(const PortOptions& options, const std::string& port, bool is_socket) {
    const std::string& ignored = is_socket ? options.for_ethernet : options.for_sockets;
    if (ignored.empty()) {
        return Nothing{};
    }
    return Error{fmt::format("{} is for {}, and {} is {}", ignored, is_socket ? "ethernet ports" : "sockets", port,
                             is_socket ? "a socket" : "an ethernet port"),
                 "leave it out, or choose another --port"};
}

// Returns the address of an ethernet port.
Result<net::IpAddress> own_address(const PortOptions& options, std::uint16_t port_id) {
    if (!options.ip.empty()) {
        return net::IpAddress::parse(options.ip);
    }
    if (options.private_ip.empty() || pmd::reaches_network(port_id)) {
        return Error{"an ethernet port needs an IP address of its own, and none is given", options.ip_remedy};
    }
    return net::IpAddress::parse(options.private_ip);
}

// Returns the router of an ethernet port, if there is one. Peers outside the link's prefix are reached through the
// gateway, so neither argument makes sense without the other.
Result<std::optional<net::IpAddress>> router_of(const PortOptions& options, const net::IpAddress& local) {
    if (options.gateway.empty() && options.prefix_bits == 0) {
        return std::optional<net::IpAddress>();
    }
    if (options.gateway.empty()) {
        return Error{fmt::format("--prefix {} is for a link with a router, and none is given", options.prefix_bits),
                     "leave it out, or give --gateway ADDRESS"};
    }
    const Result<net::IpAddress> gateway = net::IpAddress::parse(options.gateway);
    if (!gateway.ok()) {
        return gateway.error();
    }
    if (options.prefix_bits == 0) {
        return Error{fmt::format("--gateway {} is for peers beyond the link, and without --prefix every peer is on it",
                                 options.gateway),
                     "give --prefix BITS, or leave the gateway out"};
    }
    if (local.is_v4() && options.prefix_bits > 32) {
        return Error{fmt::format("--prefix {} is longer than our address {}", options.prefix_bits, local.text()),
                     "give 32 bits or less"};
    }
    const bool is_on_link = gateway.value().shares_prefix(local, static_cast<std::uint8_t>(options.prefix_bits)) ||
                            (!local.is_v4() && gateway.value().is_v6_link_local());
    if (!is_on_link || gateway.value() == local) {
        return Error{fmt::format("--gateway {} is no other host of the link {}/{}", options.gateway, local.text(),
                                 options.prefix_bits),
                     "give the router's address on that link, and --prefix as the link has it"};
    }
    return std::optional(gateway.value());
}

}  // namespace

Result<Ports> Ports::open(const PortOptions& options) {
    const Result<pmd::PortChoice> choice = pmd::choose_port(options.port);
    if (!choice.ok()) {
        return choice.error();
    }
    Ports ports(options);
    if (const auto* socket = std::get_if<pmd::SocketChoice>(&choice.value()); socket != nullptr) {
        ports.local_ = socket->local;
        const Status heeded = judge_given(options, ports.name(), true);
        if (!heeded.ok()) {
            return heeded.error();
        }
        port::SocketQueuesConfig config;
        config.local = socket->local;
        config.workers = options.workers;
        config.pcap = options.pcap;
        auto sockets = port::SocketQueues::open(config);
        if (!sockets.ok()) {
            return sockets.error();
        }
        ports.sockets_ = std::move(sockets).value();
        return ports;
    }
    pmd::DeviceConfig config;
    config.port_id = std::get<pmd::EthdevChoice>(choice.value()).port_id;
    const Status heeded = judge_given(options, fmt::format("eth:{}", config.port_id), false);
    const Result<net::IpAddress> local = own_address(options, config.port_id);
    if (!heeded.ok() || !local.ok()) {
        return heeded.ok() ? local.error() : heeded.error();
    }
    ports.local_ = local.value();
    const Result<std::optional<net::IpAddress>> router = router_of(options, ports.local_);
    if (!router.ok()) {
        return router.error();
    }
    ports.gateway_ = router.value();
    config.wish.workers = options.workers;
    config.wish.path_mtu_bytes = options.path_mtu_bytes;
    config.wish.data_room_bytes = options.data_room_bytes;
    config.wish.frame_bytes = options.frame_bytes;
    config.wish.frame_argument = options.frame_argument;
    config.buffers = options.buffers;
    auto device = pmd::Device::open(config);
    if (!device.ok()) {
        return device.error();
    }
    ports.device_ = std::move(device).value();
    fmt::print(stderr, "{}\n", ports.device_->describe());
    return ports;
}

Result<std::unique_ptr<port::UringPort>> Ports::make_socket_port(std::uint16_t worker) {
    port::UringPortConfig config;
    config.mode = options_.socket_mode;
    config.traffic_class = static_cast<std::uint8_t>(options_.traffic_class);
    auto opened = port::UringPort::open(config, sockets_, worker);
    if (opened.ok()) {
        fmt::print(stderr, "{}\n", opened.value()->describe());
    }
    return opened;
}

Result<std::unique_ptr<pmd::EthdevPort>> Ports::make_ethdev_port(std::uint16_t worker) {
    pmd::EthdevPortConfig config;
    config.worker = worker;
    config.local = local_;
    config.burst = options_.burst;
    config.prefix_bits = static_cast<std::uint8_t>(options_.prefix_bits);
    config.traffic_class = static_cast<std::uint8_t>(options_.traffic_class);
    config.gateway = gateway_;
    auto made = std::make_unique<pmd::EthdevPort>(*device_, config);
    fmt::print(stderr, "{}\n", made->describe());
    return made;
}

Result<std::unique_ptr<port::Port>> Ports::make_port(std::uint16_t worker) {
    const auto any = [](auto made) -> Result<std::unique_ptr<port::Port>> {
        if (!made.ok()) {
            return made.error();
        }
        return std::unique_ptr<port::Port>(std::move(made).value());
    };
    Result<std::unique_ptr<port::Port>> made =
        is_socket() ? any(make_socket_port(worker)) : any(make_ethdev_port(worker));
    if (!made.ok() || options_.drop_per_million == 0) {
        return made;
    }
    port::Faults faults;
    faults.seed = draw_secret()[0];
    faults.loss_per_million = options_.drop_per_million;
    return std::unique_ptr<port::Port>(std::make_unique<port::FaultyPort>(std::move(made).value(), faults, Instant{}));
}

Result<net::IpAddress> Ports::peer(const std::string& text) const {
    const Result<net::IpAddress> parsed = net::IpAddress::parse(text);
    if (!parsed.ok()) {
        return parsed.error();
    }
    const net::IpAddress& peer = parsed.value();
    if (peer.is_v4() != local_.is_v4()) {
        return Error{fmt::format("our address {} and --peer {} are of two families", local_.text(), text),
                     "give both as IPv4 or both as IPv6"};
    }
    if (!peer.is_station()) {
        return Error{fmt::format("--peer {} is no address of a host", text), "give the server's own address"};
    }
    if (peer == local_) {
        return Error{
            fmt::format("--peer {} is this end's own address", text),
            is_socket() ? "give each end a --port uring:ADDRESS of its own" : "give each end an --ip of its own"};
    }
    return peer;
}

std::string Ports::name() const {
    return is_socket() ? "uring:" + local_.text() : device_->name();
}

Status Ports::start_capture() {
    if (options_.pcap.empty() || is_socket()) {
        return Nothing{};
    }
    auto started = pmd::Capture::start(*device_, options_.pcap,
                                       options_.pcap_all ? pmd::Capture::Frames::All : pmd::Capture::Frames::Roce);
    if (!started.ok()) {
        return started.error();
    }
    capture_ = std::move(started).value();
    return Nothing{};
}

}  // namespace cairn::app
