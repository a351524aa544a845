// Connections made, accepted and ended.
#include "rpc/copyrpc/links.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <variant>

namespace cairn::copyrpc {

namespace {

constexpr std::uint32_t kBacklog = 64;

std::span<const std::uint8_t> bytes_of(const RawHello& raw) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
}

std::optional<Hello> hello_in(const cm::PrivateBytes& data) noexcept {
    return Hello::parse(std::span(data.octets).first(data.size));
}

}  // namespace

Links::Links(const EndpointConfig& config, verbs::Device& device, connections::Home& home, Queues& queues,
             rpc::MsgPool& pool, SessionTable& sessions, Client& client, Server& server, Statistics& statistics)
    : config_(config),
      device_(device),
      connector_(device, home),
      queues_(queues),
      pool_(pool),
      sessions_(sessions),
      client_(client),
      server_(server),
      statistics_(statistics) {
    left_.reserve(config.sessions_max);
}

Links::~Links() {
    sessions_.for_each([this](Session& session) {
        connector_.abandon(session.connection, device_.worker().now());
        server_.forget(session);
        remove(session);
    });
}

Status Links::listen(std::uint16_t port) {
    return connector_.listen(port, kBacklog, connections::Sharing::Shared);
}

// mutants: copyrpc-links-give-memory
Status Links::give_memory(verbs::Pd& pd, rpc::MsgBuffer& memory, std::unique_ptr<verbs::Mr>& region,
                          std::uint32_t bytes, verbs::Rights rights) {
    memory = pool_.allocate(bytes);
    if (!memory.valid()) {
        return Error{"there is no memory for a session's ring", "give the pool more, or sessions smaller rings"};
    }
    // Nobody reads what others left there, neither a batch in the own ring nor the padding of one in the mirror.
    std::fill(memory.span().begin(), memory.span().end(), std::uint8_t{0});
    auto made = device_.register_memory(pd, memory.span(), rights, 0);  // its peer learns no address of ours
    if (!made.ok()) {
        return made.error();
    }
    region = std::move(made).value();
    return Nothing{};
}

// Returns a session with its queue pair and its own ring.
Result<Session*> Links::make() {
    Session* const session = sessions_.add();
    if (session == nullptr) {
        return Error{"all sessions are in use", "raise sessions_max"};
    }
    session->pd = device_.create_pd();  // of its own: its key opens nothing to other sessions
    verbs::QpCapacity capacity;
    capacity.send_slots = 2U * config_.receives;
    capacity.receive_slots = 1;
    capacity.max_sges = 1;
    capacity.inline_bytes = 0;
    auto qp = device_.create_qp(*session->pd, capacity, {*queues_.sends, *queues_.receives, queues_.requests.get()});
    if (!qp.ok()) {
        remove(*session);
        return qp.error();
    }
    session->qp = std::move(qp).value();  // its protection domain ends after it, also if there is no memory
    Status made = give_memory(*session->pd, session->own_memory, session->own, config_.ring_bytes,
                              verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::LocalWrite);
    if (!made.ok()) {
        remove(*session);
        return made.error();
    }
    return session;
}

Hello Links::hello_of(const Session& session) const noexcept {
    return {config_.ring_bytes, config_.receives, session.own->address(), session.own->rkey()};
}

// mutants: copyrpc-links-open-rings
Status Links::open_rings(Session& session, const Hello& peer) {
    Status made = give_memory(*session.pd, session.mirror_memory, session.mirror, peer.ring_bytes, verbs::Rights{});
    if (!made.ok()) {
        return made;
    }
    session.peer = peer;
    session.rings.emplace(session.own_memory.span(), session.mirror_memory.span(), config_.receives, peer.receives);
    server_.expect(session.rings->send().ring().promise_max() / 2);
    return Nothing{};
}

