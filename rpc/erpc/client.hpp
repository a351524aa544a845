// The client's side of calls: slots, credits, backlog; requests out, responses in, and again when they are lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "rpc/common/call_table.hpp"
#include "rpc/erpc/arrival.hpp"
#include "rpc/erpc/client_transfers.hpp"
#include "rpc/erpc/packet_writer.hpp"
#include "rpc/erpc/sent_watch.hpp"
#include "rpc/erpc/server_messages.hpp"
#include "rpc/erpc/session_table.hpp"

namespace cairn::erpc {

class Client {
public:
    // All outlive the client.
    Client(const EndpointConfig& config, PacketWriter& writer, SessionTable& sessions, ServerMessages& messages,
           rpc::MsgPool& pool, Statistics& statistics);
    ~Client();

    // post() on the short path. False: the call waits, is long, or needs a decision, and post() takes it.
    [[nodiscard]] bool post_at_once(Session& session, const Call& call, Instant now, CallId& id) noexcept;
    // What Endpoint::post() and cancel() say.
    Posted post(Session& session, const Call& call, Instant now) noexcept;
    bool cancel(CallId id, Instant now) noexcept;
    [[nodiscard]] rpc::CallTable& calls() noexcept { return calls_; }
    [[nodiscard]] const rpc::CallTable& calls() const noexcept { return calls_; }

    void on_response(const Arrival& arrival) noexcept;
    // The same on the short path. False: the packet goes the long way.
    [[nodiscard]] bool take_known(const SmallPacket& small, Instant now) noexcept;
    [[nodiscard]] ClientTransfers& transfers() noexcept { return transfers_; }
    [[nodiscard]] const ClientTransfers& transfers() const noexcept { return transfers_; }
    // The server does not answer a request.
    void on_refused(Session& session, const Control& control, Instant now) noexcept;
    // The session has a client part, and is connected or has a free slot: calls leave the backlog.
    void refill_slots(Session& session, Instant now) noexcept;
    // Ends all calls of a session that takes no new ones (asserted).
    void fail_calls(Session& session, CallStatus status, Instant now) noexcept;
    // The same, and nothing of the session is kept.
    void end_session(Session& session, CallStatus status, Instant now) noexcept;
    // Those that asked for it when the endpoint ends.
    void end_awaited_calls(Instant now) noexcept;

    // At the end of a burst: slots that wait for credits.
    void serve_stall_queue(Instant now) noexcept;
    // Now and then: these slots, requests that got lost, if losses count, and calls past their deadlines.
    void scan(bool losses_count, Instant now) noexcept;
    // When one of these has something to do.
    [[nodiscard]] Instant next_deadline() const noexcept { return std::min(watch_.next(), calls_.next_deadline()); }
    [[nodiscard]] bool any_stalled() const noexcept { return !stall_queue_.empty(); }

private:
    friend class ClientTransfers;
    void make_client_session(Session& session, Instant now);
    void start(Session& session, std::uint32_t call, Instant now) noexcept;
    void send_first(Session& session, ClientSlot& slot, Instant now) noexcept;
    void send_request(Session& session, ClientSlot& slot, Instant now) noexcept;
    void complete(Session& session, ClientSlot& slot, CallStatus status, std::span<const std::uint8_t> response,
                  Instant now) noexcept;
    void complete_slowly(Session& session, ClientSlot& slot, CallStatus status, std::span<const std::uint8_t> response,
                         Instant now) noexcept;
    void end_call(std::uint32_t index, CallStatus status, Instant now) noexcept;
    // client_credits_datapath.cpp
    void stall(Session& session, ClientSlot& slot, SlotState as) noexcept;
    void serve_stalled(Session& session, std::uint32_t first, Instant now) noexcept;
    void on_request_timeout(Session& session, ClientSlot& slot, Instant now) noexcept;

    const EndpointConfig& config_;
    PacketWriter& writer_;
    SessionTable& sessions_;
    ServerMessages& messages_;
    rpc::MsgPool& pool_;
    Statistics& statistics_;
    std::size_t at_once_below_;  // request bytes that post_at_once() takes; 0: it takes none
    rpc::CallTable calls_;
    ClientTransfers transfers_;
    std::vector<SessionId> stall_queue_;  // sessions with slots that wait for a credit, oldest first
    SentWatch watch_;
};

}  // namespace cairn::erpc
