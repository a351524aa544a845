// Plans the setup of a device: a pure decision from the driver's facts and the application's wishes. It includes the
// table of driver quirks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace cairn::pmd {

// The facts about a device before it is configured.
struct DeviceFacts {
    std::string driver;                 // DPDK's name: "net_memif", "mlx5_pci", ...
    std::string name;                   // "net_memif0", "0000:3b:00.0"
    std::string devargs;                // "role=server,bsize=2048"
    std::uint16_t max_queues = 1;       // queue pairs
    std::uint16_t mtu_bytes = 1500;     // of the kernel's interface if there is one, else the driver's
    std::uint16_t max_mtu_bytes = 0;    // largest MTU that can be set; 0: the driver does not say
    bool kernel_interface = false;      // the kernel sets the MTU
    bool offers_rss = false;            // over UDP ports, or at least over IP addresses
    bool offers_ipv4_checksum = false;  // on transmit
    bool offers_segments = false;       // transmits mbuf chains
    bool roce_in_hardware = false;      // the NIC takes UDP port 4791 itself
    bool in_software = false;           // made by a --vdev argument
};

// The memory of payloads that the device sends without a copy.
enum class SentMemory : std::uint8_t {
    Any,       // the driver copies a payload before it returns
    Attached,  // EAL's and attached memory: frames are read later, by threads of this process
    Mapped,    // EAL's and attached memory, which is mapped for the device's DMA
    Eal,       // EAL's alone: a peer maps it, or the driver is not known
};

struct DeviceWish {
    std::uint16_t workers = 1;
    std::uint16_t path_mtu_bytes = 1024;
    std::uint16_t data_room_bytes = 0;  // 0: the driver's default
    // The largest frame that is sent, and its name for the operator; 0: frames of the path MTU suffice.
    std::uint16_t frame_bytes = 0;
    const char* frame_argument = "--frame-bytes";
};

struct DevicePlan {
    std::uint16_t queues = 1;  // queue pairs; software feeds further workers
    std::uint16_t data_room_bytes = 2048;
    std::uint16_t frame_bytes = 2048;  // the largest frame that fits a buffer and the link
    std::uint16_t link_mtu_bytes = 1500;
    bool set_mtu = false;
    bool rss = false;
    bool ipv4_checksum_offload = false;
    bool segments = false;                  // a payload may be sent from its own memory
    std::uint16_t frames_at_once = 0xffff;  // the most that a transmit call may get
    SentMemory memory = SentMemory::Eal;
    bool isolate = false;            // the kernel keeps the rest of the traffic
    bool fence_disconnects = false;  // the driver unmaps memory under the poller when its peer goes
    bool fills_rings = true;         // its receive rings hold buffers, as a NIC's do
    bool asks_once = false;          // it asks its peer for the link at its start only
};

[[nodiscard]] SentMemory memory_of(const DeviceFacts& facts);

// Plans the setup. Errors name the device argument or setting at fault and the remedy.
[[nodiscard]] Result<DevicePlan> plan_device(const DeviceFacts& facts, const DeviceWish& wish);

// Returns the number of workers that can each poll a queue of every device: as many as all devices have queues for.
[[nodiscard]] Result<std::uint16_t> workers_in_common(std::span<const DeviceFacts> devices, const DeviceWish& wish);

// Returns the buffers that the receive rings of `queues` take from a pool, plus the least number to send from.
[[nodiscard]] constexpr std::uint32_t least_buffers(std::uint16_t queues, std::uint16_t ring_slots) noexcept {
    constexpr std::uint32_t kToSend = 256;
    return queues * (ring_slots + kToSend);
}

// Returns the largest path MTU that the link carries as it is. The path MTU of `wish` does not count. Returns 1024 if
// the link carries none.
[[nodiscard]] std::uint16_t largest_path_mtu(const DeviceFacts& facts, DeviceWish wish);

// Returns the number after `key` in "a=1,b=2", or `otherwise`.
[[nodiscard]] std::uint32_t devarg_number(const std::string& devargs, const std::string& key, std::uint32_t otherwise);

// Returns the size of the IP packet for a path MTU, with the longest RoCEv2 headers over IPv6.
[[nodiscard]] constexpr std::uint16_t ip_bytes_for(std::uint16_t path_mtu_bytes) noexcept {
    constexpr std::uint16_t kIpv6UdpAndRoce = 40 + 8 + 12 + 8 + 4 + 4;  // BTH, DETH, ImmDt, ICRC
    return static_cast<std::uint16_t>(path_mtu_bytes + kIpv6UdpAndRoce);
}

}  // namespace cairn::pmd
