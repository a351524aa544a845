#include "lib/roce/ud/ud.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::roce {

namespace {

template <class Word>
Word load(const std::uint8_t* at) noexcept {
    Word word;
    std::memcpy(&word, at, sizeof(word));
    return word;
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

// Most packets are ordinary and for the queue pair of the one before: what that takes, made ready for a burst.
struct UdService::Ordinary {
    // Opcode, version, P_Key, destination QPN. Free are SE, MigReq, pad and congestion bits.
    static constexpr std::uint64_t kFixed =
        std::endian::native == std::endian::little ? 0xffffff00ffff0fffU : 0xff0fffff00ffffffU;
    static constexpr std::size_t kQkeyAt = offsetof(RawUd, qkey);
    static constexpr std::size_t kSourceAt = offsetof(RawUd, reserved);

    explicit Ordinary(const UdQp* qp) noexcept {
        if (qp != nullptr) {
            start = load<std::uint64_t>(qp->expected_.data()) & kFixed;
            qkey = load<std::uint32_t>(qp->expected_.data() + kQkeyAt);
            most_bytes = qp->config_.path_mtu_bytes;
        }
    }

    // True when `packet` is one; `out` is written but for its packet. Reads a whole header however short the packet
    // is: its buffer has the room, and its length is then refused.
    [[nodiscard]] bool take(const port::PacketRef& packet, UdDatagram& out) const noexcept {
        const std::uint8_t* const at = packet.data;
        const std::uint32_t pad = (at[1] >> 4U) & 3U;
        const std::uint32_t behind = packet.len - std::uint32_t{sizeof(RawUd) + port::kIcrcBytes};  // payload and pad
        const std::uint32_t payload_bytes = behind - pad;  // huge when there is less
        if ((load<std::uint64_t>(at) & kFixed) != start || load<std::uint32_t>(at + kQkeyAt) != qkey ||
            payload_bytes > most_bytes || (behind & 3U) != 0 || !packet.icrc_ok) [[unlikely]] {
            return false;
        }
        out.payload = packet.data + sizeof(RawUd);
        out.payload_bytes = static_cast<std::uint16_t>(payload_bytes);
        out.has_immediate = false;
        out.source_qpn = Qpn{reinterpret_cast<const Be32*>(at + kSourceAt)->get() & 0xffffffU};
        return true;
    }

    std::uint64_t start = ~kFixed;  // no packet's
    std::uint32_t qkey = 0;
    std::uint32_t most_bytes = 0;
};

Drop UdService::judge(const port::PacketRef& packet, UdDatagram& out) noexcept {
    if (!packet.icrc_ok) {
        return Drop::BadIcrc;
    }
    std::size_t header_bytes = sizeof(RawUd);
    if (packet.len < header_bytes + port::kIcrcBytes) {
        return Drop::TooShort;
    }
    const auto& raw = *reinterpret_cast<const RawUd*>(packet.data);
    if (wire::Bth::version_of(raw.bth) != 0) {
        return Drop::BadVersion;
    }
    out.has_immediate = raw.bth.opcode == kUdSendOnlyImmediate;
    if (!out.has_immediate && raw.bth.opcode != kUdSendOnly) {
        return Drop::BadOpcode;
    }
    header_bytes += out.has_immediate ? sizeof(Be32) : 0;
    const std::size_t pad = (raw.bth.flags >> 4U) & 3U;
    if (packet.len < header_bytes + pad + port::kIcrcBytes) {
        return Drop::BadLength;
    }
    const std::size_t payload = packet.len - header_bytes - pad - port::kIcrcBytes;
    if (((payload + pad) & 3U) != 0) {
        return Drop::BadLength;
    }
    if (out.has_immediate) {
        out.immediate = reinterpret_cast<const Be32*>(packet.data + sizeof(RawUd))->get();
    }
    out.payload = packet.data + header_bytes;
    out.payload_bytes = static_cast<std::uint16_t>(payload);
    out.source_qpn = Qpn{raw.source_qpn.get()};
    return Drop::Count;
}

Drop UdService::judge_for(const UdQp& qp, const port::PacketRef& packet, const UdDatagram& datagram) noexcept {
    const auto& raw = *reinterpret_cast<const RawUd*>(packet.data);
    if (!wire::pkeys_match(qp.config_.pkey, Pkey{raw.bth.pkey.get()})) {
        return Drop::BadPkey;
    }
    if (raw.qkey.get() != qp.config_.qkey.value) {
        return Drop::BadQkey;
    }
    return datagram.payload_bytes > qp.config_.path_mtu_bytes ? Drop::BadLength : Drop::Count;
}

UdQp* UdService::take_other(port::PacketRef& packet, UdDatagram& out, Instant now) noexcept {
    Drop reason = judge(packet, out);
    UdQp* qp = nullptr;
    if (reason == Drop::Count) {
        const Qpn to{reinterpret_cast<const RawUd*>(packet.data)->bth.dest_qpn.get()};
        if (to == kGroupQpn) {
            deliver_to_group(packet, out, now);
            return nullptr;
        }
        qp = find(to);
        reason = qp == nullptr ? Drop::UnknownQpn : judge_for(*qp, packet, out);
    }
    if (reason != Drop::Count) {
        drops_.count(reason);
        return nullptr;
    }
    return qp;
}

// To each member its own copy, which it makes.
void UdService::deliver_to_group(port::PacketRef& packet, UdDatagram& datagram, Instant now) noexcept {
    const port::PathKey& key = packet.path->key();
    const net::IpAddress& group = key.remote.is_group() ? key.remote : key.local;
    bool known = false;
    for (const Member& member : members_) {
        if (member.group != group) {
            continue;
        }
        known = true;
        const Drop reason = judge_for(*member.qp, packet, datagram);
        if (reason != Drop::Count) {
            drops_.count(reason);
            continue;
        }
        datagram.packet = &packet;
        member.qp->receiver_.on_datagrams({&datagram, 1}, now);
        CAIRN_ASSERT(packet.cookie != nullptr);
    }
    if (!known) {
        drops_.count(Drop::UnknownQpn);
    }
}

void UdService::loop_back(port::PacketRef packet, Instant now) noexcept {
    const net::IpAddress& group = packet.path->key().remote;
    const bool ours = std::any_of(members_.begin(), members_.end(),
                                  [&group](const Member& member) noexcept { return member.group == group; });
    UdDatagram datagram;
    packet.icrc_ok = true;
    if (ours && !port_.loops_groups() && judge(packet, datagram) == Drop::Count) {
        deliver_to_group(packet, datagram, now);
    }
}

std::size_t UdService::take_burst(std::span<port::PacketRef> burst, Instant now) noexcept {
    std::size_t runs = 0;
    UdDatagram* run = datagrams_.data();
    UdDatagram* next = run;
    Ordinary ordinary(recent_);
    for (port::PacketRef& packet : burst) {
        if (!ordinary.take(packet, *next)) [[unlikely]] {
            UdQp* const owner = take_other(packet, *next, now);
            if (owner == nullptr) {
                continue;
            }
            if (owner != recent_) {
                runs_[runs] = {recent_, {run, next}};
                runs += next == run ? 0U : 1U;
                run = next;
                recent_ = owner;
                ordinary = Ordinary(owner);
            }
        }
        next->packet = &packet;
        ++next;
    }
    runs_[runs] = {recent_, {run, next}};
    return runs + (next == run ? 0U : 1U);
}

void UdService::on_packets(std::span<port::PacketRef> burst, Instant now) noexcept {
    while (!burst.empty()) {
        const std::span<port::PacketRef> part = burst.first(std::min(burst.size(), kBurst));
        burst = burst.subspan(part.size());
        for (const Run& run : std::span(runs_).first(take_burst(part, now))) {
            run.owner->receiver_.on_datagrams(run.datagrams, now);
        }
        port_.release_burst(part);
    }
}

}  // namespace cairn::roce
