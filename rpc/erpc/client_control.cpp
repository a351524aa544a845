// The rarer work of a client: how a session's client part begins and ends, refused requests, losses and deadlines.
#include <algorithm>
#include <bit>

#include "rpc/erpc/client.hpp"

namespace cairn::erpc {

namespace {

static_assert(kSlotsPerSession == 8, "slots are the bits of one byte");

}  // namespace

Client::Client(const EndpointConfig& config, PacketWriter& writer, SessionTable& sessions, ServerMessages& messages,
               rpc::MsgPool& pool, Statistics& statistics)
    : config_(config),
      writer_(writer),
      sessions_(sessions),
      messages_(messages),
      pool_(pool),
      statistics_(statistics),
      at_once_below_(config.short_path ? writer.small_bytes() + std::size_t{1} : 0),
      calls_(config.calls_max, statistics.calls_failed),
      transfers_(config, *this),
      stalled_(config.sessions_max),
      watch_(sessions) {}

Client::~Client() {
    for (std::size_t place = 0; place < sessions_.open_count(); ++place) {
        ClientSession* const client = sessions_.open_at(place).client.get();
        for (std::uint32_t i = 0; client != nullptr && i < kSlotsPerSession; ++i) {
            ClientSlot& slot = client->slots[i];
            rpc::MsgBuffer owned = slot.transfer != nullptr ? transfers_.end(*client, slot) : rpc::MsgBuffer{};
            pool_.release(owned);
        }
    }
}

void Client::make_client_session(Session& session, Instant now) {
    session.client = std::make_unique<ClientSession>();
    ClientSession& client = *session.client;
    client.credits = session.credits_max;
    const std::size_t window_bytes = std::size_t{session.credits_max} * (writer_.packet_bytes() + kPacketOverheadBytes);
    client.control = make_control(config_.congestion, window_bytes, now);
    client.number_slots(session.first_request);
}

void Client::end_session(Session& session, CallStatus status, Instant now) noexcept {
    fail_calls(session, status, now);
    if (session.client != nullptr) {
        stalled_.forget(session);
        watch_.forget(session);
    }
}

void Client::fail_calls(Session& session, CallStatus status, Instant now) noexcept {
    CAIRN_ASSERT(session.state == SessionState::Disconnecting);  // nothing new can be posted meanwhile
    if (session.client == nullptr) {
        return;
    }
    ClientSession& client = *session.client;
    for (ClientSlot& slot : client.slots) {
        if (slot.call != kNone) {
            complete(session, slot, status, {}, now);
        }
    }
    while (!client.backlog.empty()) {
        end_call(client.backlog.oldest, status, now);
    }
}

// Ends calls. Their completions may still answer requests, but neither open sessions nor post.
void Client::end_awaited_calls(Instant now) noexcept {
    sessions_.open_no_more();
    for (std::size_t place = 0; place < sessions_.open_count(); ++place) {
        Session& session = sessions_.open_at(place);
        if (session.state == SessionState::Connected || session.state == SessionState::Connecting) {
            session.begin_to_disconnect();
        }
    }
    calls_.end_awaited([this, now](std::uint32_t index) { end_call(index, CallStatus::Disconnected, now); });
}

void Client::on_refused(Session& session, const Control& control, Instant now) noexcept {
    ClientSlot* const slot =
        session.client != nullptr ? &session.client->slots[control.request_number % kSlotsPerSession] : nullptr;
    if (slot == nullptr || slot->call == kNone || !slot->may_be_known() ||
        slot->request_number != control.request_number) {
        statistics_.count(Drop::StaleResponse);
        return;
    }
    const auto end_refused = [&](CallStatus status) {
        session.last_heard = now;
        complete(session, *slot, status, {}, now);
    };
    switch (control.reason) {
        case RefuseReason::NoHandler:
            end_refused(CallStatus::NoHandler);
            break;
        case RefuseReason::AnswerLost:
            end_refused(CallStatus::AnswerLost);
            break;
        case RefuseReason::NotExecuted:
            end_refused(CallStatus::NotExecuted);
            break;
        case RefuseReason::TooLong:
            end_refused(CallStatus::RequestTooLong);
            break;
        case RefuseReason::GivenUp:
            // No honest server gives up earlier. A server that says so all the time must not decide how fast we send.
            if (slot->transfer != nullptr && slot->transfer->request_packets > 1 &&
                now - slot->transfer->first_sent >= kRtoMin) {
                session.last_heard = now;
                transfers_.restart(session, *slot, now);
            }
            break;
        case RefuseReason::Ahead:
            writer_.send_control(session, ControlType::Ping, now, RefuseReason::Ahead, control.request_number);
            break;
        case RefuseReason::None:
        case RefuseReason::NoSessionLeft:
        case RefuseReason::BadParameters:
        case RefuseReason::NotServing:
        case RefuseReason::PathTooNarrow:
            statistics_.count(Drop::UnknownSession);
            break;
    }
}

void Client::scan(bool losses_count, Instant now) noexcept {
    serve_stall_queue(now);
    if (losses_count) {
        watch_.scan(now, [this, now](Session& session, ClientSlot& slot) {
            if (slot.transfer != nullptr) {
                transfers_.on_timeout(session, slot, now);
            } else {
                on_request_timeout(session, slot, now);
            }
        });
    }
    calls_.end_overdue(now, [this, now](std::uint32_t index) { end_call(index, CallStatus::DeadlinePassed, now); });
}

}  // namespace cairn::erpc
