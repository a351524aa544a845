#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "lib/net/ethernet.hpp"
#include "lib/net/udp.hpp"
#include "lib/wire/bth.hpp"
#include "pmd_glue/ethdev_port.hpp"
#include "pmd_glue/ethdev_port_layout.hpp"
#include "pmd_glue/exchange.hpp"

namespace cairn::pmd {

namespace {

constexpr std::uint16_t kLeastDatagram = wire::Bth::kBytes + port::kIcrcBytes;
constexpr std::size_t kDestQpnAt = offsetof(wire::RawBth, dest_qpn);
constexpr std::size_t kUdpPortsBehind = 6;  // bytes from the destination port to the BTH

// Hashes the sender of a frame: the last octets of its source address and of its UDP source port.
inline std::size_t sender_hash(const std::uint8_t* frame) noexcept {
    const std::uint8_t* ip = frame + kEthernetBytes;
    return frame[12] == 0x08 ? ip[15] ^ ip[21] : ip[23] ^ ip[41];
}

// Returns the queue pair that a frame is for if it is a datagram, whole or not; 0 if that is not known.
inline Qpn qpn_named_by(const rte_mbuf& frame) noexcept {
    const auto* bytes = rte_pktmbuf_mtod(&frame, const std::uint8_t*);
    const std::uint8_t* const ip = bytes + kEthernetBytes;
    const bool v4 = get16(bytes + 12) == net::kEtherTypeIpv4 && ip[0] == 0x45 && ip[9] == net::kProtocolUdp;
    const bool v6 = get16(bytes + 12) == net::kEtherTypeIpv6 && ip[6] == net::kProtocolUdp;
    const std::size_t lower = v4 ? port::Path::kLowerBytesV4 : port::Path::kLowerBytesV6;
    if ((!v4 && !v6) || frame.data_len < lower + kLeastDatagram ||
        get16(bytes + lower - kUdpPortsBehind) != net::kRoceUdpPort) {
        return Qpn{0};
    }
    const std::uint8_t* const qpn = bytes + lower + kDestQpnAt;
    return Qpn{std::uint32_t{qpn[0]} << 16U | std::uint32_t{qpn[1]} << 8U | qpn[2]};
}

}  // namespace

std::size_t EthdevPort::receive_burst(std::span<port::PacketRef> out, Instant now) noexcept {
    std::array<rte_mbuf*, kMaxBurst> frames;
    const auto wanted = static_cast<std::uint16_t>(std::min<std::size_t>(out.size(), config_.burst));
    // Frames from other workers go first and take up to half of the burst. So a flood at this worker's own queue does
    // not delay them.
    std::uint16_t others = 0;
    if (exchange_ != nullptr) [[unlikely]] {
        others = collect_from_others(frames.data(),
                                     queue_ == kNoQueue ? wanted : static_cast<std::uint16_t>((wanted + 1) / 2));
    }
    std::uint16_t got = others;
    if (queue_ != kNoQueue) {
        got = static_cast<std::uint16_t>(
            got + rte_eth_rx_burst(port_id_, queue_, frames.data() + got, static_cast<std::uint16_t>(wanted - got)));
    }
    empty_at_ = full_burst_ ? empty_at_ : polled_at_;
    polled_at_ = now;
    full_burst_ = got == wanted;
    paths_.begin_burst();
    std::size_t accepted = 0;
    const bool alone = exchange_ == nullptr;
    std::uint16_t next = 0;
    for (; next < got; ++next) {
        fresh_ = next >= others;
        if (!alone && fresh_ && pass_on(*frames[next])) {
            continue;
        }
        if (accept(frames[next], out[accepted], now)) [[likely]] {
            paths_.keep(*out[accepted].path);
            ++accepted;
        }
    }
    if (accepted != 0) {
        counters_.count(EthdevCounter::Received, accepted);
    }
    return accepted;
}

std::uint16_t EthdevPort::collect_from_others(rte_mbuf** frames, std::uint16_t wanted) noexcept {
    if (queue_ != kNoQueue) {
        send_for_others();
    }
    return static_cast<std::uint16_t>(
        exchange_->collect(Exchange::Lane::Received, config_.worker, {frames, std::size_t{wanted}}));
}

// Returns false if the frame is no datagram for the engine; the frame has been handled then.
bool EthdevPort::accept(rte_mbuf* frame, port::PacketRef& out, Instant now) noexcept {
    auto* bytes = rte_pktmbuf_mtod(frame, std::uint8_t*);
    port::Path*& cached = path_cache_[sender_hash(bytes) % kPathCache];
    if (port::Path* const path = cached; frame->nb_segs == 1 && path != nullptr) [[likely]] {
        const port::Path::Arrival arrival = path->judge_arrival(bytes, frame->data_len, out);
        if (arrival != port::Path::Arrival::NoMatch) [[likely]] {
            out.cookie = frame;
            out.room = room_in(*frame, path->lower_bytes());
            if (arrival != port::Path::Arrival::Whole) [[unlikely]] {
                notice(arrival, *path, bytes, now);
            }
            return true;
        }
    }
    return accept_slowly(frame, cached, out, now);
}

void EthdevPort::notice(port::Path::Arrival arrival, port::Path& path, const std::uint8_t* frame,
                        Instant now) noexcept {
    if (arrival == port::Path::Arrival::BadIcrc) {
        counters_.count(EthdevCounter::BadIcrc);
        return;
    }
    net::MacAddress from;
    std::memcpy(from.octets.data(), frame + from.octets.size(), from.octets.size());
    doubt(path, from, now);
}

void EthdevPort::judged(port::PacketRef& packet, bool icrc_ok) noexcept {
    packet.icrc_ok = icrc_ok;
    if (!icrc_ok) [[unlikely]] {
        counters_.count(EthdevCounter::BadIcrc);
    }
}

// Hands a datagram over. The caller has checked that the lower headers are whole and consistent.
void EthdevPort::hand_over(rte_mbuf* frame, port::Path& path, port::PacketRef& out) const noexcept {
    auto* bytes = rte_pktmbuf_mtod(frame, std::uint8_t*);
    const std::size_t lower = path.lower_bytes();
    out.data = bytes + lower;
    out.path = &path;
    out.cookie = frame;
    out.len = static_cast<std::uint16_t>(get16(bytes + lower - 4) - 8U);
    out.room = room_in(*frame, lower);
    out.ip_id = 0;
    const std::uint8_t traffic_class = bytes[kEthernetBytes + 1];
    out.ecn = static_cast<std::uint8_t>((path.is_v4() ? traffic_class : traffic_class >> 4U) & 3U);
}

// Judges a peer's first frames, foreign senders, segments, neighbour messages, and all wrong frames.
bool EthdevPort::accept_slowly(rte_mbuf* frame, port::Path*& cached, port::PacketRef& out, Instant now) noexcept {
    frame = frame->nb_segs == 1 ? frame : in_one_piece(frame);
    if (frame == nullptr) {
        return false;
    }
    if ((frame->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD) {
        counters_.count(EthdevCounter::BadOffload);
        rte_pktmbuf_free(frame);
        return false;
    }
    const std::span<const std::uint8_t> bytes(rte_pktmbuf_mtod(frame, const std::uint8_t*), frame->data_len);
    port::ParsedFrame parsed = port::parse_frame_for(device_.mac(), config_.local, bytes);
    if (!parsed.ok() && parsed.reason() == port::FrameVerdict::NotForUs && !groups_.empty()) {
        parsed = port::parse_frame_for_groups(groups_, bytes);
    }
    if (!parsed.ok()) {
        if (parsed.reason() == port::FrameVerdict::NotRoce) {
            on_other_frame(*frame, now);
        }
        verdicts_.count(parsed.reason());
        rte_pktmbuf_free(frame);
        return false;
    }
    const port::Datagram& datagram = parsed.value();
    const bool icrc_ok = port::has_right_icrc(datagram);
    port::Path* const path = icrc_ok ? path_back({datagram.key, datagram.source_mac}, now) : paths_.find(datagram.key);
    if (path == nullptr) {
        counters_.count(icrc_ok ? EthdevCounter::NoPath : EthdevCounter::BadIcrc);
        rte_pktmbuf_free(frame);
        return false;
    }
    if (icrc_ok && path->goes_to() != datagram.source_mac) {
        doubt(*path, datagram.source_mac, now);
    }
    hand_over(frame, *path, out);
    judged(out, icrc_ok);
    if (datagram.has_path_icrc()) {
        cached = icrc_ok ? path : cached;
    } else {  // the sender counts its IPv4 ID up, and the ICRC covers it
        out.ip_id = datagram.ip_id;
    }
    return true;
}

// Returns the path back to a peer. If a peer's datagrams are whole, it is answered at the address that they came from,
// unless more is known of it.
port::Path* EthdevPort::path_back(const port::WayBack& way, Instant) noexcept {
    port::Path* const path = paths_.admit(way.key);
    if (path == nullptr || path->resolved()) {
        return path;
    }
    port::PathTable::Station& from = *paths_.station(way.key.remote);
    if (from.named) {
        resolve(*path, from.mac);
    } else if (const auto mac = host_.known(way.key.remote)) {
        resolve(*path, *mac);
    } else if (way.mac) {
        from.seen_at = from.seen_at.value_or(*way.mac);
        resolve(*path, *way.mac);
    }
    return path;
}

rte_mbuf* EthdevPort::in_one_piece(rte_mbuf* chain) noexcept {
    rte_mbuf* whole = nullptr;
    if (chain->pkt_len > device_.plan().data_room_bytes) {
        counters_.count(EthdevCounter::TooLong);
    } else if ((whole = rte_pktmbuf_alloc(pool_)) == nullptr) {
        counters_.count(EthdevCounter::NoBuffer);
    } else {
        auto* to =
            reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(whole, static_cast<std::uint16_t>(chain->pkt_len)));
        for (const rte_mbuf* segment = chain; segment != nullptr; segment = segment->next) {
            std::memcpy(to, rte_pktmbuf_mtod(segment, const std::uint8_t*), segment->data_len);
            to += segment->data_len;
        }
        counters_.count(EthdevCounter::Linearized);
    }
    rte_pktmbuf_free(chain);
    return whole;
}

// Passes on a frame from the device, or copies of it, to other workers that need it. Returns true if the frame itself
// was passed.
bool EthdevPort::pass_on(rte_mbuf& frame) noexcept {
    if (!is_group_frame(rte_pktmbuf_mtod(&frame, const std::uint8_t*))) [[likely]] {
        return pass_to_owner(frame);
    }
    pass_to_members(frame);
    return false;
}

// Passes the frame to the worker that the low bits of the queue pair's number name, and that judges it.
bool EthdevPort::pass_to_owner(rte_mbuf& frame) noexcept {
    const std::uint16_t owner = exchange_->owners().of(qpn_named_by(frame));
    if (owner == config_.worker) {
        return false;
    }
    if (exchange_->pass(Exchange::Lane::Received, config_.worker, owner, &frame)) {
        counters_.count(EthdevCounter::Forwarded);
    } else {
        counters_.count(EthdevCounter::RingFull);
        rte_pktmbuf_free(&frame);
    }
    return true;
}

// Passes copies to the other workers that are in the frame's group, or in one with the same bit.
void EthdevPort::pass_to_members(const rte_mbuf& frame) noexcept {
    net::MacAddress group;
    std::memcpy(group.octets.data(), rte_pktmbuf_mtod(&frame, const std::uint8_t*), group.octets.size());
    for (std::uint16_t worker = 0; worker < exchange_->workers(); ++worker) {
        if (worker != config_.worker && exchange_->has_group(worker, group)) {
            pass_copy(frame, worker);
        }
    }
}

void EthdevPort::release_burst(std::span<port::PacketRef> packets) noexcept {
    std::array<rte_mbuf*, kMaxBurst> frames;
    unsigned count = 0;
    for (const port::PacketRef& packet : packets) {
        if (packet.cookie == nullptr) {
            continue;
        }
        frames[count++] = mbuf_of(packet);
        if (count == kMaxBurst) {
            rte_pktmbuf_free_bulk(frames.data(), count);
            count = 0;
        }
    }
    if (count != 0) {
        rte_pktmbuf_free_bulk(frames.data(), count);
    }
}

}  // namespace cairn::pmd
