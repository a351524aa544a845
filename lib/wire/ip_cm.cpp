#include "lib/wire/ip_cm.hpp"

namespace cairn::wire {

namespace {

using FirstFour = Bits<0, 4>;

constexpr std::size_t kV4At = 12;  // place of the four octets of an IPv4 address among the sixteen
constexpr std::array<std::uint8_t, kV4At> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<std::uint8_t, kV4At> kZeros{};

bool begins_with(const Gid& gid, const std::array<std::uint8_t, kV4At>& front) noexcept {
    return std::equal(front.begin(), front.end(), gid.begin());
}

Gid with_front(const Gid& gid, const std::array<std::uint8_t, kV4At>& front) noexcept {
    Gid changed = gid;
    std::copy(front.begin(), front.end(), changed.begin());
    return changed;
}

}  // namespace

std::optional<IpCmHeader> IpCmHeader::parse(const Raw& raw) noexcept {
    if (FirstFour::get(raw.version) != 0) {
        return std::nullopt;
    }
    switch (FirstFour::get(raw.ip_version)) {
        case 4:
            return IpCmHeader{raw.source_port.get(), with_front(raw.source, kMapped),
                              with_front(raw.destination, kMapped)};
        case 6:
            return IpCmHeader{raw.source_port.get(), raw.source, raw.destination};
        default:
            return std::nullopt;
    }
}

void IpCmHeader::emit(Raw& raw) const noexcept {
    const bool v4 = begins_with(source, kMapped) && begins_with(destination, kMapped);
    raw.version = 0;
    raw.ip_version = FirstFour::put(v4 ? 4 : 6);
    raw.source_port.set(source_port);
    raw.source = v4 ? with_front(source, kZeros) : source;
    raw.destination = v4 ? with_front(destination, kZeros) : destination;
}

}  // namespace cairn::wire
