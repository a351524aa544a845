// The GIDs of a device, which is one address: RoCEv2 knows hosts by GIDs made of their addresses (annex A17.4.1).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "lib/net/address.hpp"

namespace cairn::ibverbs {

// The table of each device. An index without a GID is empty, as in the tables of adapters.
constexpr int kGids = 8;
enum GidIndex : std::uint8_t { kGidLinkLocal = 0, kGidV4 = 1, kGidV6 = 2 };

// Returns the GID at `index`; nullopt if there is none. Each GID leads back to the address (address_of_gid()).
[[nodiscard]] std::optional<net::IpAddress> gid_at(const net::IpAddress& device, int index) noexcept;
// Returns the address that a GID stands for: itself, or the IPv4 address in a link-local one of an IPv4 device.
[[nodiscard]] net::IpAddress address_of_gid(const net::IpAddress& gid) noexcept;
// Returns the device's GUID, in network order: the interface part of its link-local GID.
[[nodiscard]] std::array<std::uint8_t, 8> guid_of(const net::IpAddress& device) noexcept;

}  // namespace cairn::ibverbs
