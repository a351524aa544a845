// Which devices there are: an address each.
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

// Reads "cairn0=10.0.0.1,cairn1=fe80::1". Errors: an entry without a name or an address, a name that is too long or
// comes twice, an address that comes twice. The error names the entry.
[[nodiscard]] Result<std::vector<DeviceConfig>> parse_devices(std::string_view text);
// The devices of a machine that nothing was configured for: cairn0, cairn1 and so on, one for each address of its
// interfaces that are up; 127.0.0.1 if there is none.
[[nodiscard]] std::vector<DeviceConfig> devices_of(const std::vector<net::IpAddress>& addresses);

// Returns a CAIRN_DEVICES that has these devices, and one of the address behind them.
[[nodiscard]] std::string text_with(const std::vector<DeviceConfig>& devices, const net::IpAddress& address);

// What the variables of the environment say, for all devices alike but for the first. A set-uid program, which has
// other rights than who starts it, believes none of them.
struct Environment {
    std::vector<DeviceConfig> devices;  // CAIRN_DEVICES, else the addresses of this machine
    std::string pcap;                   // CAIRN_PCAP: a file; empty: none
    port::Faults faults;                // CAIRN_FAULTS
    bool spins = false;                 // CAIRN_POLL is spin, not adaptive
};

// Errors: those of parse_devices() and port::parse_faults(), another word in CAIRN_POLL; with the variable's name.
[[nodiscard]] Result<Environment> read_environment();

}  // namespace cairn::ibverbs
