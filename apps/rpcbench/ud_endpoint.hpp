// Calls over unreliable datagrams, as FaSST makes them: one queue pair for all peers, a SEND for the request and one
// for the answer. The benchmark compares other systems with it, so it does no more than that. Packets are not sent
// again, so a lost datagram costs its call. A message is one datagram. Handlers answer at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "apps/rpcbench/ud_sessions.hpp"
#include "rpc/common/call_table.hpp"
#include "rpc/common/request.hpp"

namespace cairn::rpcbench {

// An endpoint, which is a tenant of the device's worker.
class UdEndpoint final : public rpc::RequestTypes<UdEndpoint>, private rpc::RequestKeeper, private worker::Tenant {
public:
    // Makes an endpoint. Device, connections and pool outlive it. Errors: no datagram carries a message of that length;
    // no memory.
    static Result<std::unique_ptr<UdEndpoint>> create(const UdConfig& config, verbs::Device& device,
                                                      connections::Home& home, rpc::MsgPool& pool);
    ~UdEndpoint();
    UdEndpoint(const UdEndpoint&) = delete;
    UdEndpoint& operator=(const UdEndpoint&) = delete;

    // Answers hosts that ask for the port with the number of the queue pair. Errors: the port is taken.
    Status listen(std::uint16_t port) { return sessions_.listen(port); }
    void set_session_callback(UdCallback callback, void* context) noexcept {
        sessions_.set_callback(callback, context);
    }
    // Starts a session. All are with one peer. Errors: all are in use; the address is no host's.
    Result<SessionId> connect(const net::IpAddress& remote, std::uint16_t port, Instant now) {
        return sessions_.connect(remote, port, now);
    }
    void disconnect(SessionId id, Instant) noexcept { sessions_.disconnect(id.number()); }

    // Posts a call. It fails with DeadlinePassed if no answer comes within the peer's timeout, since a datagram was
    // lost.
    rpc::Posted post(SessionId session, const rpc::Call& call, Instant now) noexcept;
    // These are for a handler, and its own request alone. The room is all 0. They return no room, or false, if the
    // handle is of another request, or no datagram is long enough.
    [[nodiscard]] std::span<std::uint8_t> reserve(const rpc::RequestHandle& handle, std::uint32_t bytes) noexcept;
    bool respond(const rpc::RequestHandle& handle, Instant now) noexcept;
    bool answer(const rpc::RequestHandle& handle, std::span<const std::uint8_t> message, Instant now) noexcept;

    [[nodiscard]] const UdStatistics& statistics() const noexcept { return statistics_; }
    [[nodiscard]] std::size_t sessions_open() const noexcept { return sessions_.count(); }
    [[nodiscard]] std::uint32_t calls_pending() const noexcept { return calls_.pending(); }
    [[nodiscard]] std::size_t memory_bytes() const noexcept { return road_->memory_bytes(); }

private:
    UdEndpoint(const UdConfig& config, verbs::Device& device, connections::Home& home, std::unique_ptr<UdRoad> road);
    // Does nothing: a request is answered by its handler, or refused when that returns.
    void keep(const rpc::RequestHandle&) noexcept override {}
    bool drop(const rpc::RequestHandle&) noexcept override { return false; }
    bool decline(const rpc::RequestHandle&) noexcept override { return false; }
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override { return waits_ ? Instant{} : next_look_; }
    void look(Instant now) noexcept;
    void on_message(const UdArrival& arrival, Instant now) noexcept;
    void on_request(const UdArrival& arrival, Instant now) noexcept;
    void on_answer(const UdArrival& arrival, Instant now) noexcept;
    [[nodiscard]] bool is_handled(const rpc::RequestHandle& handle) const noexcept {
        return handled_ && handled_->session == handle.session && handled_->request_number == handle.request_number;
    }
    [[nodiscard]] std::span<std::uint8_t> room_for(const rpc::RequestHandle& handle, std::size_t bytes) noexcept;
    void send_backlog() noexcept;
    void end_late_calls(Instant now) noexcept;

    worker::Worker& worker_;
    const UdConfig config_;
    UdStatistics statistics_;
    std::unique_ptr<UdRoad> road_;
    UdSessions sessions_;
    rpc::CallTable calls_;
    rpc::Backlog backlog_{};
    std::vector<Instant> posted_;                  // of calls, by index; never(): none is under way
    std::optional<rpc::RequestHandle> handled_{};  // the request of the running handler
    std::uint32_t reserved_bytes_ = 0;
    std::uint32_t under_way_ = 0;  // requests that were sent
    bool waits_ = false;           // messages wait unread, since there is no room for answers
    Instant next_look_{};
    worker::Tenancy tenancy_;
    const telemetry::Registration registration_;
};

}  // namespace cairn::rpcbench
