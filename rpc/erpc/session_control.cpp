// Control packets: their content, and its effects.
#include "rpc/erpc/session_control.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::erpc {

namespace {

constexpr std::uint64_t kPingsUnderWay = 2;  // the Pong to an older one may come from a peer that recorded it

// Returns the answer to a control packet that belongs to no session, with the same length.
Control answer_to(const Control& control, ControlType type) noexcept {
    Control answer;
    answer.type = type;
    answer.sender_session = control.receiver_session;
    answer.receiver_session = control.sender_session;
    answer.token = control.token;
    return answer;
}

}  // namespace

SessionControl::SessionControl(const EndpointConfig& config, PacketWriter& writer, SessionTable& sessions,
                               ServerMessages& messages, Client& client, Server& server, Statistics& statistics)
    : config_(config),
      writer_(writer),
      sessions_(sessions),
      messages_(messages),
      client_(client),
      server_(server),
      statistics_(statistics),
      secrets_(config.seed),
      server_sessions_(config.sessions_max, config.seed),
      // Several pings must fit a peer's patience, or an idle session would count as dead.
      ping_interval_(std::min(kPingInterval, config.peer_timeout / 4)) {}

void SessionControl::set_callback(SessionCallback callback, void* context) noexcept {
    callback_ = callback;
    context_ = context;
}

Result<SessionId> SessionControl::connect(const roce::UdAddress& peer, Instant now) {
    if (peer.path == nullptr) {
        return Error{"no path to the peer", "open one at the port first; its path table may be full"};
    }
    Session* const session = open(peer, secrets_.tokens.next(), now);
    if (session == nullptr) {
        return Error{fmt::format("all {} sessions are in use", config_.sessions_max), "raise sessions_max"};
    }
    session->state = SessionState::Connecting;
    session->credits_max = config_.credits;
    writer_.send_control(*session, ControlType::Connect, now);
    return session->self;
}

void SessionControl::disconnect(SessionId id, Instant now) noexcept {
    if (!sessions_.knows(id)) {
        return;
    }
    Session& session = sessions_[id];
    if (session.state == SessionState::Connected || session.state == SessionState::Connecting) {
        session.begin_to_disconnect();
        session.opened = now;
        client_.fail_calls(session, CallStatus::Disconnected, now);
        writer_.send_control(session, ControlType::Disconnect, now);
    }
}

Session* SessionControl::open(const roce::UdAddress& peer, std::uint64_t token, Instant now) {
    Session* const session = sessions_.open(peer, token, now);
    if (session != nullptr) {
        session->header = writer_.header_to(peer);
        session->source_word = writer_.source_word_of(peer);
        next_scan_ = std::min(next_scan_, now + kControlRetry);
    }
    return session;
}

// Ends a session; no other function does. The completions and the callback may open, post and disconnect.
void SessionControl::end(Session& session, SessionEvent event, CallStatus status, Instant now,
                         RefuseReason reason) noexcept {
    const bool client = session.state != SessionState::Serving;
    const SessionId self = session.self;
    session.state = client ? SessionState::Disconnecting : SessionState::Free;
    if (client) {
        client_.end_session(session, status, now);
    } else {
        server_sessions_.end(session.peer, session.token);
        server_.end_session(session);
    }
    sessions_.close(session);
    statistics_.peers_lost += event == SessionEvent::PeerLost ? 1 : 0;
    if (callback_ != nullptr && client) {
        callback_(context_, self, event, reason);
    }
}

