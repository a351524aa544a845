// eRPC endpoint: sessions, calls and request handlers over one UD queue pair (Kalia et al., "Datacenter RPCs
// can be General and Fast", NSDI 2019). Client-driven: a server only answers. One thread drives it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/erpc/call.hpp"
#include "rpc/erpc/drops.hpp"
#include "rpc/erpc/endpoint_config.hpp"
#include "rpc/erpc/header.hpp"
#include "rpc/erpc/pending_call.hpp"
#include "rpc/erpc/request_types.hpp"
#include "rpc/erpc/secrets.hpp"
#include "rpc/erpc/server_messages.hpp"
#include "rpc/erpc/server_sessions.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

class Endpoint final : public roce::UdReceiver, public RequestTypes, private worker::Tenant {
public:
    // Both outlive the endpoint. Errors: those of UdMux::create_qp, or limits out of range.
    static Result<std::unique_ptr<Endpoint>> create(const EndpointConfig& config, worker::Worker& worker,
                                                    rpc::MsgPool& pool);
    ~Endpoint() override;
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    void set_session_callback(SessionCallback callback, void* context) noexcept;
    // Starts a session; the callback tells how it went. Calls may be posted at once: they wait.
    Result<SessionId> connect(const roce::UdAddress& peer, Instant now);
    // Ends a client session: pending calls fail with Disconnected. Unknown sessions are left alone.
    void disconnect(SessionId id, Instant now) noexcept;

    Posted post(SessionId session, const Call& call, Instant now) noexcept;
    // The completion runs with Cancelled before this returns. False: no such call (any more).
    bool cancel(CallId id, Instant now) noexcept;

    // Room for a response of `bytes`; empty when it is longer than max_message_bytes(), the pool is empty, or
    // the handle is stale. respond() sends what was written there. Without room a handler answers later, or refuses:
    // the call fails with AnswerLost.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept;
    bool respond(const RequestHandle& handle, Instant now) noexcept;
    bool refuse(const RequestHandle& handle, Instant now) noexcept;

    void on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept override;
    // Timers: retransmission, deadlines, pings, dead peers. Harmless when early. `now` never goes back: SteadyTime.
    void on_timeout(Instant now) noexcept;
    [[nodiscard]] Instant next_deadline() const noexcept override;

