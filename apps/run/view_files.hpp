// The kernel's files of RDMA devices under /sys/class, made for our devices: names and texts. They agree with the
// library's answers, since both come from the same descriptions.
#pragma once

#include <string>
#include <vector>

#include "lib/ibverbs/device_config.hpp"

namespace cairn::launch {

struct ViewFile {
    std::string path;  // below /sys/class
    std::string text;  // ends with a newline
};

// The folders below /sys/class that are ours alone in a view. Others stay as they are.
constexpr const char* kDeviceClass = "infiniband";
constexpr const char* kVerbsClass = "infiniband_verbs";

// Returns the files of all devices. `interfaces`: the network interface of each one, in the same order.
[[nodiscard]] std::vector<ViewFile> class_files(const std::vector<ibverbs::DeviceConfig>& devices,
                                                const std::vector<std::string>& interfaces);
// Returns the name that the device at `index` has below /dev/infiniband.
[[nodiscard]] std::string device_node(std::size_t index);

}  // namespace cairn::launch
