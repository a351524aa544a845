// Control packets: how sessions begin, are asked after, and end. Nothing here is per call.
#include <cstddef>
#include <cstring>

#include "rpc/erpc/endpoint.hpp"
#include "rpc/erpc/judge.hpp"

namespace cairn::erpc {

namespace {

constexpr std::uint64_t kPingsUnderWay = 2;  // an older one's Pong comes from whoever recorded it

// To whom a control packet is answered that belongs to no session: in as many bytes.
Control answer_to(const Control& control, ControlType type) noexcept {
    Control answer;
    answer.type = type;
    answer.sender_session = control.receiver_session;
    answer.receiver_session = control.sender_session;
    answer.token = control.token;
    return answer;
}

}  // namespace

void Endpoint::on_control(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept {
    const std::size_t payload_bytes = datagram.payload_bytes - sizeof(RawHeader);
    const auto& raw = *reinterpret_cast<const RawControl*>(datagram.payload + sizeof(RawHeader));
    if (payload_bytes < sizeof(RawControl) || header.message_bytes != payload_bytes || !Control::known(raw)) {
        statistics_.count(Drop::Malformed);
        return;
    }
    const Control control = Control::parse(raw);
    if (control.payload_bytes(packet_bytes_) != payload_bytes) {
        statistics_.count(Drop::Malformed);
        return;
    }
    const roce::UdAddress from{datagram.packet->path, datagram.source_qpn, config_.qp.qkey};
    switch (control.type) {
        case ControlType::Connect:
            on_connect(from, control, now);
            return;
        case ControlType::Disconnect:
        case ControlType::Ping:
            hear_client(from, control, now);
            return;
        case ControlType::Challenge:
        case ControlType::Accepted:
        case ControlType::Refused:
        case ControlType::Disconnected:
        case ControlType::Pong:
        case ControlType::RequestRefused:
            hear_server(from, control, now);
            return;
    }
}

// Until the cookie is right, a stranger gets no more bytes than it sent, and nothing is kept of it.
void Endpoint::on_connect(const roce::UdAddress& from, const Control& control, Instant now) noexcept {
    const auto refuse = [&](RefuseReason reason) {
        Control refusal = answer_to(control, ControlType::Refused);
        refusal.reason = reason;
        send_control(from, refusal, now);
    };
    if (!serves()) {
        refuse(RefuseReason::NotServing);
        return;
    }
    if (control.credits == 0 || control.credits > kMaxCredits || control.path_mtu_bytes != config_.qp.path_mtu_bytes) {
        refuse(RefuseReason::BadParameters);
        return;
    }
    if (!secrets_.cookies.fits(control.cookie, from, control.token, now)) {
        Control challenge = answer_to(control, ControlType::Challenge);
        challenge.cookie = secrets_.cookies.bake(from, control.token, now);
        send_control(from, challenge, now);
        return;
    }
    if (const std::uint32_t known = server_sessions_.find(from, control.token); known != kNone) {
        send_control(sessions_[known], ControlType::Accepted, now);  // ours was lost, or their Connect was doubled
        return;
    }
    const bool may_open = server_sessions_.may_open(from.path->key().remote, free_sessions_.size());
    Session* const session = may_open ? allocate_session(from, control.token, now) : nullptr;
    if (session == nullptr) {
        refuse(RefuseReason::NoSessionLeft);
        return;
    }
    session->state = SessionState::Serving;
    session->remote = control.sender_session;
    session->credits_max = control.credits;
    session->selective = config_.selective && (control.features & kFeatureSelective) != 0;
    session->first_request = secrets_.request_numbers.next() & kFirstRequestMask;
    server_sessions_.open(from, control.token, session->self.value);
    send_control(*session, ControlType::Accepted, now);
}

// The token leads to the session: a client that gives up while it connects knows no number.
void Endpoint::hear_client(const roce::UdAddress& from, const Control& control, Instant now) noexcept {
    const std::uint32_t index = server_sessions_.find(from, control.token);
    if (index == kNone) {
        statistics_.count(Drop::UnknownSession);
        send_control(from, answer_to(control, ControlType::Disconnected), now);
        return;
    }
    Session& session = sessions_[index];
    if (control.type == ControlType::Ping) {
        if (control.reason == RefuseReason::Ahead && session.server_slots != nullptr) {
            messages_.skip_to((*session.server_slots)[control.request_number % kSlotsPerSession],
                              control.request_number);
        }
        if (session.cookie == 0 || static_cast<std::int64_t>(control.cookie - session.cookie) > 0) {  // else a copy
            session.cookie = control.cookie;
            session.last_heard = now;
        }
        send_control(session, ControlType::Pong, now);
    } else {
        send_control(session, ControlType::Disconnected, now);
        end_session(session, SessionEvent::Disconnected, CallStatus::Disconnected, now);
    }
}

void Endpoint::hear_server(const roce::UdAddress& from, const Control& control, Instant now) noexcept {
    const std::size_t index = control.receiver_session.value;
    const bool ours = index < sessions_.size() && sessions_[index].state != SessionState::Free &&
                      sessions_[index].state != SessionState::Serving && sessions_[index].is_with(from) &&
                      sessions_[index].token == control.token;
    if (ours) {
        on_client_control(sessions_[index], control, now);
        return;
    }
    statistics_.count(Drop::UnknownSession);
    if (control.type == ControlType::Accepted) {  // to a Connect that came late: nobody will use that session
        send_control(from, answer_to(control, ControlType::Disconnect), now);
    }
}

void Endpoint::on_client_control(Session& session, const Control& control, Instant now) noexcept {
    const bool speaks_of_it = control.type == ControlType::Accepted || control.type == ControlType::Pong;
    if (session.state == SessionState::Connected && speaks_of_it && control.first_request != session.first_request) {
        // It ended there, and a late copy of our Connect opened it anew.
        end_session(session, SessionEvent::PeerLost, CallStatus::PeerLost, now);
        return;
    }
    switch (control.type) {
        case ControlType::Challenge:
            on_challenge(session, control, now);
            return;
        case ControlType::Accepted:
            on_accepted(session, control, now);
            return;
        case ControlType::Refused:
            if (session.state == SessionState::Connecting) {
                end_session(session, SessionEvent::Refused, CallStatus::Disconnected, now, control.reason);
            }
            return;
        case ControlType::Disconnected:
            end_session(
                session,
                session.state == SessionState::Disconnecting ? SessionEvent::Disconnected : SessionEvent::PeerLost,
                session.state == SessionState::Disconnecting ? CallStatus::Disconnected : CallStatus::PeerLost, now);
            return;
        case ControlType::Pong:
            if (session.cookie - control.cookie < kPingsUnderWay) {
                session.last_heard = now;
            }
            return;
        case ControlType::RequestRefused:
            on_refused(session, control, now);
            return;
        case ControlType::Connect:
        case ControlType::Disconnect:
        case ControlType::Ping:
            return;  // none of a server's
    }
}

// The first one is answered at once and says that the server lives. Later ones, for a cookie that went stale, wait for
// the next retry: a server that has nothing else to say is given up in time.
void Endpoint::on_challenge(Session& session, const Control& control, Instant now) noexcept {
    if (session.state != SessionState::Connecting || control.cookie == 0) {
        return;
    }
    const bool first = session.cookie == 0;
    session.cookie = control.cookie;
    if (first) {
        session.last_heard = now;
        send_control(session, ControlType::Connect, now);
    }
}

void Endpoint::on_accepted(Session& session, const Control& control, Instant now) noexcept {
    if (session.state != SessionState::Connecting) {
        return;
    }
    session.last_heard = now;
    session.state = SessionState::Connected;
    session.remote = control.sender_session;
    session.first_request = control.first_request;
    session.selective = config_.selective && (control.features & kFeatureSelective) != 0;
    if (session_callback_ != nullptr) {
        session_callback_(session_context_, session.self, SessionEvent::Connected, RefuseReason::None);
    }
    if (session.state == SessionState::Connected) {
        refill_slots(session, now);
    }
}

bool Endpoint::send_control(Session& session, ControlType type, Instant now, RefuseReason reason,
                            std::uint64_t request_number) noexcept {
    Control control;
    control.type = type;
    control.reason = reason;
    control.request_number = request_number;
    control.sender_session = session.self;
    control.receiver_session = session.remote;
    control.credits = session.credits_max;
    control.token = session.token;
    control.first_request = session.first_request;
    const bool selective = type == ControlType::Connect ? config_.selective : session.selective;
    control.features = selective ? kFeatureSelective : std::uint16_t{0};
    control.path_mtu_bytes = config_.qp.path_mtu_bytes;
    session.cookie += type == ControlType::Ping ? 1 : 0;
    const bool pings = type == ControlType::Ping || type == ControlType::Pong;
    control.cookie = pings || type == ControlType::Connect ? session.cookie : 0;
    if (!send_control(session.peer, control, now)) {
        return false;
    }
    session.last_control = now;
    return true;
}

// False: no buffer; whoever waits for it asks again.
bool Endpoint::send_control(const roce::UdAddress& to, const Control& control, Instant now) noexcept {
    const port::PacketRef buffer = sender_.take();
    if (buffer.cookie == nullptr) {
        statistics_.count(Drop::NoBuffer);
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

}  // namespace cairn::erpc