// A connector that has many connections tells of some of them a turn later.
// mutants: copyrpc-links-meet
bool Links::meet(Session& session) {
    return session.rings || (!session.ours && open_rings(session, session.peer).ok());
}

void Links::remove(Session& session) {
    if (session.rings) {
        server_.expect_no_more(session.rings->send().ring().promise_max() / 2);
    }
    sessions_.forget_names(session);
    session.rings.reset();
    session.qp.reset();
    session.own.reset();
    session.mirror.reset();
    session.pd.reset();
    pool_.release(session.own_memory);
    pool_.release(session.mirror_memory);
    sessions_.remove(session);
}

Result<SessionId> Links::connect(const net::IpAddress& remote, std::uint16_t port, Instant now) {
    auto made = make();
    if (!made.ok()) {
        return made.error();
    }
    Session& session = *made.value();
    session.ours = true;
    RawHello raw;
    hello_of(session).emit(raw);
    verbs::ConnectTo to;
    to.remote = remote;
    to.port = port;
    to.path_mtu_bytes = config_.path_mtu_bytes;
    to.choice.access = verbs::Rights{verbs::Right::RemoteWrite};
    to.choice.private_data = bytes_of(raw);
    auto connection = connector_.connect(*session.qp, to, now);
    if (!connection.ok()) {
        const Error error = connection.error();
        remove(session);
        return error;
    }
    sessions_.name(session, connection.value());
    return session.id;
}

void Links::tell(const Session& session, SessionEvent event) const {
    if (session.ours && callback_ != nullptr) {
        callback_(context_, session.id, event);
    }
}

bool Links::poll_events(bool serves, Instant now) {
    remove_left();
    bool any = false;
    while (const std::optional<cm::Event> event = connector_.poll_event()) {
        any = true;
        if (const auto* requested = std::get_if<cm::Requested>(&*event)) {
            on_requested(*requested, serves, now);
        } else if (const auto* established = std::get_if<cm::Established>(&*event)) {
            on_established(*established, now);
        } else if (const auto* leaving = std::get_if<cm::DisconnectRequested>(&*event)) {
            on_ended(leaving->id, SessionEvent::Disconnected);
            (void)connector_.disconnect(leaving->id, {}, now);
        } else if (const auto* gone = std::get_if<cm::Disconnected>(&*event)) {
            on_ended(gone->id, SessionEvent::Disconnected);
        } else if (const auto* rejected = std::get_if<cm::Rejected>(&*event)) {
            on_ended(rejected->id, SessionEvent::Refused);
        } else if (const auto* silent = std::get_if<cm::Unreachable>(&*event)) {
            on_ended(silent->id, SessionEvent::PeerLost);
        } else if (const auto* released = std::get_if<cm::Released>(&*event)) {
            if (Session* const session = sessions_.of_connection(released->id); session != nullptr) {
                remove(*session);
            }
        }
    }
    return any;
}

// Gives one connection up for another. The first to go have ended: their peers still owe a word, and may have been
// killed. Next is the accepted one that has waited longest for its peer's first word: a stranger need not be where its
// REQ says. Returns false if there is neither.
// mutants: copyrpc-links-displace
bool Links::displace(Instant now) {
    Session* first = nullptr;
    sessions_.for_each([&first](Session& session) {
        const bool ended = session.state == SessionState::Ending;
        const bool unproven = session.state == SessionState::Connecting && !session.ours;
        const bool goes_before =
            first == nullptr || (first->state != SessionState::Ending && (ended || session.asked < first->asked));
        if ((ended || unproven) && goes_before) {
            first = &session;
        }
    });
    if (first == nullptr) {
        return false;
    }
    statistics_.connections_displaced += first->state == SessionState::Ending ? 0 : 1;
    std::erase(left_, first->id);
    connector_.abandon(first->connection, now);
    remove(*first);
    return true;
}

