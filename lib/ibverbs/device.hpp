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

// Made once and never ended: programs keep pointers to devices beyond the list. Configured by the environment, else one
// for each address of this machine. A wrong configuration is explained on stderr once, and there are no devices.
[[nodiscard]] const std::vector<std::unique_ptr<Device>>& all_devices();

// What CAIRN_FAULTS says. None, if it is wrong: then there are no devices.
[[nodiscard]] const port::Faults& planned_faults();

// Returns the adapter of the device, of which there is one in a process however often the device is opened. A child of
// fork() gets one of its own. Errors: those of Adapter::open().
[[nodiscard]] Result<std::shared_ptr<Adapter>> adapter_for(const Device& device);

}  // namespace cairn::ibverbs