    [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
    [[nodiscard]] Qpn qpn() const noexcept { return qp_->config().qpn; }
    [[nodiscard]] std::uint32_t max_message_bytes() const noexcept { return config_.max_message_bytes; }
    [[nodiscard]] std::size_t sessions_open() const noexcept { return open_sessions_.size(); }
    [[nodiscard]] std::uint32_t calls_pending() const noexcept { return calls_pending_; }
    // Asserts what must hold between any two events: credits, slots, lists.
    void check_invariants() const noexcept;

private:
    Endpoint(const EndpointConfig& config, worker::Worker& worker, rpc::MsgPool& pool);
    bool on_turn(Instant now) noexcept override;
    void on_data(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept;
    void on_rare(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept;
    void send_packet(Session& session, const port::PacketRef& buffer, const Header& header,
                     std::span<const std::uint8_t> payload, Instant now) noexcept;
    void on_response(Session& session, const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept;
    void start(Session& session, std::uint32_t call, Instant now) noexcept;
    void send_request(Session& session, std::uint32_t slot_index, Instant now) noexcept;
    void complete(Session& session, std::uint32_t slot_index, CallStatus status, std::span<const std::uint8_t> response,
                  Instant now) noexcept;
    void complete_slowly(Session& session, std::uint32_t slot_index, CallStatus status,
                         std::span<const std::uint8_t> response, Instant now) noexcept;
    std::uint32_t free_slot(Session& session, std::uint32_t slot_index) noexcept;
    void finish_call(std::uint32_t index, CallStatus status, std::span<const std::uint8_t> response,
                     Duration latency) noexcept;
    void end_call(std::uint32_t index, CallStatus status, Instant now) noexcept;
    void leave_backlog(Session& session, PendingCall& call) noexcept;
    void refill_slots(Session& session, Instant now) noexcept;
    void send_first(Session& session, std::uint32_t slot_index, Instant now) noexcept;
    void serve_stall_queue(Instant now) noexcept;
    void serve_stalled(Session& session, std::uint32_t first, Instant now) noexcept;
    void stall(Session& session, std::uint32_t slot_index) noexcept;
    [[nodiscard]] bool begin_transfer(ClientSlot& slot) noexcept;
    [[nodiscard]] rpc::MsgBuffer end_transfer(Session& session, ClientSlot& slot) noexcept;
    void kick(Session& session, std::uint32_t slot_index, Instant now) noexcept;
    void send_number(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept;
    void sample(Session& session, const ClientSlot& slot, std::uint32_t number, std::uint8_t held,
                Instant now) noexcept;
    void note_answered(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept;
    void on_credit_return(Session& session, const roce::UdDatagram& datagram, const Header& header,
                          Instant now) noexcept;
    void resend_overtaken(Session& session, std::uint32_t slot_index, Instant now) noexcept;
    void on_transfer_timeout(Session& session, ClientSlot& slot, Instant now) noexcept;
    [[nodiscard]] bool place_response(ClientTransfer& transfer, const Call& call, std::uint32_t bytes) noexcept;
    void on_response_packet(Session& session, const roce::UdDatagram& datagram, const Header& header,
                            Instant now) noexcept;
    void hold_back(Session& session, std::uint32_t slot_index) noexcept;
    void run_wheel(Instant now) noexcept;
    void serve_paced(Session& session, Instant now) noexcept;
    void on_request_packet(Session& session, const roce::UdDatagram& datagram, const Header& header,
                           Instant now) noexcept;
    [[nodiscard]] bool execute_transfer(Session& session, ServerSlot& slot, port::PacketRef* packet,
                                        Instant now) noexcept;
    void take_request_packet(Session& session, ServerSlot& slot, const roce::UdDatagram& datagram, const Header& header,
                             Instant now) noexcept;
    void send_credit_returns(Instant now) noexcept;
    void send_credit_return(Session& session, const ServerSlot& slot, std::uint32_t newest, std::uint32_t in_order,
                            const std::array<std::uint64_t, 2>& ahead, Instant now) noexcept;
    void repeat_answer(Session& session, ServerSlot& slot, const roce::UdDatagram& datagram, const Header& header,
                       Instant now) noexcept;
    void on_rfr(Session& session, const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept;
    void run_handler(Session& session, ServerSlot& slot, port::PacketRef* packet, std::span<const std::uint8_t> payload,
                     Instant now) noexcept;
    void on_request(Session& session, const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept;
    void execute(Session& session, ServerSlot& slot, const roce::UdDatagram& datagram, const Header& header,
                 Instant now) noexcept;
    void answer(Session& session, ServerSlot& slot, AnswerPacket which, port::PacketRef* request, Instant now) noexcept;
    void send_response(Session& session, const ServerSlot& slot, const port::PacketRef& buffer, std::uint32_t index,
                       Instant now) noexcept;
    [[nodiscard]] ServerSlot* executing_slot(const RequestHandle& handle) noexcept;
    [[nodiscard]] BackgroundJob* prepare_job(std::uint8_t type, const ServerSlot& slot,
                                             std::span<const std::uint8_t> copied) noexcept;
    void submit_job(Session& session, ServerSlot& slot, BackgroundJob& job) noexcept;
    void answer_finished_jobs(Instant now) noexcept;
    void drain_jobs() noexcept;
    void on_control(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept;
    void on_connect(const roce::UdAddress& from, const Control& control, Instant now) noexcept;
    void hear_client(const roce::UdAddress& from, const Control& control, Instant now) noexcept;
    void hear_server(const roce::UdAddress& from, const Control& control, Instant now) noexcept;
    void on_client_control(Session& session, const Control& control, Instant now) noexcept;
    void on_challenge(Session& session, const Control& control, Instant now) noexcept;
    void on_accepted(Session& session, const Control& control, Instant now) noexcept;
    bool send_control(const roce::UdAddress& to, const Control& control, Instant now) noexcept;
    bool send_control(Session& session, ControlType type, Instant now, RefuseReason reason = RefuseReason::None,
                      std::uint64_t request_number = 0) noexcept;
    void take_leave() noexcept;
    void refuse(Session& session, std::uint64_t request_number, RefuseReason reason, Instant now) noexcept;
    void on_refused(Session& session, const Control& control, Instant now) noexcept;
    void restart(Session& session, ClientSlot& slot, Instant now) noexcept;
    [[nodiscard]] Session* allocate_session(const roce::UdAddress& peer, std::uint64_t token, Instant now);
    void end_session(Session& session, SessionEvent event, CallStatus status, Instant now,
                     RefuseReason reason = RefuseReason::None) noexcept;
    void make_client_slots(Session& session);
    void make_server_slots(Session& session);
    void fail_calls(Session& session, CallStatus status, Instant now) noexcept;
    void end_awaited_calls() noexcept;
    void scan_losses(Instant now) noexcept;  // recovery.cpp
    void on_request_timeout(Session& session, ClientSlot& slot, Instant now) noexcept;
    void scan_messages(Instant now) noexcept;
    void end_overdue_calls(Instant now) noexcept;
    [[nodiscard]] bool scan_sessions(Instant now) noexcept;  // true: all were looked at
    void supervise(Session& session, Instant now) noexcept;

    EndpointConfig config_;
    worker::Worker& worker_;
    roce::Sender& sender_;
    rpc::MsgPool& pool_;
    worker::Tenancy tenancy_;
    roce::UdEntry* qp_ = nullptr;
    Duration ping_interval_{};
    std::uint32_t packet_bytes_ = 0;  // payload of a packet that is not a message's last
    std::uint32_t calls_pending_ = 0;
    std::uint32_t free_call_ = kNone;
    SentSlots sent_slots_;
    Secrets secrets_;
    Instant next_scan_{};
    Instant last_scan_{};
    Instant losses_from_{};     // not before: we were away ourselves
    Instant listening_from_{};  // since we were away for long
    Instant next_session_scan_{};
    SessionCallback session_callback_ = nullptr;
    void* session_context_ = nullptr;
    port::PacketRef* reply_buffer_ = nullptr;  // the request under the running handler
    ServerSlot* reply_slot_ = nullptr;
    Session* reply_session_ = nullptr;
    Statistics statistics_;
    std::vector<Session> sessions_;
    std::vector<std::uint16_t> free_sessions_;
    std::vector<std::uint16_t> open_sessions_;  // in no order; Session::place says where
    std::vector<PendingCall> calls_;
    Deadlines deadlines_;
    FixedTable<ClientTransfer> client_transfers_;
    ServerMessages messages_;
    std::size_t messages_place_ = 0;      // among the open sessions
    std::vector<CreditDue> credits_due_;  // of the burst under way
    roce::StallWatch stalls_{kOwnStall};
    std::unique_ptr<PacerWheel> wheel_;       // nullptr: no congestion control
    std::vector<std::uint32_t> stall_queue_;  // sessions with stalled slots, oldest first
    ServerSessions server_sessions_;
    std::size_t scan_place_ = 0;  // among the open sessions
};

}  // namespace cairn::erpc
