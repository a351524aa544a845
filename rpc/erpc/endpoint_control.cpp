// Making and ending an endpoint and its sessions.
#include <fmt/format.h>

#include <algorithm>

#include "rpc/erpc/background.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

namespace {

constexpr std::uint8_t kAllSlots = 0xff;
static_assert(kSlotsPerSession == 8, "slots are the bits of one byte");

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::create(const EndpointConfig& config, worker::Worker& worker,
                                                   rpc::MsgPool& pool) {
    if (config.sessions_max == 0 || config.sessions_max > kMaxSessions) {
        return Error{fmt::format("{} sessions are out of range", config.sessions_max),
                     fmt::format("choose 1 to {}", kMaxSessions)};
    }
    if (config.credits == 0 || config.credits > kMaxCredits) {
        return Error{fmt::format("{} credits are out of range", config.credits),
                     fmt::format("choose 1 to {}", kMaxCredits)};
    }
    if (config.calls_max == 0 || config.calls_max > (1U << 24U)) {
        return Error{fmt::format("{} outstanding calls are out of range", config.calls_max), "choose 1 to 16777216"};
    }
    if (config.max_message_bytes == 0 || config.max_message_bytes > kMaxMessageBytes) {
        return Error{fmt::format("messages of {} bytes are out of range", config.max_message_bytes),
                     fmt::format("choose 1 to {}", kMaxMessageBytes)};
    }
    std::unique_ptr<Endpoint> endpoint(new Endpoint(config, worker, pool));
    Result<roce::UdEntry*> qp = worker.datagrams().create_qp(config.qp, *endpoint);
    if (!qp.ok()) {
        return qp.error();
    }
    endpoint->tenancy_ = worker.add(*endpoint);
    endpoint->qp_ = qp.value();
    endpoint->packet_bytes_ = config.qp.path_mtu_bytes - static_cast<std::uint32_t>(sizeof(RawHeader));
    return endpoint;
}

Endpoint::Endpoint(const EndpointConfig& config, worker::Worker& worker, rpc::MsgPool& pool)
    : config_(config),
      worker_(worker),
      sender_(worker.sender()),
      pool_(pool),
      // Several pings must fit a peer's patience, or an idle session would count as dead.
      ping_interval_(std::min(kPingInterval, config.peer_timeout / 4)),
      secrets_(config.seed),
      sessions_(config.sessions_max),
      calls_(config.calls_max),
      deadlines_(config.calls_max),
      client_transfers_(config.transfers_max),
      messages_(pool, worker.sender(), statistics_,
                {config.max_message_bytes, config.qp.path_mtu_bytes - static_cast<std::uint32_t>(sizeof(RawHeader))},
                config.transfers_max, {.answer = config.peer_timeout * 2},
                derive_key(config.seed, Purpose::MemoryShares)),
      wheel_(make_wheel(config.congestion, config.sessions_max, Instant{})),
      server_sessions_(config.sessions_max, config.seed) {
    credits_due_.reserve(config.transfers_max);
    for (std::uint32_t i = config.sessions_max; i-- > 0;) {
        sessions_[i].self = SessionId{static_cast<std::uint16_t>(i)};
        free_sessions_.push_back(static_cast<std::uint16_t>(i));
    }
    for (std::uint32_t i = 0; i < config.calls_max; ++i) {
        calls_[i].next = i + 1 < config.calls_max ? i + 1 : kNone;
    }
    free_call_ = 0;
    stall_queue_.reserve(config.sessions_max);
    open_sessions_.reserve(config.sessions_max);
    if (config.background != nullptr) {
        config.background->attach();
    }
}

Endpoint::~Endpoint() {
    end_awaited_calls();
    drain_jobs();
    take_leave();
    sender_.settle_tails();  // the sender lives on, the messages need not
    for (Session& session : sessions_) {
        if (session.server_slots != nullptr) {
            messages_.release(*session.server_slots);
        }
        if (session.client_slots != nullptr) {
            for (ClientSlot& slot : *session.client_slots) {
                rpc::MsgBuffer owned = slot.transfer != nullptr ? end_transfer(session, slot) : rpc::MsgBuffer{};
                pool_.release(owned);
            }
        }
        if (session.state != SessionState::Free) {
            session.peer.path->unpin();
        }
    }
    if (qp_ != nullptr) {
        worker_.datagrams().destroy_qp(qp_);
    }
}

void Endpoint::set_session_callback(SessionCallback callback, void* context) noexcept {
    session_callback_ = callback;
    session_context_ = context;
}

Result<SessionId> Endpoint::connect(const roce::UdAddress& peer, Instant now) {
    if (peer.path == nullptr) {
        return Error{"no path to the peer", "open one at the port first; its path table may be full"};
    }
    Session* session = allocate_session(peer, secrets_.tokens.next(), now);
    if (session == nullptr) {
        return Error{fmt::format("all {} sessions are in use", config_.sessions_max), "raise sessions_max"};
    }
    session->state = SessionState::Connecting;
    session->credits = session->credits_max = config_.credits;
    session->free_slots = kAllSlots;
    const std::size_t window_bytes = std::size_t{config_.credits} * (packet_bytes_ + kPacketOverheadBytes);
    session->control = make_control(config_.congestion, window_bytes, now);
    send_control(*session, ControlType::Connect, now);
    return session->self;
}

// A session that is only open costs little: its slots are made for its first call.
void Endpoint::make_client_slots(Session& session) {
    session.client_slots = std::make_unique<std::array<ClientSlot, kSlotsPerSession>>();
    for (std::uint32_t i = 0; i < kSlotsPerSession; ++i) {
        (*session.client_slots)[i].request_number = (session.first_request + kSlotsPerSession + i) & kRequestNumberMask;
        (*session.client_slots)[i].session = session.self.value;
    }
}

void Endpoint::make_server_slots(Session& session) {
    session.server_slots = std::make_unique<std::array<ServerSlot, kSlotsPerSession>>();
    for (std::uint32_t i = 0; i < kSlotsPerSession; ++i) {
        (*session.server_slots)[i].request_number = session.first_request + i;  // one before the client's first
    }
}

void Endpoint::disconnect(SessionId id, Instant now) noexcept {
    if (id.value >= sessions_.size()) {
        return;
    }
    Session& session = sessions_[id.value];
    if (session.state == SessionState::Connected || session.state == SessionState::Connecting) {
        session.state = SessionState::Disconnecting;
        session.opened = now;
        fail_calls(session, CallStatus::Disconnected, now);
        send_control(session, ControlType::Disconnect, now);
    }
}

Session* Endpoint::allocate_session(const roce::UdAddress& peer, std::uint64_t token, Instant now) {
    if (free_sessions_.empty()) {
        return nullptr;
    }
    Session& session = sessions_[free_sessions_.back()];
    free_sessions_.pop_back();
    const SessionId self = session.self;
    session = Session{};
    session.self = self;
    session.peer = peer;
    session.token = token;
    session.header = qp_->make_header(peer);
    session.last_heard = session.opened = now;
    peer.path->pin();
    session.place = static_cast<std::uint16_t>(open_sessions_.size());
    open_sessions_.push_back(self.value);
    next_session_scan_ = std::min(next_session_scan_, now + kControlRetry);
    return &session;
}

// The one way a session ends. The completions and the callback may open, post and disconnect.
void Endpoint::end_session(Session& session, SessionEvent event, CallStatus status, Instant now,
                           RefuseReason reason) noexcept {
    const bool client = session.state != SessionState::Serving;
    session.state = client ? SessionState::Disconnecting : SessionState::Free;
    if (client) {
        fail_calls(session, status, now);
    } else {
        server_sessions_.end(session.peer, session.token);
        if (session.server_slots != nullptr) {
            messages_.release(*session.server_slots);
        }
    }
    session.state = SessionState::Free;
    if (reply_session_ == &session) {
        reply_slot_ = nullptr;  // ended by its own handler
    }
    session.client_slots.reset();
    session.server_slots.reset();
    session.peer.path->unpin();
    free_sessions_.push_back(session.self.value);
    sessions_[open_sessions_.back()].place = session.place;
    open_sessions_[session.place] = open_sessions_.back();
    open_sessions_.pop_back();
    statistics_.peers_lost += event == SessionEvent::PeerLost ? 1 : 0;
    if (session_callback_ != nullptr && client) {
        session_callback_(session_context_, session.self, event, reason);
    }
}

void Endpoint::fail_calls(Session& session, CallStatus status, Instant now) noexcept {
    CAIRN_ASSERT(session.state == SessionState::Disconnecting);  // nothing new can be posted meanwhile
    for (std::uint32_t i = 0; session.client_slots != nullptr && i < kSlotsPerSession; ++i) {
        if ((*session.client_slots)[i].call != kNone) {
            complete(session, i, status, {}, now);
        }
    }
    while (session.backlog_head != kNone) {
        end_call(session.backlog_head, status, now);
    }
}

// Their completions may still answer requests, but neither open sessions nor post.
void Endpoint::end_awaited_calls() noexcept {
    free_sessions_.clear();
    for (Session& session : sessions_) {
        const bool calls = session.state == SessionState::Connected || session.state == SessionState::Connecting;
        session.state = calls ? SessionState::Disconnecting : session.state;
    }
    for (std::uint32_t i = 0; i < calls_.size(); ++i) {
        if (calls_[i].used && calls_[i].call.ends_with_endpoint) {
            end_call(i, CallStatus::Disconnected, last_scan_);
        }
    }
}

// Best effort and bounded: what the port does not take in time is left to the peers' patience.
void Endpoint::take_leave() noexcept {
    std::uint32_t tries = kFarewellTries;
    const auto push = [&] {
        sender_.flush(last_scan_);
        return tries-- != 0;
    };
    for (const std::uint16_t index : open_sessions_) {
        Session& session = sessions_[index];
        const bool client = session.state != SessionState::Serving;
        while (tries != 0 && sender_.queued() == roce::Sender::kQueuePackets && push()) {
        }
        while (!send_control(session, client ? ControlType::Disconnect : ControlType::Disconnected, last_scan_) &&
               tries != 0 && push()) {
        }
    }
    while (tries != 0 && sender_.queued() != 0 && push()) {
    }
}

void Endpoint::check_invariants() const noexcept {
    std::uint32_t calls = 0;
    for (std::size_t place = 0; place < open_sessions_.size(); ++place) {
        const Session& session = sessions_[open_sessions_[place]];
        CAIRN_ASSERT(session.state != SessionState::Free && session.place == place);
        std::uint32_t sent = 0;
        for (std::uint32_t i = 0; session.client_slots != nullptr && i < kSlotsPerSession; ++i) {
            const ClientSlot& slot = (*session.client_slots)[i];
            CAIRN_ASSERT(((session.free_slots >> i) & 1U) == (slot.call == kNone ? 1U : 0U));
            CAIRN_ASSERT(slot.request_number % kSlotsPerSession == i);
            sent += session.credits_held(slot);
            calls += slot.call != kNone ? 1 : 0;
        }
        for (std::uint32_t i = 0; session.server_slots != nullptr && i < kSlotsPerSession; ++i) {
            const ServerSlot& slot = (*session.server_slots)[i];
            CAIRN_ASSERT((slot.state == ServerSlotState::Receiving) == (slot.transfer != nullptr));
            CAIRN_ASSERT(slot.request_number % kSlotsPerSession == i);
        }
        CAIRN_ASSERT((session.yielded_slots & ~session.stalled_slots) == 0);
        CAIRN_ASSERT(session.client_slots == nullptr || session.credits + sent == session.credits_max);
        for (std::uint32_t call = session.backlog_head; call != kNone; call = calls_[call].next) {
            ++calls;
        }
    }
    CAIRN_ASSERT(open_sessions_.size() + free_sessions_.size() == sessions_.size() && calls == calls_pending_);
}

}  // namespace cairn::erpc
