#include "rpc/erpc/packet_writer.hpp"

#include <cstddef>
#include <cstring>

#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"

namespace cairn::erpc {

// Writes BTH, DETH and our header. The payload follows unless it is sent in place.
void PacketWriter::send(Session& session, const port::PacketRef& buffer, const Header& header,
                        std::span<const std::uint8_t> payload, Instant now) noexcept {
    const std::size_t bytes = payload.size();
    const bool in_place = bytes >= kTailBytes && bytes % 4 == 0 && sender_.port().can_send_from(payload);
    std::uint8_t* const at = begin_packet(session, buffer, bytes);
    header.emit(*reinterpret_cast<RawHeader*>(at));
    if (in_place) [[unlikely]] {
        sender_.send(buffer, session.peer.path, room_for(0), payload, now);
        return;
    }
    copy_bytes(at + sizeof(RawHeader), payload.data(), bytes);
    sender_.send(buffer, session.peer.path, room_for(bytes), {}, now);
}

bool PacketWriter::send_control(Session& session, ControlType type, Instant now, RefuseReason reason,
                                std::uint64_t request_number) noexcept {
    Control control;
    control.type = type;
    control.reason = reason;
    control.request_number = request_number;
    control.sender_session = session.self;
    control.receiver_session = session.remote();
    control.credits = session.credits_max;
    control.token = session.token;
    control.first_request = session.first_request;
    const bool selective = type == ControlType::Connect ? selective_ : session.selective;
    control.features = selective ? kFeatureSelective : std::uint16_t{0};
    control.path_mtu_bytes = static_cast<std::uint16_t>(packet_bytes_ + sizeof(RawHeader));
    session.cookie += type == ControlType::Ping ? 1 : 0;
    const bool pings = type == ControlType::Ping || type == ControlType::Pong;
    control.cookie = pings || type == ControlType::Connect ? session.cookie : 0;
    if (!send_control(session.peer, control, now)) {
        return false;
    }
    session.last_control = now;
    return true;
}

bool PacketWriter::send_control(const roce::UdAddress& to, const Control& control, Instant now) noexcept {
    const port::PacketRef buffer = take();
    if (buffer.cookie == nullptr) {
        return false;
    }
    Header header;
    header.kind = Kind::Control;
    header.message_bytes = control.payload_bytes(packet_bytes_);
    header.session = control.receiver_session;
    const std::size_t bytes = sizeof(wire::RawUd) + sizeof(RawHeader) + header.message_bytes + port::kIcrcBytes;
    CAIRN_ASSERT(bytes <= buffer.room);
    const wire::RawUd ud = qp_->make_header(to);
    std::memset(buffer.data, 0, bytes);
    std::memcpy(buffer.data, &ud, sizeof(ud));
    qp_->stamp(buffer.data);
    header.emit(*reinterpret_cast<RawHeader*>(buffer.data + sizeof(ud)));
    control.emit(*reinterpret_cast<RawControl*>(buffer.data + sizeof(ud) + sizeof(RawHeader)));
    ++statistics_.controls_sent;
    sender_.send(buffer, to.path, bytes, {}, now);
    return true;
}

void PacketWriter::refuse(Session& session, std::uint64_t request_number, RefuseReason reason, Instant now) noexcept {
    ++statistics_.requests_refused;
    send_control(session, ControlType::RequestRefused, now, reason, request_number);
}

}  // namespace cairn::erpc
