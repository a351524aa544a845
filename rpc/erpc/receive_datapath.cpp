// What every packet passes: form, session, peer; and how every packet is composed.
#include <cstddef>
#include <cstring>

#include "lib/base/copy.hpp"
#include "lib/port/ecn.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

namespace {

constexpr std::uint8_t kBecn = 0x40;  // of the BTH (IBTA vol. 1, annex A10)

bool from_peer(const Session& session, const roce::UdDatagram& datagram) noexcept {
    return datagram.packet->path == session.peer.path && datagram.source_qpn == session.peer.qpn;
}

// DCQCN: a switch on its way marked the peer's packet, or the peer says (BECN) that this befell ours. A server tells
// its client with the next packet. A client has its own controller: it asked for the response that was marked.
void on_congestion(Session& session, bool marked, bool told, Statistics& statistics, Instant now) noexcept {
    const bool due = marked && session.notification.on_marked(now);
    if (session.control != nullptr && (told || due)) {
        ++statistics.congestion_notified;
        session.control->on_cnp(now);
    } else if (due && session.control == nullptr) {
        session.header.bth.resv8a = kBecn;
    }
}

// What the network says. Whether the peer lives is said by packets that are judged to be new.
void hear(Session& session, const roce::UdDatagram& datagram, Statistics& statistics, Instant now) noexcept {
    const bool marked = datagram.packet->ecn == port::kCongestionExperienced;
    const bool told = (datagram.packet->data[offsetof(wire::RawBth, resv8a)] & kBecn) != 0;
    if (marked || told) [[unlikely]] {
        on_congestion(session, marked, told, statistics, now);
    }
}

}  // namespace

void Endpoint::on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept {
    messages_.on_turn();
    for (const roce::UdDatagram& datagram : datagrams) {
        if (datagram.payload_bytes < sizeof(RawHeader)) {
            statistics_.count(Drop::Malformed);
            continue;
        }
        const auto& raw = *reinterpret_cast<const RawHeader*>(datagram.payload);
        if (!raw.well_formed()) {
            statistics_.count(Drop::Malformed);
            continue;
        }
        const Header header = Header::parse(raw);
        if (header.kind == Kind::Control) [[unlikely]] {
            on_control(datagram, header, now);
        } else {
            on_data(datagram, header, now);
        }
    }
    if (!credits_due_.empty()) [[unlikely]] {
        send_credit_returns(now);
    }
    if (!stall_queue_.empty()) {
        serve_stall_queue(now);
    }
}

void Endpoint::on_data(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept {
    if (header.session.value < sessions_.size()) [[likely]] {
        Session& session = sessions_[header.session.value];
        if (header.type == PacketType::Request && session.state == SessionState::Serving) {
            if (from_peer(session, datagram)) [[likely]] {
                hear(session, datagram, statistics_, now);
                on_request(session, datagram, header, now);
                return;
            }
            statistics_.count(Drop::WrongPeer);
            return;
        }
        if (header.type == PacketType::Response && session.state == SessionState::Connected) {
            if (from_peer(session, datagram)) [[likely]] {
                hear(session, datagram, statistics_, now);
                on_response(session, datagram, header, now);
                return;
            }
            statistics_.count(Drop::WrongPeer);
            return;
        }
    }
    on_rare(datagram, header, now);
}

// What only messages of several packets have, and packets for sessions that are no more.
void Endpoint::on_rare(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept {
    if (header.session.value >= sessions_.size()) {
        statistics_.count(Drop::UnknownSession);
        return;
    }
    Session& session = sessions_[header.session.value];
    const bool rfr = header.type == PacketType::Rfr && session.state == SessionState::Serving;
    if (!rfr && (header.type != PacketType::CreditReturn || session.state != SessionState::Connected)) {
        statistics_.count(Drop::UnknownSession);  // not answered: who asks (Ping) is told
        return;
    }
    if (!from_peer(session, datagram)) {
        statistics_.count(Drop::WrongPeer);
        return;
    }
    hear(session, datagram, statistics_, now);
    if (rfr) {
        on_rfr(session, datagram, header, now);
    } else {
        on_credit_return(session, datagram, header, now);
    }
}

// BTH, DETH and our header from the session's template, the payload behind them: copied, or sent from where it
// lies when that is cheaper and the port can.
void Endpoint::send_packet(Session& session, const port::PacketRef& buffer, const Header& header,
                           std::span<const std::uint8_t> payload, Instant now) noexcept {
    constexpr std::size_t kHeaders = sizeof(wire::RawUd) + sizeof(RawHeader);
    const std::size_t bytes = payload.size();
    const std::uint32_t pad = wire::pad_for(bytes);
    const bool in_place = bytes >= kTailBytes && pad == 0 && sender_.port().can_send_from(payload);
    CAIRN_ASSERT(kHeaders + bytes + pad + port::kIcrcBytes <= buffer.room);
    std::uint8_t* const at = buffer.data;
    std::memcpy(at, &session.header, sizeof(session.header));
    session.header.bth.resv8a = 0;  // BECN is said once
    qp_->stamp(at);
    header.emit(*reinterpret_cast<RawHeader*>(at + sizeof(wire::RawUd)));
    if (pad != 0) {
        at[offsetof(wire::RawBth, flags)] = static_cast<std::uint8_t>(session.header.bth.flags | (pad << 4U));
        std::memset(at + kHeaders + bytes + pad - 4, 0, 4);
    }
    if (in_place) [[unlikely]] {
        sender_.send(buffer, session.peer.path, kHeaders + port::kIcrcBytes, payload, now);
        return;
    }
    copy_bytes(at + kHeaders, payload.data(), bytes);
    sender_.send(buffer, session.peer.path, kHeaders + bytes + pad + port::kIcrcBytes, {}, now);
}

}  // namespace cairn::erpc
