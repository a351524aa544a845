// The ports of a program's workers, by its --port argument: queues of one DPDK device, or UDP sockets of one address.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/common/port_options.hpp"
#include "lib/net/address.hpp"
#include "lib/port/port.hpp"
#include "pmd_glue/capture.hpp"
#include "pmd_glue/device.hpp"

namespace cairn::port {
class SocketQueues;
class UringPort;
}  // namespace cairn::port
namespace cairn::pmd {
class EthdevPort;
}

namespace cairn::app {

class Ports {
public:
    // Opens the device, or the sockets of all workers. Errors name the argument and the remedy. An argument that the
    // port would ignore is an error, too.
    static Result<Ports> open(const PortOptions& options);

    // Makes the port of one worker. The object outlives it.
    Result<std::unique_ptr<port::Port>> make_port(std::uint16_t worker);
    // As make_port(), with the type of a socket's port. Called if is_socket().
    Result<std::unique_ptr<port::UringPort>> make_socket_port(std::uint16_t worker);
    Result<std::unique_ptr<pmd::EthdevPort>> make_ethdev_port(std::uint16_t worker);
    // Starts the capture. Called when all ports exist. The capture ends with the object or by stop_capture().
    Status start_capture();
    void stop_capture() noexcept { capture_.reset(); }

    [[nodiscard]] const net::IpAddress& local() const noexcept { return local_; }
    // Parses a peer's address: of one host, of our family, and not our own.
    [[nodiscard]] Result<net::IpAddress> peer(const std::string& text) const;
    [[nodiscard]] bool is_socket() const noexcept { return device_ == nullptr; }
    // Returns the device's name or "uring:ADDRESS".
    [[nodiscard]] std::string name() const;

private:
    explicit Ports(const PortOptions& options) : options_(options) {}

    PortOptions options_;
    net::IpAddress local_{};
    std::optional<net::IpAddress> gateway_{};
    std::unique_ptr<pmd::Device> device_;
    std::shared_ptr<port::SocketQueues> sockets_;
    std::unique_ptr<pmd::Capture> capture_;
};

}  // namespace cairn::app
