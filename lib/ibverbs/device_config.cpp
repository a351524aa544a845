#include "lib/ibverbs/device_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "lib/port/udp_socket.hpp"

namespace cairn::ibverbs {

namespace {

constexpr std::size_t kMostNameChars = 31;
constexpr const char* kForm = "CAIRN_DEVICES is a list of NAME=ADDRESS, as in cairn0=10.0.0.1,cairn1=10.0.0.2";

bool is_name(std::string_view text) noexcept {
    const auto suits = [](char c) noexcept {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    };
    return !text.empty() && text.size() <= kMostNameChars && std::all_of(text.begin(), text.end(), suits);
}

Result<DeviceConfig> parse_device(std::string_view entry) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !is_name(entry.substr(0, equals))) {
        return Error{fmt::format("CAIRN_DEVICES: '{}' has no name of letters, digits, _ and -", entry), kForm};
    }
    const Result<net::IpAddress> address = net::IpAddress::parse(entry.substr(equals + 1));
    if (!address.ok()) {
        return Error{fmt::format("CAIRN_DEVICES: '{}' has no IP address", entry), kForm};
    }
    return DeviceConfig{std::string(entry.substr(0, equals)), address.value()};
}

}  // namespace

Result<std::vector<DeviceConfig>> parse_devices(std::string_view text) {
    std::vector<DeviceConfig> devices;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        Result<DeviceConfig> device = parse_device(text.substr(0, comma));
        if (!device.ok()) {
            return device.error();
        }
        for (const DeviceConfig& other : devices) {
            if (other.name == device.value().name || other.address == device.value().address) {
                return Error{fmt::format("CAIRN_DEVICES: '{}' comes twice", text.substr(0, comma)),
                             "give each device a name and an address of its own"};
            }
        }
        devices.push_back(std::move(device).value());
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return devices;
}

std::vector<DeviceConfig> devices_of(const std::vector<net::IpAddress>& addresses) {
    std::vector<DeviceConfig> devices;
    for (const net::IpAddress& address : addresses) {
        devices.push_back({fmt::format("cairn{}", devices.size()), address});
    }
    if (devices.empty()) {
        devices.push_back({"cairn0", net::IpAddress::from_v4(0x7f000001)});
    }
    return devices;
}

std::string text_with(const std::vector<DeviceConfig>& devices, const net::IpAddress& address) {
    std::string text;
    std::string name = "cairn0";
    for (const DeviceConfig& each : devices) {
        text += fmt::format("{}={},", each.name, each.address.text());
    }
    const auto is_taken = [&](const DeviceConfig& each) { return each.name == name; };
    for (std::size_t number = devices.size(); std::any_of(devices.begin(), devices.end(), is_taken); ++number) {
        name = fmt::format("cairn{}", number);
    }
    return fmt::format("CAIRN_DEVICES={}{}={}", text, name, address.text());
}

namespace {

// Returns the value of the variable; an empty one if it is not set.
std::string_view variable(const char* name) noexcept {
    const char* const value = secure_getenv(name);
    return value == nullptr ? std::string_view() : value;
}

}  // namespace

Result<Environment> read_environment() {
    const char* const wanted = secure_getenv("CAIRN_DEVICES");
    Result<std::vector<DeviceConfig>> devices =
        wanted == nullptr ? devices_of(port::local_addresses()) : parse_devices(wanted);
    if (!devices.ok()) {
        return devices.error();
    }
    const Result<port::Faults> faults = port::parse_faults(variable("CAIRN_FAULTS"));
    if (!faults.ok()) {
        return Error{fmt::format("CAIRN_FAULTS: {}", faults.error().what), faults.error().remedy};
    }
    const std::string_view poll = variable("CAIRN_POLL");
    if (!poll.empty() && poll != "adaptive" && poll != "spin") {
        return Error{fmt::format("CAIRN_POLL: the helper cannot wait so: '{}'", poll), "it is adaptive or spin"};
    }
    return Environment{std::move(devices).value(), std::string(variable("CAIRN_PCAP")), faults.value(), poll == "spin"};
}

}  // namespace cairn::ibverbs
