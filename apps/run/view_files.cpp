#include "apps/run/view_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "lib/ibverbs/address_gids.hpp"
#include "lib/ibverbs/description.hpp"

namespace cairn::launch {

namespace {

// Returns groups of four hexadecimal digits, as the kernel writes GUIDs and GIDs.
std::string in_groups(std::span<const std::uint8_t> octets) {
    std::string text;
    for (std::size_t i = 0; i + 1 < octets.size(); i += 2) {
        text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", octets[i], octets[i + 1]);
    }
    return text;
}

std::string guid_text(__be64 guid) {
    std::array<std::uint8_t, 8> octets;
    std::memcpy(octets.data(), &guid, octets.size());
    return in_groups(octets);
}

std::string rate_text(const ibv_port_attr& port) {
    struct Speed {
        std::uint8_t code;
        double gbps;  // of one lane
        const char* name;
    };
    constexpr std::array<Speed, 7> kSpeeds{{{1, 2.5, "SDR"},
                                            {2, 5, "DDR"},
                                            {4, 10, "QDR"},
                                            {8, 10, "FDR10"},
                                            {16, 14, "FDR"},
                                            {32, 25, "EDR"},
                                            {64, 50, "HDR"}}};
    constexpr std::array<int, 5> kLanes{1, 4, 8, 12, 2};  // of 1, 2, 4, 8, 16
    const auto* const speed = std::find_if(kSpeeds.begin(), kSpeeds.end(),
                                           [&port](const Speed& each) { return each.code == port.active_speed; });
    std::size_t width = 0;
    while (width + 1 < kLanes.size() && (port.active_width >> width) > 1) {
        ++width;
    }
    if (speed == kSpeeds.end()) {
        return "0 Gb/sec";
    }
    return fmt::format("{:g} Gb/sec ({}X {})", speed->gbps * kLanes[width], kLanes[width], speed->name);
}

std::string state_text(ibv_port_state state) {
    constexpr std::array<const char*, 6> kStates{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
    return fmt::format("{}: {}", static_cast<int>(state), kStates[static_cast<std::size_t>(state)]);
}

void add_port(std::vector<ViewFile>& files, const std::string& folder, const net::IpAddress& address,
              const std::string& interface) {
    ibv_port_attr port{};
    ibverbs::describe_port(port);
    const auto add = [&files, &folder](const std::string& name, const std::string& text) {
        files.push_back({fmt::format("{}/{}", folder, name), text + "\n"});
    };
    add("state", state_text(port.state));
    add("phys_state", port.phys_state == 5 ? "5: LinkUp" : "3: Disabled");
    add("link_layer", port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
    add("rate", rate_text(port));
    add("lid", fmt::format("{:#x}", port.lid));
    add("lid_mask_count", fmt::format("{}", port.lmc));
    add("sm_lid", fmt::format("{:#x}", port.sm_lid));
    add("sm_sl", fmt::format("{}", port.sm_sl));
    add("cap_mask", fmt::format("0x{:08x}", port.port_cap_flags));
    add("pkeys/0", "0xffff");
    for (int i = 0; i < port.gid_tbl_len; ++i) {
        const auto gid = ibverbs::gid_at(address, i);
        add(fmt::format("gids/{}", i), in_groups(gid ? gid->octets() : std::array<std::uint8_t, 16>{}));
        if (gid) {  // the kernel refuses to read those of an empty place
            add(fmt::format("gid_attrs/types/{}", i), "RoCE v2");
            add(fmt::format("gid_attrs/ndevs/{}", i), interface);
        }
    }
}

}  // namespace

std::string device_node(std::size_t index) {
    return fmt::format("uverbs{}", index);
}

std::vector<ViewFile> class_files(const std::vector<ibverbs::DeviceConfig>& devices,
                                  const std::vector<std::string>& interfaces) {
    std::vector<ViewFile> files{{fmt::format("{}/abi_version", kVerbsClass), "6\n"}};
    for (std::size_t i = 0; i < devices.size(); ++i) {
        ibv_device_attr device{};
        ibverbs::describe_device(devices[i], device);
        const std::string folder = fmt::format("{}/{}", kDeviceClass, devices[i].name);
        const std::string verbs = fmt::format("{}/{}", kVerbsClass, device_node(i));
        const auto add = [&files](const std::string& in, const std::string& name, const std::string& text) {
            files.push_back({fmt::format("{}/{}", in, name), text + "\n"});
        };
        add(folder, "node_type", "1: CA");
        add(folder, "node_desc", devices[i].name);
        add(folder, "board_id", "CAIRN");
        add(folder, "hca_type", "CAIRN");
        add(folder, "fw_ver", device.fw_ver);
        add(folder, "hw_rev", fmt::format("{:x}", device.hw_ver));
        add(folder, "node_guid", guid_text(device.node_guid));
        add(folder, "sys_image_guid", guid_text(device.sys_image_guid));
        add_port(files, folder + "/ports/1", devices[i].address, interfaces[i]);
        add(verbs, "ibdev", devices[i].name);
        add(verbs, "abi_version", "4");
        add(verbs, "dev", "1:3");  // of /dev/null, which stands at the device's place
        for (const std::string& parent : {folder, verbs}) {
            add(parent, "device/vendor", fmt::format("{:#x}", device.vendor_id));
            add(parent, "device/device", fmt::format("{:#06x}", device.vendor_part_id));
            add(parent, "device/numa_node", "-1");
            const std::string interface = "device/net/" + interfaces[i];
            add(parent, interface + "/dev_id", "0x0");
            add(parent, interface + "/dev_port", "0");
        }
    }
    return files;
}

}  // namespace cairn::launch
