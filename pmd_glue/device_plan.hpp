// How a device is to be set up: a pure decision from what the driver says of itself and what the application
// wants. The driver-quirk table lives behind it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace cairn::pmd {

// What is known of a device before it is configured.
struct DeviceFacts {
    std::string driver;                 // as DPDK names it: "net_memif", "mlx5_pci", ...
    std::string name;                   // "net_memif0", "0000:3b:00.0"
    std::string devargs;                // "role=server,bsize=2048"
    std::uint16_t max_queues = 1;       // pairs
    std::uint16_t mtu_bytes = 1500;     // of the kernel's interface where there is one, else the driver's
    std::uint16_t max_mtu_bytes = 0;    // what it may be raised to; 0: the driver does not say
    bool kernel_interface = false;      // the MTU is the kernel's to set
    bool offers_rss = false;            // over UDP ports or at least IP addresses
    bool offers_ipv4_checksum = false;  // on transmit
    bool offers_segments = false;       // transmits mbuf chains
    bool roce_in_hardware = false;      // the NIC itself takes UDP 4791
    bool in_software = false;           // made by a --vdev argument
};

struct DeviceWish {
    std::uint16_t workers = 1;
    std::uint16_t path_mtu_bytes = 1024;
    std::uint16_t data_room_bytes = 0;  // 0: what suits the driver
};

struct DevicePlan {
    std::uint16_t queues = 1;  // pairs; workers beyond them are fed by software
    std::uint16_t data_room_bytes = 2048;
    std::uint16_t link_mtu_bytes = 1500;
    bool set_mtu = false;
    bool rss = false;
    bool ipv4_checksum_offload = false;
    bool segments = false;           // a payload may be sent from where it lies
    bool isolate = false;            // the kernel keeps the rest of the traffic
    bool fence_disconnects = false;  // the driver unmaps memory under the poller when its peer goes
    bool fills_rings = true;         // buffers lie in its receive rings, as in those of a NIC
};

// Errors name the device argument or setting at fault and the remedy.
[[nodiscard]] Result<DevicePlan> plan_device(const DeviceFacts& facts, const DeviceWish& wish);

// For workers that each poll a queue of every one of some devices: as many as all devices have queues to give them.
[[nodiscard]] Result<std::uint16_t> workers_in_common(std::span<const DeviceFacts> devices, const DeviceWish& wish);

// What the receive rings of so many queues take of a pool, and the least that is left to send from.
[[nodiscard]] constexpr std::uint32_t least_buffers(std::uint16_t queues, std::uint16_t ring_slots) noexcept {
    constexpr std::uint32_t kToSend = 256;
    return queues * (ring_slots + kToSend);
}

// The largest path MTU that the link carries as it is, whatever `wish` says of it; 1024 when it carries none.
[[nodiscard]] std::uint16_t largest_path_mtu(const DeviceFacts& facts, DeviceWish wish);

// The value of `key` in "a=1,b=2" as a number, or `otherwise`.
[[nodiscard]] std::uint32_t devarg_number(const std::string& devargs, const std::string& key, std::uint32_t otherwise);

// The IP packet that a path MTU asks the link for, with the longest RoCEv2 headers over IPv6.
[[nodiscard]] constexpr std::uint16_t ip_bytes_for(std::uint16_t path_mtu_bytes) noexcept {
    constexpr std::uint16_t kIpv6UdpAndRoce = 40 + 8 + 12 + 8 + 4 + 4;  // BTH, DETH, ImmDt, ICRC
    return static_cast<std::uint16_t>(path_mtu_bytes + kIpv6UdpAndRoce);
}

}  // namespace cairn::pmd
