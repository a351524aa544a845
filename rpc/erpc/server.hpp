// The server's side of calls. It executes each request number at most once, and keeps answers to send them again.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "rpc/common/request_types.hpp"
#include "rpc/erpc/arrival.hpp"
#include "rpc/erpc/own_pauses.hpp"
#include "rpc/erpc/packet_writer.hpp"
#include "rpc/erpc/server_jobs.hpp"
#include "rpc/erpc/server_messages.hpp"
#include "rpc/erpc/server_transfers.hpp"
#include "rpc/erpc/session_table.hpp"

namespace cairn::erpc {

class Endpoint;
using HandlerTable = std::array<rpc::RequestTypes<Endpoint>::Entry, rpc::kRequestTypes>;

// Returns why a slot's last request gets no answer.
[[nodiscard]] inline RefuseReason why_unanswered(const ServerSlot& slot) noexcept {
    return slot.state == ServerSlotState::Declined ? RefuseReason::NotExecuted : RefuseReason::AnswerLost;
}

class Server final : public rpc::RequestKeeper {
public:
    // The arguments outlive the server. `endpoint`: passed to handlers.
    Server(Endpoint& endpoint, const HandlerTable& handlers, const EndpointConfig& config, PacketWriter& writer,
           SessionTable& sessions, ServerMessages& messages, rpc::MsgPool& pool, const OwnPauses& pauses,
           Statistics& statistics);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    void on_request(const Arrival& arrival) noexcept;
    // Takes a request on the short path. Returns false if the packet must take the long path.
    [[nodiscard]] bool take_known(const SmallPacket& small, Instant now) noexcept;
    [[nodiscard]] ServerTransfers& transfers() noexcept { return transfers_; }
    [[nodiscard]] ServerJobs& jobs() noexcept { return jobs_; }
    [[nodiscard]] const ServerJobs& jobs() const noexcept { return jobs_; }

    // Endpoint's functions with the same names describe these.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept;
    bool respond(const RequestHandle& handle, Instant now) noexcept;
    bool refuse(const RequestHandle& handle, Instant now) noexcept;
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> message, Instant now) noexcept;

    void keep(const RequestHandle& request) noexcept override;
    bool drop(const RequestHandle& request) noexcept override;
    bool decline(const RequestHandle& request) noexcept override;
    // Returns how many requests handlers declined while they ran, since the last time.
    [[nodiscard]] std::uint64_t take_declined() noexcept { return std::exchange(declined_, 0); }

    // Releases the session's memory. A handler of this session may be running.
    void end_session(Session& session) noexcept;

private:
    friend class ServerTransfers;
    friend class ServerJobs;
    void execute(const Arrival& arrival, ServerSlot& slot) noexcept;
    void run_handler(Session& session, ServerSlot& slot, port::PacketRef* packet, std::span<const std::uint8_t> payload,
                     Instant now) noexcept;
    void send_answer(Session& session, ServerSlot& slot, AnswerPacket which, port::PacketRef* request,
                     Instant now) noexcept;
    void send_response(Session& session, const ServerSlot& slot, const port::PacketRef& buffer, std::uint32_t index,
                       Instant now) noexcept;
    // True if `handle` names the request whose handler runs, and the request has no answer yet.
    [[nodiscard]] bool is_running(const RequestHandle& handle) const noexcept {
        return reply_slot_ != nullptr && reply_session_->self == handle.session &&
               reply_slot_->request_number == handle.request_number;
    }
    // True if the slot of the running request has memory for `bytes`.
    [[nodiscard]] bool has_room_for(std::size_t bytes) const noexcept {
        return bytes != 0 && bytes <= reply_slot_->response.capacity;
    }
    void respond_running(Session& session, ServerSlot& slot, std::span<const std::uint8_t> message,
                         Instant now) noexcept;
    [[nodiscard]] ServerSlot* executing_slot(const RequestHandle& handle) noexcept;
    [[nodiscard]] ServerSlot* slot_of_earlier(const RequestHandle& handle) noexcept;
    [[nodiscard]] ServerSlot* slot_with_room(const RequestHandle& handle, std::uint32_t bytes) noexcept;
    [[nodiscard]] std::span<std::uint8_t> reserve_slowly(const RequestHandle& handle, std::uint32_t bytes) noexcept;
    bool answer_slowly(const RequestHandle& handle, std::span<const std::uint8_t> message, Instant now) noexcept;
    void send_first_time(Session& session, ServerSlot& slot, port::PacketRef* request, Instant now) noexcept;
    bool respond_late(const RequestHandle& handle, Instant now) noexcept;

    Endpoint& endpoint_;
    const HandlerTable& handlers_;
    std::uint32_t max_message_bytes_;
    PacketWriter& writer_;
    SessionTable& sessions_;
    ServerMessages& messages_;
    rpc::MsgPool& pool_;
    const OwnPauses& pauses_;
    Statistics& statistics_;
    port::PacketRef* reply_buffer_ = nullptr;  // packet of the request whose handler runs
    ServerSlot* reply_slot_ = nullptr;         // nullptr: no handler runs, or it has answered
    Session* reply_session_ = nullptr;
    std::uint64_t declined_ = 0;  // by handlers that ran; such requests are not counted as handled
    ServerJobs jobs_;
    ServerTransfers transfers_;
};

// Inlined: a call of its own would cost a small request 30 instructions.
[[gnu::always_inline]] inline void Server::run_handler(Session& session, ServerSlot& slot, port::PacketRef* packet,
                                                       std::span<const std::uint8_t> payload, Instant now) noexcept {
    const auto& handler = handlers_[slot.request_type];
    slot.state = ServerSlotState::Executing;
    slot.newest_rfr = 0;
    reply_buffer_ = packet;
    reply_slot_ = &slot;
    reply_session_ = &session;
    handler.function(handler.context,
                     {endpoint_, *this, {session.self, slot.request_number}, slot.request_type, payload, now});
    if (reply_slot_ != nullptr) [[unlikely]] {  // the handler has neither answered nor kept it
        (void)refuse({reply_session_->self, reply_slot_->request_number}, now);
    }
}

}  // namespace cairn::erpc
