#include "lib/roce/ud.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace cairn::roce {

namespace {

constexpr std::uint16_t kPkeyMember = 0x8000;

// Partitions agree in the low 15 bits, and two limited members do not talk (IBTA vol. 1, 10.9.3).
bool pkeys_match(Pkey ours, Pkey theirs) noexcept {
    return ((ours.value ^ theirs.value) & 0x7fffU) == 0 && ((ours.value | theirs.value) & kPkeyMember) != 0;
}

}  // namespace

UdQp* UdService::find(Qpn qpn) const noexcept {
    std::uint32_t index = qpn.value % kBuckets;
    while (buckets_[index] != nullptr) {
        if (buckets_[index]->config_.qpn == qpn) {
            return buckets_[index];
        }
        index = (index + 1) % kBuckets;
    }
    return nullptr;
}

bool UdService::take_ordinary(const port::PacketRef& packet, UdDatagram& out) const noexcept {
    // Opcode, version, P_Key | destination QPN | Q_Key. Free are SE, MigReq, pad, congestion bits, AckReq, PSN.
    constexpr std::uint64_t kFirst =
        std::endian::native == std::endian::little ? 0xffffff00ffff0fffU : 0xff0fffff00ffffffU;
    constexpr std::uint64_t kSecond =
        std::endian::native == std::endian::little ? 0xffffffff00000000U : 0x00000000ffffffffU;
    if (recent_ == nullptr || !packet.icrc_ok || packet.len < sizeof(RawUd) + port::kIcrcBytes) {
        return false;
    }
    std::array<std::uint64_t, 2> there;
    std::array<std::uint64_t, 2> wanted;
    std::memcpy(there.data(), packet.data, sizeof(there));
    std::memcpy(wanted.data(), recent_->expected_.data(), sizeof(wanted));
    const auto& raw = *reinterpret_cast<const RawUd*>(packet.data);
    const std::uint32_t pad = (raw.bth.flags >> 4U) & 3U;
    const std::uint32_t behind = packet.len - std::uint32_t{sizeof(RawUd) + port::kIcrcBytes};  // payload and pad
    if ((((there[0] ^ wanted[0]) & kFirst) | ((there[1] ^ wanted[1]) & kSecond)) != 0 || (behind & 3U) != 0 ||
        behind < pad || behind - pad > recent_->config_.path_mtu_bytes) [[unlikely]] {
        return false;
    }
    out.payload = packet.data + sizeof(RawUd);
    out.payload_bytes = static_cast<std::uint16_t>(behind - pad);
    out.has_immediate = false;
    out.source_qpn = Qpn{raw.source_qpn.get()};
    return true;
}

UdService::Verdict UdService::judge(const port::PacketRef& packet, UdDatagram& out) const noexcept {
    if (!packet.icrc_ok) {
        return {nullptr, Drop::BadIcrc};
    }
    std::size_t header_bytes = sizeof(RawUd);
    if (packet.len < header_bytes + port::kIcrcBytes) {
        return {nullptr, Drop::TooShort};
    }
    const auto& raw = *reinterpret_cast<const RawUd*>(packet.data);
    if (wire::Bth::version_of(raw.bth) != 0) {
        return {nullptr, Drop::BadVersion};
    }
    out.has_immediate = raw.bth.opcode == kUdSendOnlyImmediate;
    if (!out.has_immediate && raw.bth.opcode != kUdSendOnly) {
        return {nullptr, Drop::BadOpcode};
    }
    UdQp* qp = find(Qpn{raw.bth.dest_qpn.get()});
    if (qp == nullptr) {
        return {nullptr, Drop::UnknownQpn};
    }
    if (!pkeys_match(qp->config_.pkey, Pkey{raw.bth.pkey.get()})) {
        return {nullptr, Drop::BadPkey};
    }
    if (raw.qkey.get() != qp->config_.qkey.value) {
        return {nullptr, Drop::BadQkey};
    }
    header_bytes += out.has_immediate ? sizeof(Be32) : 0;
    const std::size_t pad = (raw.bth.flags >> 4U) & 3U;
    if (packet.len < header_bytes + pad + port::kIcrcBytes) {
        return {nullptr, Drop::BadLength};
    }
    const std::size_t payload = packet.len - header_bytes - pad - port::kIcrcBytes;
    if (payload > qp->config_.path_mtu_bytes || ((payload + pad) & 3U) != 0) {
        return {nullptr, Drop::BadLength};
    }
    if (out.has_immediate) {
        out.immediate = reinterpret_cast<const Be32*>(packet.data + sizeof(RawUd))->get();
    }
    out.payload = packet.data + header_bytes;
    out.payload_bytes = static_cast<std::uint16_t>(payload);
    out.source_qpn = Qpn{raw.source_qpn.get()};
    return {qp, Drop::Count};
}

std::size_t UdService::take_burst(std::span<port::PacketRef> burst) noexcept {
    std::size_t accepted = 0;
    for (port::PacketRef& packet : burst) {
        UdDatagram& datagram = datagrams_[accepted];
        if (!take_ordinary(packet, datagram)) [[unlikely]] {
            const Verdict verdict = judge(packet, datagram);
            if (verdict.qp == nullptr) {
                drops_.count(verdict.reason);
                continue;
            }
            recent_ = verdict.qp;
        }
        datagram.packet = &packet;
        owners_[accepted++] = recent_;
    }
    return accepted;
}

void UdService::on_packets(std::span<port::PacketRef> burst, Instant now) noexcept {
    while (!burst.empty()) {
        const std::span<port::PacketRef> part = burst.first(std::min(burst.size(), kBurst));
        burst = burst.subspan(part.size());
        const std::size_t accepted = take_burst(part);
        for (std::size_t first = 0; first < accepted;) {
            std::size_t last = first + 1;
            while (last < accepted && owners_[last] == owners_[first]) {
                ++last;
            }
            owners_[first]->receiver_.on_datagrams(std::span(datagrams_).subspan(first, last - first), now);
            first = last;
        }
        port_.release_burst(part);
    }
}

}  // namespace cairn::roce
