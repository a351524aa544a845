// The devices: one for each address.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/net/address.hpp"
#include "lib/port/faults.hpp"

namespace cairn::ibverbs {

struct DeviceConfig {
    std::string name;
    net::IpAddress address{};
};

// Reads "cairn0=10.0.0.1,cairn1=fe80::1". Errors: an entry without a name or an address; a name that is too long or
// comes twice; an address that comes twice. The error names the entry.
[[nodiscard]] Result<std::vector<DeviceConfig>> parse_devices(std::string_view text);
// Returns the devices of a machine without a configuration: cairn0, cairn1 and so on. There is one for each address of
// its interfaces that are up, or one of 127.0.0.1 if there is none.
[[nodiscard]] std::vector<DeviceConfig> devices_of(const std::vector<net::IpAddress>& addresses);

// Returns a value of CAIRN_DEVICES that has these devices, and one of the address after them.
[[nodiscard]] std::string text_with(const std::vector<DeviceConfig>& devices, const net::IpAddress& address);

// The variables of the environment. Each but CAIRN_DEVICES holds for all devices alike. A set-uid program, whose rights
// differ from its caller's, ignores all of them.
struct Environment {
    std::vector<DeviceConfig> devices;  // CAIRN_DEVICES, else the addresses of this machine
    std::string pcap;                   // CAIRN_PCAP: a file; empty: none
    port::Faults faults;                // CAIRN_FAULTS
    bool spins = false;                 // CAIRN_POLL is spin, not adaptive
};

// Reads the variables. Errors: those of parse_devices() and port::parse_faults(); an unknown word in CAIRN_POLL. The
// error names the variable.
[[nodiscard]] Result<Environment> read_environment();

}  // namespace cairn::ibverbs
