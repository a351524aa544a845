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
    ibv_xrcd* xrcd = nullptr;  // likewise; made when it is needed
    std::unique_ptr<Exchange> exchange;

    Device() noexcept;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device();

    [[nodiscard]] const net::IpAddress& address() const noexcept { return of->config.address; }
    [[nodiscard]] ibverbs::Adapter& adapter() const noexcept;
};

// Returns the device, which it opens if need be; nullptr, with errno, if it cannot be opened.
[[nodiscard]] Device* open_device(const ibverbs::Device& of);
// Returns the device that has the address; nullptr, with errno, if none has.
[[nodiscard]] Device* device_at(const net::IpAddress& address);
// Says once why rdma_cm does not work at an address of this machine that has no device, or of a device whose address
// this machine does not have: the program only says that it does not. A device that could not be opened has been
// explained.
void explain_address(const net::IpAddress& address);
// Opens all devices that can be opened. Returns those; with errno if there is none.
[[nodiscard]] std::vector<Device*> open_all();
// Returns the devices that are open.
[[nodiscard]] std::vector<Device*> open_devices();
// Returns the device's domain of XRC; nullptr, with errno, if it cannot be made.
[[nodiscard]] ibv_xrcd* xrcd_of(Device& device);

// The ports of this process, as PortTable.
[[nodiscard]] std::uint16_t claim_port(const PortClaim& wanted);
[[nodiscard]] bool change_port(const PortClaim& to);
bool release_port(const PortClaim& held) noexcept;
// The services of all programs of the device's address. Returns an errno value: EADDRINUSE if another program has it,
// ETIMEDOUT if the broker does not answer, nor another one that follows it in time. Waits; the adapter's lock is not
// held.
[[nodiscard]] int claim_service(const Device& device, wire::ServiceId service, bool shares);
void release_service(const Device& device, wire::ServiceId service);

}  // namespace cairn::rdmacm