// Answers a REQ that has a greeting. The peer's own ring has its mirror once the peer has shown that it is there.
// mutants: copyrpc-links-admit
bool Links::admit(const cm::Requested& requested, const Hello& peer, Instant now) {
    auto made = make();
    if (!made.ok() && displace(now)) {
        made = make();
    }
    if (!made.ok()) {
        return false;
    }
    Session& session = *made.value();
    session.peer = peer;
    session.asked = now;
    RawHello raw;
    hello_of(session).emit(raw);
    verbs::ConnectionChoice choice;
    choice.access = verbs::Rights{verbs::Right::RemoteWrite};
    choice.private_data = bytes_of(raw);
    if (!connector_.accept(requested.id, *session.qp, choice, now).ok()) {
        remove(session);
        return false;
    }
    sessions_.name(session, requested.id);
    return true;
}

// A peer that is refused learns why by the reason of the rejection.
// mutants: copyrpc-links-on-requested
void Links::on_requested(const cm::Requested& requested, bool serves, Instant now) {
    const std::optional<Hello> peer = hello_in(requested.private_data);
    const std::uint32_t longest = std::max(config_.ring_bytes, config_.peer_ring_bytes_max);
    if (!serves || !peer || peer->ring_bytes > longest || !admit(requested, *peer, now)) {
        ++statistics_.connections_refused;
        (void)connector_.reject(requested.id, {}, now);
    }
}

// mutants: copyrpc-links-on-established
void Links::on_established(const cm::Established& established, Instant now) {
    Session* const session = sessions_.of_connection(established.id);
    if (session == nullptr || session->state != SessionState::Connecting) {
        return;
    }
    const std::optional<Hello> peer = session->ours ? hello_in(established.private_data) : session->peer;
    if (!session->rings && (!peer || !open_rings(*session, *peer).ok())) {
        on_ended(established.id, SessionEvent::Refused);
        (void)connector_.disconnect(established.id, {}, now);
        return;
    }
    session->state = SessionState::Open;
    sessions_.list(*session);
    tell(*session, SessionEvent::Connected);
}

// Takes the session's calls and requests from it. Its last event is still to come.
// mutants: copyrpc-links-stop
void Links::stop(Session& session, CallStatus status) {
    session.state = SessionState::Ending;
    server_.forget(session);
    client_.fail_calls(session, status);
}

// A connection that is not established has no end to be awaited. Its session stays until the next turn: somebody may be
// reading its batch, or serving its calls.
// mutants: copyrpc-links-hang-up
void Links::hang_up(Session& session, Instant now) {
    if (!connector_.disconnect(session.connection, {}, now).ok()) {
        connector_.abandon(session.connection, now);
        left_.push_back(session.id);
        sessions_.list(session);  // for another turn
    }
}

void Links::remove_left() {
    for (const SessionId id : left_) {
        remove(*sessions_.find(id));
    }
    left_.clear();
}

// mutants: copyrpc-links-on-ended
void Links::on_ended(verbs::ConnectionId id, SessionEvent event) {
    Session* const session = sessions_.of_connection(id);
    if (session == nullptr || session->state == SessionState::Ending) {
        return;
    }
    stop(*session, event == SessionEvent::PeerLost ? CallStatus::PeerLost : CallStatus::Disconnected);
    tell(*session, event);
}

void Links::end(Session& session, Instant now) {
    if (session.state != SessionState::Ending) {
        stop(session, CallStatus::Disconnected);
        hang_up(session, now);
    }
}

void Links::on_breach(Session& session, Breach breach, Instant now) {
    statistics_.breaches.count(breach);
    on_lost(session, now);
}

void Links::on_lost(Session& session, Instant now) {
    if (session.state == SessionState::Ending) {
        return;
    }
    ++statistics_.peers_lost;
    (void)session.qp->modify(verbs::QpState::Err);  // nothing of the peer is taken any more
    on_ended(session.connection, SessionEvent::PeerLost);
    hang_up(session, now);
}

}  // namespace cairn::copyrpc
