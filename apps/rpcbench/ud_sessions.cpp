#include "apps/rpcbench/ud_sessions.hpp"

#include <algorithm>
#include <cstring>

namespace cairn::rpcbench {

namespace {

constexpr Duration kHelloInterval = milliseconds(20);
constexpr Instant kLeaving = Instant::never();  // a value of UdSession::asked: the session ends with the next look,
                                                // since its Bye has left by then
constexpr std::int64_t kIdlePatience = 4;       // in peer timeouts: a caller that makes no calls is silent, too

std::array<std::uint64_t, 2> words_of(const net::IpAddress& address) {
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), address.octets().data(), sizeof(words));
    return words;
}

}  // namespace

UdSessions::UdSessions(const UdConfig& config, verbs::Device& device, connections::Home& home, UdRoad& road,
                       UdStatistics& statistics)
    : config_(config),
      device_(device),
      road_(road),
      statistics_(statistics),
      directory_(device, home),
      sessions_(config.sessions_max) {}

Status UdSessions::listen(std::uint16_t port) {
    return directory_.listen_datagrams(port, cm::DatagramService{road_.qpn(), verbs::kRdmaCmQkey, {}},
                                       connections::Sharing::Shared);
}

Result<SessionId> UdSessions::connect(const net::IpAddress& remote, std::uint16_t port, Instant now) {
    const auto free = std::find_if(sessions_.begin(), sessions_.end(),
                                   [](const UdSession& each) { return each.state == UdSession::State::Free; });
    if (free == sessions_.end()) {
        return Error{"all sessions are in use", "lower --sessions"};
    }
    auto to = device_.create_ah(remote, config_.udp_source_port, now);
    if (!to.ok()) {
        return to.error();
    }
    if (!question_ && !server_) {
        const Result<verbs::DatagramId> asked = directory_.resolve(remote, port, {}, now);
        if (!asked.ok()) {
            return asked.error();
        }
        question_ = asked.value();
    }
    *free = UdSession{};
    free->state = UdSession::State::Asking;
    free->ours = true;
    free->remote = remote;
    free->to = std::move(to).value();
    free->heard = now;
    ++open_;
    return SessionId{number_of(*free)};
}

void UdSessions::disconnect(std::uint16_t number) noexcept {
    if (number >= sessions_.size() || sessions_[number].state == UdSession::State::Free) {
        return;
    }
    UdSession& session = sessions_[number];
    if (session.state == UdSession::State::Open && road_.room() != 0) {
        road_.send(session.way(), session.head(UdKind::Bye), 0);
        session.state = UdSession::State::Asking;
        session.asked = kLeaving;
        return;
    }
    end(session, false);
}

void UdSessions::end(UdSession& session, bool lost) noexcept {
    const std::uint16_t number = number_of(session);
    const bool ours = session.ours;
    session = UdSession{};
    --open_;
    if (lost) {
        ++statistics_.peers_lost;
    }
    if (ours && callback_ != nullptr) {
        callback_(context_, SessionId{number}, UdEvent::Ended);
    }
}

void UdSessions::hear_directory() noexcept {
    while (const std::optional<cm::Event> event = directory_.poll_event()) {
        const auto* const resolved = std::get_if<cm::Resolved>(&*event);
        if (resolved == nullptr || question_ != resolved->id) {
            continue;
        }
        question_.reset();
        if (resolved->status == wire::SidrStatus::Valid) {
            server_ = resolved->qpn;
        } else {
            refused_ = true;
        }
    }
}

void UdSessions::look(bool calls_pending, Instant now) noexcept {
    hear_directory();
    for (UdSession& session : sessions_) {
        if (session.state == UdSession::State::Asking && session.asked == kLeaving) {
            end(session, false);
        }
        if (!session.ours) {
            continue;
        }
        const bool asks = session.state == UdSession::State::Asking;
        const Instant heard = asks ? session.heard : server_heard_;
        const bool waits = asks || calls_pending;
        // Lost calls end before. If only such calls are under way, their server is silent and alive.
        const Duration patience = asks ? config_.peer_timeout : config_.peer_timeout * 2;
        if (refused_ || (waits && server_ && now - heard > patience)) {
            end(session, session.state == UdSession::State::Open);
        } else if (session.state == UdSession::State::Asking && server_ && road_.room() != 0 &&
                   now - session.asked >= kHelloInterval) {
            say_hello(session, now);
        }
    }
}

void UdSessions::say_hello(UdSession& session, Instant now) noexcept {
    session.heard = session.asked == Instant{} ? now : session.heard;  // its peer's patience begins
    session.asked = now;
    session.qpn = *server_;
    RawUdMessage hello = session.head(UdKind::Hello);
    hello.own = Be16{number_of(session)};
    road_.send(session.way(), hello, 0);
}

