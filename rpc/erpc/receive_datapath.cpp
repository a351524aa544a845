// What every packet passes: form, session, peer; and how every packet is composed.
#include <cstring>

#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

namespace {

bool from_peer(const Session& session, const roce::UdDatagram& datagram) noexcept {
    return datagram.packet->path == session.peer.path && datagram.source_qpn == session.peer.qpn;
}

bool serves(const Session& session, PacketType type) noexcept {
    return type == PacketType::Request ? session.state == SessionState::Serving
                                       : session.state == SessionState::Connected;
}

}  // namespace

void Endpoint::on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept {
    for (const roce::UdDatagram& datagram : datagrams) {
        if (config_.drop_per_million != 0 && injected_loss()) [[unlikely]] {
            statistics_.count(Drop::Injected);
            continue;
        }
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
    serve_stall_queue(now);
}

bool Endpoint::injected_loss() noexcept {
    return next_token() % 1'000'000U < config_.drop_per_million;
}

void Endpoint::on_data(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept {
    if (header.type == PacketType::Rfr || header.type == PacketType::CreditReturn) {
        statistics_.count(Drop::BadSize);  // only messages of several packets have them
        return;
    }
    if (header.session.value >= sessions_.size() || !serves(sessions_[header.session.value], header.type)) {
        statistics_.count(Drop::UnknownSession);
        answer_unknown(datagram, header, now);
        return;
    }
    Session& session = sessions_[header.session.value];
    if (!from_peer(session, datagram)) {
        statistics_.count(Drop::WrongPeer);
        return;
    }
    session.last_heard = now;
    if (header.type == PacketType::Request) {
        on_request(session, datagram, header, now);
    } else {
        on_response(session, datagram, header, now);
    }
}

port::PacketRef Endpoint::compose(Session& session, port::PacketRef buffer, const Header& header,
                                  std::span<const std::uint8_t> payload) noexcept {
    constexpr std::size_t kHeaders = sizeof(roce::RawUd) + sizeof(RawHeader);
    const auto pad = static_cast<std::uint8_t>((4U - (payload.size() & 3U)) & 3U);
    CAIRN_ASSERT(kHeaders + payload.size() + pad + port::kIcrcBytes <= buffer.room);
    // The payload first: it may lie in this very buffer, behind the request that it answers.
    if (!payload.empty()) {
        std::memmove(buffer.data + kHeaders, payload.data(), payload.size());
    }
    auto& ud = *reinterpret_cast<roce::RawUd*>(buffer.data);
    std::memcpy(&ud, &session.header, sizeof(ud));
    ud.bth.flags = static_cast<std::uint8_t>(ud.bth.flags | (pad << 4U));
    ud.bth.psn.set(qp_->next_psn().value());
    header.emit(*reinterpret_cast<RawHeader*>(buffer.data + sizeof(roce::RawUd)));
    std::memset(buffer.data + kHeaders + payload.size(), 0, pad);
    buffer.path = session.peer.path;
    buffer.len = static_cast<std::uint16_t>(kHeaders + payload.size() + pad + port::kIcrcBytes);
    return buffer;
}

}  // namespace cairn::erpc
