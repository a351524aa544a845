// The devices as rdma_cm knows them: each is opened once, at its first use, and stays open.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <vector>

#include "lib/ibverbs/device.hpp"
#include "lib/rdmacm/ports.hpp"

namespace cairn::rdmacm {

class Exchange;

struct Device {
    const ibverbs::Device* of = nullptr;
    ibv_context* verbs = nullptr;
    ibv_pd* pd = nullptr;      // for queue pairs of programs that have no domain
    ibv_xrcd* xrcd = nullptr;  // the domain of XRC; made when it is needed
    std::unique_ptr<Exchange> exchange;

    Device() noexcept;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device();

    [[nodiscard]] const net::IpAddress& address() const noexcept { return of->config.address; }
    [[nodiscard]] ibverbs::Adapter& adapter() const noexcept;
};

// Returns the device, and opens it if need be. Returns nullptr, with errno, if it cannot be opened.
[[nodiscard]] Device* open_device(const ibverbs::Device& of);
// Returns the device that has the address; nullptr, with errno, if none has.
[[nodiscard]] Device* device_at(const net::IpAddress& address);
// Explains once why rdma_cm does not work at an address. The address is this machine's and has no device, or is a
// device's and not this machine's. Programs do not report the reason. A device that could not be opened has been
// explained.
void explain_address(const net::IpAddress& address);
// Opens all devices that can be opened, and returns them. Sets errno if there is none.
[[nodiscard]] std::vector<Device*> open_all();
// Returns the devices that are open.
[[nodiscard]] std::vector<Device*> open_devices();
// Returns the device's domain of XRC; nullptr, with errno, if it cannot be made.
[[nodiscard]] ibv_xrcd* xrcd_of(Device& device);

// As the functions of PortTable, for the ports of this process.
[[nodiscard]] std::uint16_t claim_port(const PortClaim& wanted);
[[nodiscard]] bool change_port(const PortClaim& to);
bool release_port(const PortClaim& held) noexcept;
// As those, for the services of all programs of the device's address. The first returns an errno value. EADDRINUSE:
// another program has the service. ETIMEDOUT: neither the broker nor one that follows it answers in time. It waits; the
// caller does not hold the adapter's lock.
[[nodiscard]] int claim_service(const Device& device, wire::ServiceId service, bool shares);
void release_service(const Device& device, wire::ServiceId service);

}  // namespace cairn::rdmacm