// Returns the token. A caller that has it receives packets that are sent to its address.
std::uint64_t UdSessions::token_for(const UdArrival& hello, const net::IpAddress& from) const noexcept {
    const auto words = words_of(from);
    return sip_hash(config_.seed, words[0], words[1], (std::uint64_t{hello.from.value} << 16U) | hello.head.own.get());
}

UdSession* UdSessions::find(const UdArrival& arrival, Instant now) noexcept {
    UdSession* const session = open_session(arrival.head.session.get());
    if (session == nullptr || session->token != arrival.head.token.get()) [[unlikely]] {
        statistics_.breaches.count(UdBreach::Stranger);
        return nullptr;
    }
    (session->ours ? server_heard_ : session->heard) = now;
    return session;
}

void UdSessions::on_control(const UdArrival& arrival, Instant now) noexcept {
    switch (arrival.head.kind) {
        case UdKind::Hello:
            on_hello(arrival, now);
            return;
        case UdKind::Challenge:
        case UdKind::Welcome:
            on_reply(arrival, now);
            return;
        case UdKind::Bye:
            if (UdSession* const session = find(arrival, now); session != nullptr) {
                end(*session, session->ours);
            }
            return;
        case UdKind::Request:
        case UdKind::Response:
        case UdKind::Refusal:
            break;
    }
    statistics_.breaches.count(UdBreach::Malformed);
}

void UdSessions::on_hello(const UdArrival& arrival, Instant now) noexcept {
    const net::IpAddress from = verbs::source_of(arrival.grh);
    auto to = device_.create_ah(from, config_.udp_source_port, now);
    if (!to.ok()) {
        statistics_.breaches.count(UdBreach::Stranger);
        return;
    }
    RawUdMessage reply{RawUdMessage::kVersion, UdKind::Challenge, 0, 0, arrival.head.own, Be16{0}, Be64{0}, Be64{0}};
    const std::uint64_t token = token_for(arrival, from);
    reply.token = Be64{token};
    if (arrival.head.token.get() == token) {
        UdSession* const session = session_for(arrival, from, now);
        if (session == nullptr) {
            statistics_.breaches.count(UdBreach::NoSession);
            return;
        }
        session->to = std::move(to).value();
        session->token = token;
        reply.kind = UdKind::Welcome;
        reply.own = Be16{number_of(*session)};
        road_.send(session->way(), reply, 0);
        return;
    }
    road_.send({to.value().get(), arrival.from}, reply, 0);
}

// Returns the caller's session. It is the one that the caller has, a free one, or that of a silent peer which may be
// gone.
UdSession* UdSessions::session_for(const UdArrival& hello, const net::IpAddress& from, Instant now) noexcept {
    UdSession* best = nullptr;
    for (UdSession& each : sessions_) {
        const bool is_free = each.state == UdSession::State::Free;
        if (!is_free && !each.ours && each.remote == from && each.qpn == hello.from &&
            each.peers == hello.head.own.get()) {
            each.heard = now;
            return &each;
        }
        const bool may_go = is_free || (!each.ours && now - each.heard > config_.peer_timeout * kIdlePatience);
        if (may_go && (best == nullptr || (is_free && best->state != UdSession::State::Free))) {
            best = &each;
        }
    }
    if (best == nullptr) {
        return nullptr;
    }
    open_ += best->state == UdSession::State::Free ? 1 : 0;
    *best = UdSession{};
    best->state = UdSession::State::Open;
    best->peers = hello.head.own.get();
    best->qpn = hello.from;
    best->remote = from;
    best->heard = now;
    return best;
}

void UdSessions::on_reply(const UdArrival& arrival, Instant now) noexcept {
    const std::uint16_t number = arrival.head.session.get();
    UdSession* const session = number < sessions_.size() ? &sessions_[number] : nullptr;
    if (session == nullptr || !session->ours || session->state != UdSession::State::Asking ||
        session->asked == kLeaving || arrival.from != session->qpn ||
        verbs::source_of(arrival.grh) != session->remote) {
        statistics_.breaches.count(UdBreach::Stranger);
        return;
    }
    if (arrival.head.kind == UdKind::Challenge) {
        session->token = arrival.head.token.get();
        say_hello(*session, now);
        return;
    }
    if (arrival.head.token.get() != session->token) {
        statistics_.breaches.count(UdBreach::Stranger);
        return;
    }
    session->peers = arrival.head.own.get();
    session->state = UdSession::State::Open;
    server_heard_ = now;
    if (callback_ != nullptr) {
        callback_(context_, SessionId{number}, UdEvent::Connected);
    }
}

}  // namespace cairn::rpcbench
