// Attributes of devices and ports that follow from the configuration: no device is opened for them.
#pragma once

#include <infiniband/verbs.h>

#include "lib/ibverbs/device_config.hpp"

namespace cairn::ibverbs {

// Returns the GUID of the device with that address, in network order.
[[nodiscard]] __be64 guid_word(const net::IpAddress& address) noexcept;
// Writes all of `out`.
void describe_device(const DeviceConfig& device, ibv_device_attr& out) noexcept;
// Writes the extended attributes of devices.
void describe_extensions(ibv_device_attr_ex& out) noexcept;
// Writes the port's attributes except `active_mtu`, which is known once the device is open.
void describe_port(ibv_port_attr& out) noexcept;

}  // namespace cairn::ibverbs
