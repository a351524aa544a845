// The devices of this process: what ibv_get_device_list() lists.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <memory>
#include <vector>

#include "lib/ibverbs/adapter.hpp"
#include "lib/ibverbs/device_config.hpp"

namespace cairn::ibverbs {

// Providers' libraries look at the word behind ibv_device, in which they keep their own operations: it is zero.
struct Device : ibv_device {
    std::array<std::uint8_t, 64> zeros{};
    DeviceConfig config;
    int index = 0;  // from 1 on

    [[nodiscard]] static Device& of(ibv_device* device) noexcept { return *static_cast<Device*>(device); }
};

// Made once and never ended: programs keep pointers to devices beyond the list. Those of
// environment_of_process().
[[nodiscard]] const std::vector<std::unique_ptr<Device>>& all_devices();

// Read at the first use. One that is wrong is explained on stderr, and has no devices.
[[nodiscard]] const Environment& environment_of_process();

// Returns the adapter of the device, of which there is one in a process however often the device is opened. A child of
// fork() gets one of its own. Errors: those of Adapter::open().
[[nodiscard]] Result<std::shared_ptr<Adapter>> adapter_for(const Device& device);

}  // namespace cairn::ibverbs
