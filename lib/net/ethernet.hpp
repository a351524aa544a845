// Ethernet II header: 14 bytes, no VLAN tag.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/base/endian.hpp"
#include "lib/net/address.hpp"
#include "lib/net/parsed.hpp"

namespace cairn::net {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kEtherTypeArp = 0x0806;
constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;

struct RawEthernet {
    std::array<std::uint8_t, 6> destination;
    std::array<std::uint8_t, 6> source;
    Be16 type;
};
static_assert(sizeof(RawEthernet) == 14 && alignof(RawEthernet) == 1);

struct EthernetHeader {
    using Raw = RawEthernet;
    static constexpr std::size_t kBytes = sizeof(Raw);

    MacAddress destination{};
    MacAddress source{};
    std::uint16_t type = 0;

    [[nodiscard]] static Parsed<EthernetHeader> parse(std::span<const std::uint8_t> frame) noexcept {
        if (frame.size() < kBytes) {
            return Drop::Truncated;
        }
        const auto raw = read_raw<Raw>(frame.data());
        return EthernetHeader{{raw.destination}, {raw.source}, raw.type.get()};
    }
    void emit(Raw& raw) const noexcept { raw = {destination.octets, source.octets, Be16{type}}; }

    friend bool operator==(const EthernetHeader&, const EthernetHeader&) noexcept = default;
};

}  // namespace cairn::net
