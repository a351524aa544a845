// How an endpoint is made and ended, and its work that depends on time.
#include "rpc/erpc/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::erpc {

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
    if (config.calls_max == 0 || config.calls_max > rpc::kCallsMax) {
        return Error{fmt::format("{} outstanding calls are out of range", config.calls_max),
                     fmt::format("choose 1 to {}", rpc::kCallsMax)};
    }
    if (config.max_message_bytes == 0 || config.max_message_bytes > kMaxMessageBytes) {
        return Error{fmt::format("messages of {} bytes are out of range", config.max_message_bytes),
                     fmt::format("choose 1 to {}", kMaxMessageBytes)};
    }
    if (config.transfers_max == 0 || config.transfers_max > kMostTransfers) {
        return Error{fmt::format("{} messages of several packets are out of range", config.transfers_max),
                     fmt::format("choose 1 to {}", kMostTransfers)};
    }
    if (config.peer_timeout < kLeastPeerTimeout) {
        return Error{fmt::format("a peer timeout of {} ms is too short", config.peer_timeout.ns / 1'000'000),
                     fmt::format("choose {} ms or more", kLeastPeerTimeout.ns / 1'000'000)};
    }
    std::unique_ptr<Endpoint> endpoint(new Endpoint(config, worker, pool));
    Result<roce::UdEntry*> qp = worker.datagrams().create_qp(config.qp, *endpoint);
    if (!qp.ok()) {
        return qp.error();
    }
    endpoint->tenancy_ = worker.add(*endpoint);
    endpoint->qp_ = qp.value();
    endpoint->config_.qp.qpn = qp.value()->config().qpn;
    endpoint->writer_.use(*qp.value());
    endpoint->known_ = roce::KnownStart(endpoint->qpn(), config.qp.pkey);
    endpoint->knows_packets_ = config.short_path;
    return endpoint;
}

Endpoint::Endpoint(const EndpointConfig& config, worker::Worker& worker, rpc::MsgPool& pool)
    : RequestTypes({config.max_message_bytes, "raise max_message_bytes"}, config.background),
      config_(config),
      worker_(worker),
      writer_(worker.sender(), config_, statistics_),
      sessions_(config.sessions_max),
      messages_(pool, worker.sender(), statistics_, {config.max_message_bytes, writer_.packet_bytes()},
                config.transfers_max, {.answer = config.peer_timeout * 2},
                derive_key(config.seed, Purpose::MemoryShares)),
      client_(config_, writer_, sessions_, messages_, pool, statistics_),
      server_(*this, handlers(), config_, writer_, sessions_, messages_, pool, pauses_, statistics_),
      control_(config_, writer_, sessions_, messages_, client_, server_, statistics_),
      pauses_(config.peer_timeout),
      registration_(worker.counters().add(statistics_.list_counters())) {}

Endpoint::~Endpoint() {
    if (qp_ == nullptr) {
        return;  // the endpoint was never completed
    }
    guard_.assert_outside();
    client_.end_awaited_calls(worker_.now());
    control_.take_leave(worker_.now());
    writer_.sender().settle_tails();  // the sender lives on, but the messages may not
    worker_.datagrams().destroy_qp(qp_);
}

bool Endpoint::on_turn(Instant now) noexcept {
    on_timeout(now);
    if (!client_.stalled().empty()) [[unlikely]] {
        client_.serve_stall_queue(now);  // the credits of this turn's packets have come
    }
    messages_.on_turn();
    return false;
}

void Endpoint::on_timeout(Instant now) noexcept {
    const auto inside = guard_.enter();
    client_.transfers().on_turn(now);
    server_.jobs().on_turn(now);
    if (now < next_scan_) {
        return;
    }
    pauses_.on_scan(now);
    next_scan_ = now + kScanInterval;
    client_.scan(pauses_.losses_count(now), now);
    scan_messages(now);
    control_.scan(pauses_.listening_from(), now);
}

Instant Endpoint::next_deadline() const noexcept {
    const Instant paced = client_.transfers().next_deadline();
    if (paced != Instant::never()) {
        return std::min(next_scan_, paced);
    }
    // Polls while all credits are in use: their round trips are measured. A worker that slept longer would count its
    // sleep as a pause, and ignore them.
    if (server_.jobs().wants_polling() || client_.stalled().any_waits()) {
        return next_scan_;
    }
    // A sleeping worker finds losses and silent peers a little later. So it needs no timer for them.
    const Instant inexact = std::min(client_.next_loss(), control_.next_scan());
    return std::min(std::max(client_.calls().next_deadline(), next_scan_),
                    std::max(inexact, next_scan_ + port::kCoarseSleep));
}

// Looks at some sessions each time. So all sessions are checked within seconds, and soon when memory is wanted.
void Endpoint::scan_messages(Instant now) noexcept {
    std::size_t left = messages_.on_scan(now) ? kMessageScanPressed : kMessageScan;
    for (left = std::min(left, sessions_.open_count()); left != 0; --left) {
        messages_place_ = messages_place_ + 1 < sessions_.open_count() ? messages_place_ + 1 : 0;
        if (ServerSlots* const slots = sessions_.open_at(messages_place_).server.get(); slots != nullptr) {
            messages_.give_up_old(*slots, now);
        }
    }
}

void Endpoint::check_invariants() const noexcept {
    std::uint32_t calls = 0;
    for (std::size_t place = 0; place < sessions_.open_count(); ++place) {
        const Session& session = sessions_.open_at(place);
        CAIRN_ASSERT(session.state != SessionState::Free && session.place == place);
        const bool is_up = session.state == SessionState::Serving || session.state == SessionState::Connected;
        CAIRN_ASSERT(is_up || !session.known_look.is_any());
        if (session.client != nullptr) {
            calls += session.client->check(session.credits_max) + client_.calls().size_of(session.client->backlog);
        }
        for (std::uint32_t i = 0; session.server != nullptr && i < kSlotsPerSession; ++i) {
            const ServerSlot& slot = (*session.server)[i];
            CAIRN_ASSERT((slot.state == ServerSlotState::Receiving) == (slot.transfer != nullptr));
            CAIRN_ASSERT(slot.request_number % kSlotsPerSession == i);
        }
    }
    CAIRN_ASSERT(sessions_.open_count() + sessions_.free_count() == sessions_.capacity());
    CAIRN_ASSERT(calls == calls_pending());
}

}  // namespace cairn::erpc