void SessionControl::on_packet(const roce::UdDatagram& datagram, const Header& header, bool serves,
                               Instant now) noexcept {
    const std::size_t payload_bytes = datagram.payload_bytes - sizeof(RawHeader);
    const auto& raw = *reinterpret_cast<const RawControl*>(datagram.payload + sizeof(RawHeader));
    if (payload_bytes < sizeof(RawControl) || header.message_bytes != payload_bytes || !Control::known(raw)) {
        statistics_.count(Drop::Malformed);
        return;
    }
    const Control control = Control::parse(raw);
    if (control.payload_bytes(writer_.packet_bytes()) != payload_bytes) {
        statistics_.count(Drop::Malformed);
        return;
    }
    const roce::UdAddress from = writer_.source_of(datagram);
    switch (control.type) {
        case ControlType::Connect:
            on_connect(from, control, serves, now);
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

// Until the cookie is right, a peer gets no more bytes than it sent, and no state is kept for it.
void SessionControl::on_connect(const roce::UdAddress& from, const Control& control, bool serves,
                                Instant now) noexcept {
    const auto refuse = [&](RefuseReason reason) {
        Control refusal = answer_to(control, ControlType::Refused);
        refusal.reason = reason;
        writer_.send_control(from, refusal, now);
    };
    if (!serves) {
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
        writer_.send_control(from, challenge, now);
        return;
    }
    if (const std::uint32_t known = server_sessions_.find(from, control.token); known != kNone) {
        // Our Accepted was lost, or the peer's Connect was duplicated.
        writer_.send_control(sessions_[SessionId{static_cast<std::uint16_t>(known)}], ControlType::Accepted, now);
        return;
    }
    const bool may_open = server_sessions_.may_open(from.path->key().remote, sessions_.free_count());
    Session* const session = may_open ? open(from, control.token, now) : nullptr;
    if (session == nullptr) {
        refuse(RefuseReason::NoSessionLeft);
        return;
    }
    session->state = SessionState::Serving;
    session->set_remote(control.sender_session);
    session->credits_max = control.credits;
    session->selective = config_.selective && (control.features & kFeatureSelective) != 0;
    session->first_request = secrets_.request_numbers.next() & kFirstRequestMask;
    server_sessions_.open(from, control.token, session->self.number());
    writer_.send_control(*session, ControlType::Accepted, now);
}

// Finds the session by its token: a client that gives up while it connects knows no number.
void SessionControl::hear_client(const roce::UdAddress& from, const Control& control, Instant now) noexcept {
    const std::uint32_t number = server_sessions_.find(from, control.token);
    if (number == kNone) {
        statistics_.count(Drop::UnknownSession);
        writer_.send_control(from, answer_to(control, ControlType::Disconnected), now);
        return;
    }
    Session& session = sessions_[SessionId{static_cast<std::uint16_t>(number)}];
    if (control.type == ControlType::Ping) {
        if (control.reason == RefuseReason::Ahead && session.server != nullptr) {
            messages_.skip_to((*session.server)[control.request_number % kSlotsPerSession], control.request_number);
        }
        if (session.cookie == 0 || static_cast<std::int64_t>(control.cookie - session.cookie) > 0) {  // else a copy
            session.cookie = control.cookie;
            session.last_heard = now;
        }
        writer_.send_control(session, ControlType::Pong, now);
    } else {
        writer_.send_control(session, ControlType::Disconnected, now);
        end(session, SessionEvent::Disconnected, CallStatus::Disconnected, now);
    }
}

void SessionControl::hear_server(const roce::UdAddress& from, const Control& control, Instant now) noexcept {
    Session* const session = sessions_.has(control.receiver_session) ? &sessions_[control.receiver_session] : nullptr;
    if (session != nullptr && session->is_client() && session->is_with(from) && session->token == control.token) {
        const bool same_life = control.first_request == session->first_request;
        act(*session, judge_control(session->state, control.type, same_life), control, now);
        return;
    }
    statistics_.count(Drop::UnknownSession);
    if (control.type == ControlType::Accepted) {  // for a Connect that came late: that session will not be used
        writer_.send_control(from, answer_to(control, ControlType::Disconnect), now);
    }
}

void SessionControl::act(Session& session, ControlVerdict verdict, const Control& control, Instant now) noexcept {
    switch (verdict) {
        case ControlVerdict::Ignore:
            return;
        case ControlVerdict::TakeChallenge:
            on_challenge(session, control, now);
            return;
        case ControlVerdict::Establish:
            establish(session, control, now);
            return;
        case ControlVerdict::EndRefused:
            end(session, SessionEvent::Refused, CallStatus::Disconnected, now, control.reason);
            return;
        case ControlVerdict::EndDisconnected:
            end(session, SessionEvent::Disconnected, CallStatus::Disconnected, now);
            return;
        case ControlVerdict::EndLost:
            end(session, SessionEvent::PeerLost, CallStatus::PeerLost, now);
            return;
        case ControlVerdict::HearPong:
            if (session.cookie - control.cookie < kPingsUnderWay) {
                session.last_heard = now;
            }
            return;
        case ControlVerdict::EndRequest:
            client_.on_refused(session, control, now);
            return;
    }
}

// Answers the first Challenge at once; it shows that the server lives. Later ones, for a cookie that became stale, wait
// for the next retry. So a server that sends nothing else is given up in time.
void SessionControl::on_challenge(Session& session, const Control& control, Instant now) noexcept {
    if (control.cookie == 0) {
        return;
    }
    const bool first = session.cookie == 0;
    session.cookie = control.cookie;
    if (first) {
        session.last_heard = now;
        writer_.send_control(session, ControlType::Connect, now);
    }
}

void SessionControl::establish(Session& session, const Control& control, Instant now) noexcept {
    session.last_heard = now;
    session.state = SessionState::Connected;
    session.set_remote(control.sender_session);
    session.first_request = control.first_request;
    session.selective = config_.selective && (control.features & kFeatureSelective) != 0;
    if (session.client != nullptr) {
        session.client->number_slots(session.first_request);
    }
    if (callback_ != nullptr) {
        callback_(context_, session.self, SessionEvent::Connected, RefuseReason::None);
    }
    if (session.state == SessionState::Connected && session.client != nullptr) {
        client_.refill_slots(session, now);
    }
}

}  // namespace cairn::erpc
