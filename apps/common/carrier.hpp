// Carrier: what the workers of a program send through, by its --port argument: queues of one DPDK device, or a UDP
// socket.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "apps/common/carrier_options.hpp"
#include "lib/net/address.hpp"
#include "lib/port/port.hpp"
#include "pmd_glue/capture.hpp"
#include "pmd_glue/device.hpp"

namespace cairn::port {
class UringPort;
}
namespace cairn::pmd {
class EthdevPort;
}

namespace cairn::app {

class Carrier {
public:
    // Opens the device, or checks what a socket needs. Errors name the argument and the remedy; arguments that the port
    // would ignore are among them.
    static Result<Carrier> open(const CarrierOptions& options);

    // The port of one worker. It must not outlive the carrier.
    Result<std::unique_ptr<port::Port>> make_port(std::uint16_t worker);
    // The same where its kind matters: whichever is_socket() says.
    Result<std::unique_ptr<port::UringPort>> make_socket_port();
    Result<std::unique_ptr<pmd::EthdevPort>> make_ethdev_port(std::uint16_t worker);
    // To be called once all ports are there; ends with the carrier, or by stop_capture().
    Status start_capture();
    void stop_capture() noexcept { capture_.reset(); }

    [[nodiscard]] const net::IpAddress& local() const noexcept { return local_; }
    // A peer's address, as an argument gives it: of one host, of our family, and not our own.
    [[nodiscard]] Result<net::IpAddress> peer(const std::string& text) const;
    [[nodiscard]] bool is_socket() const noexcept { return device_ == nullptr; }
    // The device's name, or "uring:ADDRESS".
    [[nodiscard]] std::string name() const;

private:
    explicit Carrier(const CarrierOptions& options) : options_(options) {}

    CarrierOptions options_;
    net::IpAddress local_{};
    std::unique_ptr<pmd::Device> device_;
    std::unique_ptr<pmd::Capture> capture_;
};

}  // namespace cairn::app
