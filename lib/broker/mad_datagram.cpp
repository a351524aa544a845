#include "lib/broker/mad_datagram.hpp"

#include <algorithm>
#include <cstring>

#include "lib/port/path.hpp"

namespace cairn::broker {

namespace {

constexpr std::size_t kBehindMad = kMadDatagramBytes - wire::kIcrcBytes;

}  // namespace

MadDatagram::MadDatagram(const MadRoute& route, const wire::UdHeader& header, const wire::MadBytes& mad) noexcept {
    std::uint8_t* const datagram = room_.data() + kRoomInFront;
    const wire::RawUd raw = header.raw(mad.size());
    std::memcpy(datagram, &raw, sizeof(raw));
    std::memcpy(datagram + sizeof(raw), mad.data(), mad.size());
    port::Path path({route.from, route.to, route.udp_source_port, 0});
    const std::uint32_t icrc = path.icrc(port::Direction::Transmit, datagram, kMadDatagramBytes);
    std::memcpy(datagram + kBehindMad, &icrc, sizeof(icrc));
}

std::optional<Counter> MadJudge::judge(const Stray& stray) {
    MadRoom room{};
    wire::UdParts parts;
    if (stray.bytes.size() != kMadDatagramBytes) {
        return Counter::NoManager;
    }
    std::uint8_t* const datagram = room.data() + kRoomInFront;
    std::copy(stray.bytes.begin(), stray.bytes.end(), datagram);
    if (wire::judge_ud(datagram, kMadDatagramBytes, parts) || parts.payload_bytes != wire::kMadBytes) {
        return Counter::NoManager;
    }
    if (!stray.remote.is_station() || stray.remote.is_v4() != local_.is_v4() ||
        parts.from != wire::kGeneralServicesQpn) {
        return Counter::StrangeSender;
    }
    if (parts.qkey != wire::kGeneralServicesQkey) {
        return Counter::WrongQkey;
    }
    return is_whole(stray, datagram) ? std::nullopt : std::optional(Counter::BadIcrc);
}

bool MadJudge::is_whole(const Stray& stray, const std::uint8_t* datagram) {
    port::Path path({local_, stray.remote, stray.udp_source_port, 0});
    std::uint32_t carried = 0;
    std::memcpy(&carried, datagram + kBehindMad, sizeof(carried));
    const std::uint32_t difference = carried ^ path.icrc(port::Direction::Receive, datagram, kMadDatagramBytes);
    return difference == 0 || (local_.is_v4() && deltas_.solve(kMadDatagramBytes, difference).has_value());
}

}  // namespace cairn::broker
