#include "lib/roce/ud/mux.hpp"

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

UdEntry* UdMux::find(Qpn qpn) const noexcept {
    std::uint32_t index = qpn.value % kBuckets;
    while (buckets_[index] != nullptr) {
        if (buckets_[index]->config_.qpn == qpn) {
            return buckets_[index];
        }
        index = (index + 1) % kBuckets;
    }
    return nullptr;
}

// Recognises ordinary packets for the queue pair of the packet before, as most packets are. Prepared once for a burst.
struct UdMux::Ordinary {
    // Opcode, version, P_Key, destination QPN. Free are SE, MigReq, pad and congestion bits.
    static constexpr std::uint64_t kFixed =
        std::endian::native == std::endian::little ? 0xffffff00ffff0fffU : 0xff0fffff00ffffffU;
    static constexpr std::size_t kQkeyAt = offsetof(wire::RawUd, deth);
    static constexpr std::size_t kSourceAt = offsetof(wire::RawUd, deth) + offsetof(wire::RawDeth, reserved);

    explicit Ordinary(const UdEntry* qp) noexcept {
        if (qp != nullptr) {
            start = load<std::uint64_t>(qp->expected_.data()) & kFixed;
            qkey = load<std::uint32_t>(qp->expected_.data() + kQkeyAt);
            most_bytes = qp->config_.path_mtu_bytes;
        }
    }

    // Returns true if `packet` is ordinary; `out` is then written but for its packet. Reads a whole header even if the
    // packet is shorter: its buffer has the room, and its length is then refused.
    [[nodiscard]] bool take(const port::PacketRef& packet, UdDatagram& out) const noexcept {
        const std::uint8_t* const at = packet.data;
        const std::uint32_t pad = wire::Bth::pad_of(*reinterpret_cast<const wire::RawBth*>(at));
        const std::uint32_t behind = packet.len - std::uint32_t{wire::kUdOverheadBytes};  // payload and pad
        const std::uint32_t payload_bytes = behind - pad;                                 // huge if there is less
        if ((load<std::uint64_t>(at) & kFixed) != start || load<std::uint32_t>(at + kQkeyAt) != qkey ||
            payload_bytes > most_bytes || (behind & 3U) != 0 || !packet.icrc_ok) [[unlikely]] {
            return false;
        }
        out.payload = packet.data + sizeof(wire::RawUd);
        out.payload_bytes = static_cast<std::uint16_t>(payload_bytes);
        out.has_immediate = false;
        out.source_qpn = Qpn{reinterpret_cast<const Be32*>(at + kSourceAt)->get() & 0xffffffU};
        return true;
    }

    std::uint64_t start = ~kFixed;  // no packet's
    std::uint32_t qkey = 0;
    std::uint32_t most_bytes = 0;
};

namespace {

constexpr Drop drop_of(wire::Drop flaw) noexcept {
    using Wire = wire::Drop;
    switch (flaw) {
        case Wire::Truncated:
            return Drop::TooShort;
        case Wire::BadVersion:
            return Drop::BadVersion;
        case Wire::UnknownOpcode:
            return Drop::BadOpcode;
        case Wire::BadLength:
        case Wire::BadPad:
        case Wire::BadSyndrome:
        case Wire::UnexpectedPayload:
        case Wire::Count:
            break;
    }
    return Drop::BadLength;
}

UdDatagram datagram_of(port::PacketRef& packet, const wire::UdParts& parts) noexcept {
    return {&packet, parts.payload, parts.payload_bytes, parts.has_immediate, parts.from, parts.immediate};
}

}  // namespace

std::optional<Drop> UdMux::judge(const port::PacketRef& packet, wire::UdParts& parts) noexcept {
    if (!packet.icrc_ok) {
        return Drop::BadIcrc;
    }
    const std::optional<wire::Drop> flaw = wire::judge_ud(packet.data, packet.len, parts);
    return flaw ? std::optional(drop_of(*flaw)) : std::nullopt;
}

std::optional<Drop> UdMux::judge_for(const UdEntry& qp, const wire::UdParts& parts) noexcept {
    if (!wire::pkeys_match(qp.config_.pkey, parts.pkey)) {
        return Drop::BadPkey;
    }
    if (parts.qkey != qp.config_.qkey) {
        return Drop::BadQkey;
    }
    return parts.payload_bytes > qp.config_.path_mtu_bytes ? std::optional(Drop::BadLength) : std::nullopt;
}

UdEntry* UdMux::take_other(port::PacketRef& packet, UdDatagram& out, Instant now) noexcept {
    wire::UdParts parts;
    UdEntry* qp = nullptr;
    std::optional<Drop> reason = judge(packet, parts);
    if (!reason) {
        if (parts.to == wire::kGroupQpn) {
            deliver_to_group(packet, parts, now);
            return nullptr;
        }
        qp = find(parts.to);
        reason = qp == nullptr ? std::optional(Drop::UnknownQpn) : judge_for(*qp, parts);
    }
    if (reason) {
        drops_.count(*reason);
        return nullptr;
    }
    out = datagram_of(packet, parts);
    return qp;
}

// Delivers the packet to each member, which makes its own copy.
void UdMux::deliver_to_group(port::PacketRef& packet, const wire::UdParts& parts, Instant now) noexcept {
    const port::PathKey& key = packet.path->key();
    const net::IpAddress& group = key.remote.is_group() ? key.remote : key.local;
    bool known = false;
    for (const Member& member : members_) {
        if (member.group != group) {
            continue;
        }
        known = true;
        if (const std::optional<Drop> reason = judge_for(*member.qp, parts)) {
            drops_.count(*reason);
            continue;
        }
        const UdDatagram datagram = datagram_of(packet, parts);
        member.qp->receiver_.on_datagrams({&datagram, 1}, now);
        CAIRN_ASSERT(packet.cookie != nullptr);
    }
    if (!known) {
        drops_.count(Drop::UnknownQpn);
    }
}

void UdMux::loop_back(port::PacketRef packet, Instant now) noexcept {
    const net::IpAddress& group = packet.path->key().remote;
    const bool ours = std::any_of(members_.begin(), members_.end(),
                                  [&group](const Member& member) noexcept { return member.group == group; });
    wire::UdParts parts;
    packet.icrc_ok = true;
    if (ours && !port_.loops_groups() && !judge(packet, parts)) {
        deliver_to_group(packet, parts, now);
    }
}

std::size_t UdMux::take_burst(std::span<port::PacketRef> burst, Instant now) noexcept {
    std::size_t runs = 0;
    UdDatagram* run = datagrams_.data();
    UdDatagram* next = run;
    Ordinary ordinary(recent_);
    for (port::PacketRef& packet : burst) {
        if (!ordinary.take(packet, *next)) [[unlikely]] {
            UdEntry* const owner = take_other(packet, *next, now);
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

std::size_t UdMux::take_known(std::span<port::PacketRef> burst, Instant now) noexcept {
    const bool knows = recent_ != nullptr && recent_->receiver_.knows_packets();
    return knows ? recent_->receiver_.take_known(burst, now) : 0;
}

void UdMux::on_packets(std::span<port::PacketRef> burst, Instant now) noexcept {
    // All packets after the first one that is not recognised go the long way, in runs, as receivers count bursts.
    burst = burst.subspan(take_known(burst, now));
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
