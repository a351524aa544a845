// The client's side of calls: slots, credits and backlog. It sends requests, takes responses, and sends lost requests
// again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "rpc/common/call_table.hpp"
#include "rpc/erpc/arrival.hpp"
#include "rpc/erpc/client_transfers.hpp"
#include "rpc/erpc/packet_writer.hpp"
#include "rpc/erpc/sent_watch.hpp"
#include "rpc/erpc/server_messages.hpp"
#include "rpc/erpc/session_table.hpp"
#include "rpc/erpc/stall_queue.hpp"

namespace cairn::erpc {

class Client {
public:
    // The arguments outlive the client.
    Client(const EndpointConfig& config, PacketWriter& writer, SessionTable& sessions, ServerMessages& messages,
           rpc::MsgPool& pool, Statistics& statistics);
    ~Client();

    // Posts a call on the short path and sets `id`. Returns false if the call must wait, is long, or needs a decision;
    // post() then takes it.
    [[nodiscard]] bool post_at_once(Session& session, const Call& call, Instant now, CallId& id) noexcept;
    // The functions of Endpoint with the same names describe these two.
    Posted post(Session& session, const Call& call, Instant now) noexcept;
    bool cancel(CallId id, Instant now) noexcept;
    [[nodiscard]] rpc::CallTable& calls() noexcept { return calls_; }
    [[nodiscard]] const rpc::CallTable& calls() const noexcept { return calls_; }

    void on_response(const Arrival& arrival) noexcept;
    // Takes a response on the short path. Returns false if the packet must take the long path.
    [[nodiscard]] bool take_known(const SmallPacket& small, Instant now) noexcept;
    [[nodiscard]] ClientTransfers& transfers() noexcept { return transfers_; }
    [[nodiscard]] const ClientTransfers& transfers() const noexcept { return transfers_; }
    // Takes a server's message that it does not answer a request.
    void on_refused(Session& session, const Control& control, Instant now) noexcept;
    // Starts calls of the backlog while the session is connected and has a free slot. The session has a client part.
    void refill_slots(Session& session, Instant now) noexcept;
    // Ends all calls of a session that takes no new ones (asserted).
    void fail_calls(Session& session, CallStatus status, Instant now) noexcept;
    // Ends the session's calls as fail_calls() does, and forgets the session.
    void end_session(Session& session, CallStatus status, Instant now) noexcept;
    // Ends the calls that asked to be completed at the endpoint's end, which comes now. Afterwards no session can be
    // opened.
    void end_awaited_calls(Instant now) noexcept;

    // Serves the slots that waited for credits which have come. Called at the end of a turn.
    void serve_stall_queue(Instant now) noexcept;
    // Serves the same slots and ends calls whose deadline has passed. If `losses_count`, also sends lost requests
    // again. Called every kScanInterval.
    void scan(bool losses_count, Instant now) noexcept;
    // Returns the time before which nothing counts as lost.
    [[nodiscard]] Instant next_loss() const noexcept { return watch_.next(); }
    [[nodiscard]] const StallQueue& stalled() const noexcept { return stalled_; }

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
    void serve_stalled(Session& session, Instant now) noexcept;
    void on_request_timeout(Session& session, ClientSlot& slot, Instant now) noexcept;

    const EndpointConfig& config_;
    PacketWriter& writer_;
    SessionTable& sessions_;
    ServerMessages& messages_;
    rpc::MsgPool& pool_;
    Statistics& statistics_;
    std::size_t at_once_below_;  // size below which post_at_once() takes requests
    rpc::CallTable calls_;
    ClientTransfers transfers_;
    StallQueue stalled_;
    SentWatch watch_;
};

}  // namespace cairn::erpc
