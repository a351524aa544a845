// Control packets: connect with a token, refuse, disconnect, ping, reset. Nothing here is per call.
#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

void Endpoint::on_control(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept {
    const std::size_t payload_bytes = datagram.payload_bytes - sizeof(RawHeader);
    if (payload_bytes != sizeof(RawControl) || header.message_bytes != payload_bytes) {
        statistics_.count(Drop::Malformed);
        return;
    }
    const auto& raw = *reinterpret_cast<const RawControl*>(datagram.payload + sizeof(RawHeader));
    if (!Control::known(raw)) {
        statistics_.count(Drop::Malformed);
        return;
    }
    const Control control = Control::parse(raw);
    if (control.type == ControlType::Connect) {
        on_connect(datagram, control, now);
        return;
    }
    if (control.type == ControlType::Reset) {
        on_reset(datagram, control, now);
        return;
    }
    const roce::UdAddress from{datagram.packet->path, datagram.source_qpn, config_.qp.qkey};
    Session* session =
        control.receiver_session.value < sessions_.size() ? &sessions_[control.receiver_session.value] : nullptr;
    const bool ours = session != nullptr && session->state != SessionState::Free && session->peer.path == from.path &&
                      session->peer.qpn == from.qpn;
    if (!ours || session->token != control.token) {
        statistics_.count(Drop::UnknownSession);
        // A client that asks to end or to hear from a session that is gone is told so.
        if (control.type == ControlType::Disconnect || control.type == ControlType::Ping) {
            Control answer = control;
            answer.type = ControlType::Disconnected;
            answer.sender_session = control.receiver_session;
            answer.receiver_session = control.sender_session;
            send_control(from, answer, now);
        }
        return;
    }
    session->last_heard = now;
    if (session->state == SessionState::Serving) {
        if (control.type == ControlType::Ping) {
            send_control(*session, ControlType::Pong, now);
        } else if (control.type == ControlType::Disconnect) {
            send_control(*session, ControlType::Disconnected, now);
            end_session(*session, SessionEvent::Disconnected, CallStatus::Disconnected, now);
        }
        return;
    }
    on_client_control(*session, control, now);
}

void Endpoint::on_connect(const roce::UdDatagram& datagram, const Control& control, Instant now) noexcept {
    const roce::UdAddress from{datagram.packet->path, datagram.source_qpn, config_.qp.qkey};
    const ServerTokens::Found known = server_tokens_.find(control.token);
    if (known.state == ServerTokens::State::Ended) {
        statistics_.count(Drop::UnknownSession);
        return;
    }
    if (known.state == ServerTokens::State::Open) {  // our Accepted was lost, or their Connect was doubled
        Session& session = sessions_[known.session];
        if (session.peer.path == from.path && session.peer.qpn == from.qpn) {
            send_control(session, ControlType::Accepted, now);
        } else {
            statistics_.count(Drop::WrongPeer);
        }
        return;
    }
    Control refusal = control;
    refusal.type = ControlType::Refused;
    refusal.receiver_session = control.sender_session;
    if (control.credits == 0 || control.credits > kMaxCredits || control.path_mtu_bytes != config_.qp.path_mtu_bytes) {
        refusal.reason = RefuseReason::BadParameters;
        send_control(from, refusal, now);
        return;
    }
    Session* session = allocate_session(from, control.token, now);
    if (session == nullptr) {
        refusal.reason = RefuseReason::NoSessionLeft;
        send_control(from, refusal, now);
        return;
    }
    session->state = SessionState::Serving;
    session->remote = control.sender_session;
    session->credits_max = control.credits;
    session->selective = config_.selective && (control.features & kFeatureSelective) != 0;
    server_tokens_.open(control.token, session->self.value);
    send_control(*session, ControlType::Accepted, now);
}

void Endpoint::on_client_control(Session& session, const Control& control, Instant now) noexcept {
    const bool speaks_of_it = control.type == ControlType::Accepted || control.type == ControlType::Pong;
    if (session.state == SessionState::Connected && speaks_of_it && control.incarnation != session.peer_incarnation) {
        // A late copy of our Connect opened it anew at a server that was restarted since.
        end_session(session, SessionEvent::PeerLost, CallStatus::PeerLost, now);
        return;
    }
    switch (control.type) {
        case ControlType::Accepted:
            if (session.state == SessionState::Connecting) {
                session.state = SessionState::Connected;
                session.remote = control.sender_session;
                session.peer_incarnation = control.incarnation;
                session.selective = config_.selective && (control.features & kFeatureSelective) != 0;
                if (session_callback_ != nullptr) {
                    session_callback_(session_context_, session.self, SessionEvent::Connected, RefuseReason::None);
                }
                if (session.state == SessionState::Connected) {
                    refill_slots(session, now);
                }
            }
            break;
        case ControlType::Refused:
            if (session.state == SessionState::Connecting) {
                end_session(session, SessionEvent::Refused, CallStatus::Disconnected, now, control.reason);
            }
            break;
        case ControlType::Disconnected:
            end_session(
                session,
                session.state == SessionState::Disconnecting ? SessionEvent::Disconnected : SessionEvent::PeerLost,
                session.state == SessionState::Disconnecting ? CallStatus::Disconnected : CallStatus::PeerLost, now);
            break;
        case ControlType::Pong:
            break;  // last_heard says it all
        case ControlType::Connect:
        case ControlType::Disconnect:
        case ControlType::Ping:
        case ControlType::Reset:
            statistics_.count(Drop::UnknownSession);
            break;
    }
}

// A restarted peer knows nothing of us. It proves that it saw our packet by naming a request in flight.
void Endpoint::on_reset(const roce::UdDatagram& datagram, const Control& control, Instant now) noexcept {
    for (const ClientSlot* slot = oldest_sent_; slot != nullptr; slot = slot->newer) {
        Session& session = sessions_[slot->session];
        if (slot->request_number == control.request_number && session.remote == control.sender_session &&
            session.peer.path == datagram.packet->path && session.peer.qpn == datagram.source_qpn) {
            end_session(session, SessionEvent::PeerLost, CallStatus::PeerLost, now);
            return;
        }
    }
    statistics_.count(Drop::UnknownSession);
}

void Endpoint::answer_unknown(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept {
    if (header.type != PacketType::Request) {
        return;
    }
    // The request does not carry the client's session number: the client finds it by the request number.
    Control reset;
    reset.type = ControlType::Reset;
    reset.sender_session = header.session;
    reset.request_number = header.request_number;
    send_control({datagram.packet->path, datagram.source_qpn, config_.qp.qkey}, reset, now);
}

void Endpoint::send_control(Session& session, ControlType type, Instant now) noexcept {
    Control control;
    control.type = type;
    control.sender_session = session.self;
    control.receiver_session = session.remote;
    control.credits = session.credits_max;
    control.token = session.token;
    const bool selective = type == ControlType::Connect ? config_.selective : session.selective;
    control.features = selective ? kFeatureSelective : std::uint16_t{0};
    control.path_mtu_bytes = config_.qp.path_mtu_bytes;
    control.incarnation = incarnation_;
    if (send_control(session.peer, control, now)) {
        session.last_control = now;
    }
}

// False: no buffer; whoever waits for it asks again.
bool Endpoint::send_control(const roce::UdAddress& to, const Control& control, Instant now) noexcept {
    const port::PacketRef buffer = sender_.take();
    if (buffer.cookie == nullptr) {
        statistics_.count(Drop::NoBuffer);
        return false;
    }
    RawControl raw{};
    control.emit(raw);
    Header header;
    header.kind = Kind::Control;
    header.message_bytes = sizeof(raw);
    header.session = control.receiver_session;
    Session towards;
    towards.peer = to;
    towards.header = qp_->make_header(to);
    ++statistics_.controls_sent;
    send_packet(towards, buffer, header, {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
    return true;
}

}  // namespace cairn::erpc
