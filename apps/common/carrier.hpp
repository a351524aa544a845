// Carrier: what the workers of a program send through, by its --port argument: queues of one DPDK device, or a UDP
// socket.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/net/address.hpp"
#include "lib/port/port.hpp"
#include "lib/port/socket_io.hpp"
#include "pmd_glue/capture.hpp"
#include "pmd_glue/device.hpp"

namespace cairn::port {
class UringPort;
}
namespace cairn::pmd {
class EthdevPort;
}

namespace cairn::app {

struct CarrierOptions {
    std::string port;  // as choose_port() takes it
    std::string ip;    // of an ethernet port, which needs one; a socket has its own
    std::string ip_remedy = "give --ip ADDRESS";
    std::string gateway;  // empty: none
    std::uint8_t prefix_bits = 0;
    std::uint16_t workers = 1;
    std::uint16_t path_mtu_bytes = 1024;
    std::uint16_t data_room_bytes = 0;
    std::uint32_t buffers = 16384;
    std::uint16_t burst = 16;
    std::uint8_t traffic_class = 0;  // DSCP and ECN of what is sent
    port::SocketMode socket_mode = port::SocketMode::Defer;
    std::string pcap;  // empty: no capture
    bool pcap_all = false;
};

class Carrier {
public:
    // Opens the device, or checks what a socket needs. Errors name the argument and the remedy.
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
