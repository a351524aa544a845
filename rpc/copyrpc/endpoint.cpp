// Making and ending an endpoint.
#include "rpc/copyrpc/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn::copyrpc {

namespace {

constexpr std::uint16_t kMostSessions = 4096;
constexpr std::uint32_t kMostBatches = roce::kMaxQueueSlots / 3 * 2;  // the shared receive queue has half as many more
constexpr std::uint8_t kLooksUntilLost = 8;                           // at a peer within its timeout

Status judge(const EndpointConfig& config) {
    if (!Hello::is_valid_ring(config.ring_bytes)) {
        return Error{fmt::format("a ring of {} bytes is out of range", config.ring_bytes),
                     fmt::format("choose a power of two from {} to {}", RingShape::kLeastBytes, RingShape::kMostBytes)};
    }
    if (config.receives < Hello::kLeastReceives || config.receives > Hello::kMostReceives) {
        return Error{fmt::format("{} receive requests of a session are out of range", config.receives),
                     fmt::format("choose {} to {}", Hello::kLeastReceives, Hello::kMostReceives)};
    }
    if (config.sessions_max == 0 || config.sessions_max > kMostSessions) {
        return Error{fmt::format("{} sessions are out of range", config.sessions_max),
                     fmt::format("choose 1 to {}", kMostSessions)};
    }
    if (std::uint32_t{config.sessions_max} * config.receives > kMostBatches) {
        return Error{
            fmt::format("{} sessions of {} receive requests are too many", config.sessions_max, config.receives),
            fmt::format("choose less of one: their product is at most {}", kMostBatches)};
    }
    if (config.calls_max == 0 || config.calls_max > rpc::kCallsMax) {
        return Error{fmt::format("{} outstanding calls are out of range", config.calls_max),
                     fmt::format("choose 1 to {}", rpc::kCallsMax)};
    }
    if (config.peer_timeout < kLeastPeerTimeout) {
        return Error{fmt::format("a peer timeout of {} ms is too short", config.peer_timeout.ns / 1'000'000),
                     fmt::format("choose {} ms or more", kLeastPeerTimeout.ns / 1'000'000)};
    }
    const RingShape ring(config.ring_bytes / kBlockBytes);
    if (config.answer_bytes > Message::answer_max(ring.charge_max())) {
        return Error{
            fmt::format("answers of {} bytes are too long for a ring of {}", config.answer_bytes, config.ring_bytes),
            fmt::format("choose at most {}, or a larger ring", Message::answer_max(ring.charge_max()))};
    }
    return Nothing{};
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::create(const EndpointConfig& config, verbs::Device& device,
                                                   connections::Home& home, rpc::MsgPool& pool) {
    if (Status good = judge(config); !good.ok()) {
        return good.error();
    }
    std::unique_ptr<Endpoint> endpoint(new Endpoint(config, device, pool));
    if (Status opened = endpoint->open(home); !opened.ok()) {
        return opened.error();
    }
    return endpoint;
}

Endpoint::Endpoint(const EndpointConfig& config, verbs::Device& device, rpc::MsgPool& pool)
    : config_(config),
      device_(device),
      pool_(pool),
      sessions_(config.sessions_max),
      client_(config_, sessions_, statistics_),
      server_(*this, handlers(), sessions_, pool, config.background, statistics_) {}

// A session's peer uses as many receive requests as it was promised, of which a third may not be posted again yet.
Status Endpoint::open(connections::Home& home) {
    const std::uint32_t batches = std::uint32_t{config_.sessions_max} * config_.receives;
    auto sends = device_.create_cq(2 * batches + 1);
    if (!sends.ok()) {
        return sends.error();
    }
    sends_ = std::move(sends).value();
    auto receives = device_.create_cq(batches + batches / 2);
    if (!receives.ok()) {
        return receives.error();
    }
    receives_ = std::move(receives).value();
    requests_promised_ = batches;
    requests_full_ = batches + batches / 2;
    auto requests = device_.create_srq(requests_full_, 1);
    if (!requests.ok()) {
        return requests.error();
    }
    requests_ = std::move(requests).value();
    refill();
    links_ = std::make_unique<Links>(config_, device_, home, LinkQueues{*sends_, *receives_, *requests_}, pool_,
                                     sessions_, client_, server_, statistics_);
    tenancy_ = device_.worker().add(*this);
    return Nothing{};
}

Endpoint::~Endpoint() {
    if (links_ == nullptr) {
        return;  // it never came about
    }
    client_.end_awaited();
    tenancy_.leave();
    links_.reset();
}

void Endpoint::disconnect(SessionId id, Instant now) noexcept {
    if (Session* const session = sessions_.find(id); session != nullptr) {
        links_->end(*session, now);
    }
}

Posted Endpoint::post(SessionId id, const Call& call, Instant now) noexcept {
    Session* const session = sessions_.find(id);
    if (session == nullptr || session->state == SessionState::Ending) {
        return {PostVerdict::NoSuchSession, 0};
    }
    return client_.post(*session, call, now);
}

Instant Endpoint::next_deadline() const noexcept {
    if (sessions_.any_listed()) {
        return Instant{};
    }
    const Instant due = server_.jobs().wants_polling() ? next_poll_ : client_.next_deadline();
    return sessions_.count() == 0 ? due : std::min(due, next_look_);
}

void Endpoint::look_at_peers(Instant now) noexcept {
    if (now >= next_look_) {
        next_look_ = now + Duration{config_.peer_timeout.ns / kLooksUntilLost};
        sessions_.for_each([this, now](Session& session) { look_at_peer(session, now); });
    }
}

// A reliable connection is silent while its peer owes nothing but an answer. A WRITE of no bytes makes the peer's
// transport speak. Looks are counted, not time: whoever pauses itself looks once.
// mutants: copyrpc-endpoint-look-at-peer
void Endpoint::look_at_peer(Session& session, Instant now) noexcept {
    if (!session.is_open()) {
        return;
    }
    if (std::exchange(session.heard, false)) {
        session.silent_looks = 0;
        return;
    }
    if (session.probed && ++session.silent_looks >= kLooksUntilLost) {
        links_->on_lost(session, now);
        return;
    }
    verbs::SendRequest probe;
    probe.opcode = verbs::WorkOpcode::RdmaWrite;
    probe.remote_address = session.peer.address;
    probe.rkey = session.peer.rkey;
    session.probed = session.probed || session.qp->post_send(probe) == verbs::PostVerdict::Posted;
}

}  // namespace cairn::copyrpc
