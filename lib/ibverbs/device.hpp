// The devices of this process, which ibv_get_device_list() lists.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <memory>
#include <vector>

#include "lib/ibverbs/adapter.hpp"
#include "lib/ibverbs/device_config.hpp"

namespace cairn::ibverbs {

// A device. Libraries of providers read the word after ibv_device, in which they keep their own operations: it is zero.
struct Device : ibv_device {
    std::array<std::uint8_t, 64> zeros{};
    DeviceConfig config;
    int index = 0;  // from 1 on

    [[nodiscard]] static Device& of(ibv_device* device) noexcept { return *static_cast<Device*>(device); }
};

// Returns the devices of environment_of_process(). They are made once and never ended: programs keep pointers to
// devices after they freed the list.
[[nodiscard]] const std::vector<std::unique_ptr<Device>>& all_devices();

// Returns the environment, which is read at the first use. A wrong one is explained on stderr, and has no devices.
[[nodiscard]] const Environment& environment_of_process();

// Returns the adapter of the device, of which a process has one however often the device is opened. A child of fork()
// gets one of its own. Errors: those of Adapter::open().
[[nodiscard]] Result<std::shared_ptr<Adapter>> adapter_for(const Device& device);

}  // namespace cairn::ibverbs
