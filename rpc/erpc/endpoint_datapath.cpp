// The checks that every packet passes: its form, its session, and whether it comes from the session's peer.
#include <cstddef>

#include "lib/port/ecn.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

namespace {

constexpr std::uint8_t kBecn = 0x40;  // of the BTH (IBTA vol. 1, annex A10)

bool from_peer(const Session& session, const roce::UdDatagram& datagram) noexcept {
    return datagram.packet->path == session.peer.path && datagram.source_qpn == session.peer.qpn;
}

// DCQCN. `marked`: a switch marked the peer's packet. `told`: the peer reports by BECN that a packet of ours was
// marked. A server passes a mark on by BECN in its next packet. A client with a controller slows down itself, since it
// had asked for the marked response.
void on_congestion(Session& session, bool marked, bool told, Statistics& statistics, Instant now) noexcept {
    const bool due = marked && session.notification.on_marked(now);
    roce::CongestionControl* const control = session.client != nullptr ? session.client->control.get() : nullptr;
    if (control != nullptr && (told || due)) {
        ++statistics.congestion_notified;
        control->on_cnp(now);
    } else if (due && control == nullptr) {
        session.header.bth.resv8a = kBecn;
    }
}

// Takes the network's marks from any packet of the peer. Only packets that are judged to be new show that the peer
// lives.
void hear_network(Session& session, const roce::UdDatagram& datagram, Statistics& statistics, Instant now) noexcept {
    const bool marked = datagram.packet->ecn == port::kCongestionExperienced;
    const bool told = (datagram.packet->data[offsetof(wire::RawBth, resv8a)] & kBecn) != 0;
    if (marked || told) [[unlikely]] {
        on_congestion(session, marked, told, statistics, now);
    }
}

// True if the session's peer sends packets of this type: clients send requests and RFRs, servers the others.
bool is_for(SessionState state, PacketType type) noexcept {
    const bool clients = type == PacketType::Request || type == PacketType::Rfr;
    return state == (clients ? SessionState::Serving : SessionState::Connected);
}

}  // namespace

void Endpoint::on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept {
    const auto inside = guard_.enter();
    client_.transfers().begin_turn(now);
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
            control_.on_packet(datagram, header, serves(), now);
        } else {
            on_data(datagram, header, now);
        }
    }
    server_.transfers().end_burst(now);
}

// Packets for sessions that have ended are not answered. The peer learns of the end when it pings.
void Endpoint::on_data(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept {
    Session* const session = sessions_.has(header.session) ? &sessions_[header.session] : nullptr;
    if (session == nullptr || !is_for(session->state, header.type)) [[unlikely]] {
        statistics_.count(Drop::UnknownSession);
        return;
    }
    if (!from_peer(*session, datagram)) [[unlikely]] {
        statistics_.count(Drop::WrongPeer);
        return;
    }
    hear_network(*session, datagram, statistics_, now);
    const Arrival arrival{*session, datagram, header, now};
    switch (header.type) {
        case PacketType::Request:
            server_.on_request(arrival);
            return;
        case PacketType::Response:
            client_.on_response(arrival);
            return;
        case PacketType::Rfr:
            server_.transfers().on_rfr(arrival);
            return;
        case PacketType::CreditReturn:
            client_.transfers().on_credit_return(arrival);
            return;
    }
}

}  // namespace cairn::erpc
