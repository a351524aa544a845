// eRPC endpoint: sessions, calls and request handlers over one UD queue pair (Kalia et al., "Datacenter RPCs
// can be General and Fast", NSDI 2019). Clients drive all traffic: a server only answers. One thread uses an endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/base/result.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/common/callback_guard.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/common/request_types.hpp"
#include "rpc/erpc/call.hpp"
#include "rpc/erpc/client.hpp"
#include "rpc/erpc/drops.hpp"
#include "rpc/erpc/endpoint_config.hpp"
#include "rpc/erpc/own_pauses.hpp"
#include "rpc/erpc/server.hpp"
#include "rpc/erpc/server_messages.hpp"
#include "rpc/erpc/session_control.hpp"

namespace cairn::erpc {

class Endpoint;
using Handler = rpc::Handler<Endpoint>;
using Request = rpc::Request<Endpoint>;

// A tenant of its worker. The endpoint's counters are among the worker's.
class Endpoint final : public roce::UdReceiver, public rpc::RequestTypes<Endpoint>, private worker::Tenant {
public:
    // Makes an endpoint. The worker and the pool outlive it. Errors: those of UdMux::create_qp; limits out of range.
    static Result<std::unique_ptr<Endpoint>> create(const EndpointConfig& config, worker::Worker& worker,
                                                    rpc::MsgPool& pool);
    // Completes the calls that wait for the endpoint's end; they can neither post nor connect. Not called within a
    // callback of the endpoint (asserted).
    ~Endpoint() override;
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    void set_session_callback(SessionCallback callback, void* context) noexcept {
        control_.set_callback(callback, context);
    }
    // Starts a session. The callback gets the outcome. Calls may be posted at once; they wait for the session. Errors:
    // the peer has no path; all sessions are in use.
    Result<SessionId> connect(const roce::UdAddress& peer, Instant now) { return control_.connect(peer, now); }
    // Ends a client session. Its pending calls fail with Disconnected. Does nothing for an unknown session.
    void disconnect(SessionId id, Instant now) noexcept {
        const auto inside = guard_.enter();
        control_.disconnect(id, now);
    }

    // Posts a call. Its completion never runs before post() returns.
    Posted post(SessionId session, const Call& call, Instant now) noexcept;
    // Cancels a call. Its completion runs with Cancelled before cancel() returns. Returns false if there is no such
    // call or it has ended.
    bool cancel(CallId id, Instant now) noexcept {
        const auto inside = guard_.enter();
        return client_.cancel(id, now);
    }

    // Returns room for a response of `bytes`, all 0. Returns no room if `bytes` exceeds max_message_bytes(), the pool
    // is empty, or the handle is stale. respond() sends what was written there. A handler without room answers later or
    // refuses. The call of a refused request fails with AnswerLost.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept {
        return server_.reserve(handle, bytes);
    }
    bool respond(const RequestHandle& handle, Instant now) noexcept { return server_.respond(handle, now); }
    // Answers with a copy of `message`: reserve() and respond() in one. `message` may be part of the request, but must
    // not lie in what reserve() gave. Returns false if the answer is too long, there is no room for it, or the handle
    // is stale.
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> message, Instant now) noexcept {
        return server_.answer(handle, message, now);
    }
    bool refuse(const RequestHandle& handle, Instant now) noexcept { return server_.refuse(handle, now); }

    // Allocates a histogram. It takes the latencies (ns) of calls of this type that succeed from now on.
    void keep_latency(std::uint8_t type) { client_.calls().keep_latency(type); }
    // Returns the histogram, or nullptr if none is kept for this type.
    [[nodiscard]] const telemetry::Histogram* latency_ns(std::uint8_t type) const noexcept {
        return client_.calls().latency_ns(type);
    }

    void on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept override;
    [[nodiscard]] std::size_t take_known(std::span<port::PacketRef> burst, Instant now) noexcept override;
    // Does what is due: retransmissions, deadlines, pings, dead peers. An early call is harmless. `now` must never go
    // back (see SteadyTime).
    void on_timeout(Instant now) noexcept;
    [[nodiscard]] Instant next_deadline() const noexcept override;

    [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
    [[nodiscard]] Qpn qpn() const noexcept { return config_.qp.qpn; }
    [[nodiscard]] std::uint32_t max_message_bytes() const noexcept { return config_.max_message_bytes; }
    [[nodiscard]] std::size_t sessions_open() const noexcept { return sessions_.open_count(); }
    [[nodiscard]] std::uint32_t calls_pending() const noexcept { return client_.calls().pending(); }
    // Asserts what must hold between any two events about credits, slots and lists.
    void check_invariants() const noexcept;

private:
    Endpoint(const EndpointConfig& config, worker::Worker& worker, rpc::MsgPool& pool);
    bool on_turn(Instant now) noexcept override;
    template <SessionState kState>
    [[nodiscard]] std::size_t take_run(std::span<port::PacketRef> burst, Instant now) noexcept;
    template <SessionState kState>
    [[nodiscard]] bool take(port::PacketRef& packet, Instant now) noexcept;
    [[nodiscard]] bool judge_look(const Session& session, const port::PacketRef& packet,
                                  FirstWord first) const noexcept;
    void on_data(const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept;
    void scan_messages(Instant now) noexcept;

    EndpointConfig config_;
    worker::Worker& worker_;
    rpc::CallbackGuard guard_;
    worker::Tenancy tenancy_;
    roce::UdEntry* qp_ = nullptr;
    Statistics statistics_;
    roce::KnownStart known_;
    PacketWriter writer_;
    SessionTable sessions_;
    ServerMessages messages_;
    Client client_;
    Server server_;
    SessionControl control_;
    Instant next_scan_{};
    OwnPauses pauses_;
    std::size_t messages_place_ = 0;  // the open session whose old messages were checked last
    const telemetry::Registration registration_;
};

}  // namespace cairn::erpc
