// The RDMA IP CM service, by which rdma_cm connects to an IP address and a port (IBTA vol. 1, annex A11). This file has
// the names of services, and the header at the front of the private data of REQ and SIDR_REQ.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "lib/wire/cm_types.hpp"

namespace cairn::wire {

enum class IpProtocol : std::uint8_t { Tcp = 6, Udp = 17 };  // the protocol whose port numbers the service has

constexpr std::uint64_t kIpServicePrefix = 0x0000'0000'0100'0000U;
constexpr std::uint64_t kIpServiceMask = 0xffff'ffff'ff00'0000U;

[[nodiscard]] constexpr ServiceId ip_service(IpProtocol protocol, std::uint16_t port) noexcept {
    return ServiceId{kIpServicePrefix | std::uint64_t{static_cast<std::uint8_t>(protocol)} << 16U | port};
}
// Returns true for services of all IP protocols: their requests carry an IpCmHeader.
[[nodiscard]] constexpr bool is_ip_service(ServiceId service) noexcept {
    return (service.value & kIpServiceMask) == kIpServicePrefix;
}
static_assert(ip_service(IpProtocol::Tcp, 7999).value == 0x01061f3f);

struct RawIpCmHeader {
    std::uint8_t version;     // major 4, minor 4
    std::uint8_t ip_version;  // 4, reserved 4
    Be16 source_port;
    std::array<std::uint8_t, 16> source;  // IPv4: the last four octets, after zeros
    std::array<std::uint8_t, 16> destination;
};
static_assert(sizeof(RawIpCmHeader) == 36 && alignof(RawIpCmHeader) == 1);

// Both addresses are GIDs (IPv4 as ::ffff:a.b.c.d) of one family. The destination port is part of the service.
struct IpCmHeader {
    using Raw = RawIpCmHeader;
    static constexpr std::size_t kBytes = sizeof(Raw);

    std::uint16_t source_port = 0;
    Gid source{};
    Gid destination{};

    // Returns nothing for another major version, and for an IP version that is neither 4 nor 6.
    [[nodiscard]] static std::optional<IpCmHeader> parse(const Raw& raw) noexcept;
    // Writes the header. Source and destination are both IPv4 or both not. A mixed pair is written as IPv6.
    void emit(Raw& raw) const noexcept;

    friend bool operator==(const IpCmHeader&, const IpCmHeader&) noexcept = default;
};

struct RawFeatureTrailer {
    Be32 magic;
    std::uint8_t version;
    Be24 features;
};
static_assert(sizeof(RawFeatureTrailer) == 8 && alignof(RawFeatureTrailer) == 1);

constexpr std::uint32_t kFeatureSelective = 1U;    // holds packets that come early and reports the missing ones
constexpr std::uint32_t kFeatureDelayedAcks = 2U;  // acknowledges unasked, by count or time
constexpr std::uint32_t kFeaturesOfRc = kFeatureSelective | kFeatureDelayedAcks;

// The last eight bytes of the private data of REQ and REP between Cairn peers. A REQ has the sender's features, a REP
// the features of both. Other peers leave zeros there, and their programs read the front.
struct FeatureTrailer {
    using Raw = RawFeatureTrailer;
    static constexpr std::size_t kBytes = sizeof(Raw);
    static constexpr std::uint32_t kMagic = 0xca19'0cb3U;
    static constexpr std::uint8_t kVersion = 1;

    std::uint32_t features = 0;  // 24 bits

    // Returns nothing if the bytes are not Cairn's.
    [[nodiscard]] static std::optional<FeatureTrailer> parse(const Raw& raw) noexcept {
        if (raw.magic.get() != kMagic || raw.version != kVersion) {
            return std::nullopt;
        }
        return FeatureTrailer{raw.features.get()};
    }
    void emit(Raw& raw) const noexcept { raw = {Be32{kMagic}, kVersion, Be24{features}}; }

    friend bool operator==(const FeatureTrailer&, const FeatureTrailer&) noexcept = default;
};

}  // namespace cairn::wire
