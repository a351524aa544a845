// copyrpc endpoint: sessions, calls and request handlers over rings of reliable connections. Requests and answers are
// WRITTEN into the rings with an immediate, many of them in one batch. One thread uses an endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "lib/base/result.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/common/callback_guard.hpp"
#include "rpc/common/coroutine.hpp"
#include "rpc/copyrpc/exchange.hpp"
#include "rpc/linked/probes.hpp"

namespace cairn::copyrpc {

using Handler = rpc::Handler<Endpoint>;
using Request = rpc::Request<Endpoint>;
using SessionEvent = rpc::LinkEvent;

// A tenant of the device's worker. Its counters are among the worker's. Calls and answers leave at the end of the
// worker's turn, those of a session in one batch.
class Endpoint final : public rpc::RequestTypes<Endpoint>, private worker::Tenant {
public:
    // Makes an endpoint. Device, connections and pool outlive it. Errors: limits out of range; the device has no room.
    static Result<std::unique_ptr<Endpoint>> create(const EndpointConfig& config, verbs::Device& device,
                                                    connections::Home& home, rpc::MsgPool& pool);
    // Completes the calls that wait for the endpoint's end; they can neither post nor connect. Not called within a
    // callback of the endpoint (asserted).
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    // Accepts connections to this port, if a handler is registered when they come. Errors: the port is taken.
    Status listen(std::uint16_t port) { return links_->listen(port); }
    void set_session_callback(rpc::LinkCallback callback, void* context) noexcept {
        links_->set_callback(callback, context);
    }
    // Sets a callback for sessions that peers began: see rpc::Links.
    void set_guest_callback(rpc::LinkCallback callback, void* context) noexcept {
        links_->set_guest_callback(callback, context);
    }
    // Starts a session. The callback gets the outcome. Calls may be posted at once; they wait for the session. Errors:
    // all sessions are in use; no memory for a ring; the peer has no path.
    Result<SessionId> connect(const net::IpAddress& remote, std::uint16_t port, Instant now) {
        return links_->connect(remote, port, now);
    }
    // Ends a session. Its pending calls fail with Disconnected. Does nothing for an unknown session.
    void disconnect(SessionId id, Instant now) noexcept;

    // Posts a call. Its completion never runs before post() returns. The call waits if its session connects, or has no
    // room for it. Returns TooLong if there can never be room.
    Posted post(SessionId session, const Call& call, Instant now) noexcept;
    // Posts a call only if its session has room for it at once. After RingFull or InsufficientCredit the room callback
    // runs when the caller should try again.
    Tried try_post(SessionId session, const Call& call, Instant now) noexcept;
    void set_room_callback(RoomCallback callback, void* context) noexcept {
        client_.set_room_callback(callback, context);
    }
    // Cancels a call. Its completion runs with Cancelled before cancel() returns. Returns false if there is no such
    // call or it has ended.
    bool cancel(CallId id, Instant now) noexcept {
        const auto inside = guard_.enter();
        return client_.cancel(id, now);
    }

    // Returns room for a response of `bytes`, all 0. Returns no room if the pool is empty, the response would be longer
    // than any ring, or the handle is stale. respond() sends what was written there. If the caller has no room for the
    // response, its call ends with ResponseTooLong.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept {
        return server_.reserve(handle, bytes);
    }
    bool respond(const RequestHandle& handle, Instant) noexcept { return server_.respond(handle); }
    // Answers with a copy of `message`, which may be part of the request. Returns false if the handle is stale.
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> message, Instant) noexcept {
        return server_.answer(handle, message);
    }
    bool refuse(const RequestHandle& handle, Instant) noexcept { return server_.drop(handle); }
    // Keeps the payload of a request valid until the answer, in the ring and without a copy. For a handler that keeps
    // its request. Meanwhile the session's caller cannot write to these blocks, nor to later ones: it stops once its
    // ring is used up. Returns false if the handle is stale.
    [[nodiscard]] bool retain(const RequestHandle& handle) noexcept { return server_.retain(handle); }

    // Returns the READs and WRITEs of memory that the ends of a session open to each other.
    [[nodiscard]] OneSided& one_sided() noexcept { return one_sided_; }

    // Allocates a histogram. It takes the latencies (ns) of calls of this type that succeed from now on.
    void keep_latency(std::uint8_t type) { client_.calls().keep_latency(type); }
    // Returns the histogram, or nullptr if none is kept for this type.
    [[nodiscard]] const telemetry::Histogram* latency_ns(std::uint8_t type) const noexcept {
        return client_.calls().latency_ns(type);
    }

    [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
    [[nodiscard]] std::size_t sessions_open() const noexcept { return sessions_.count(); }
    [[nodiscard]] std::uint32_t calls_pending() const noexcept { return client_.calls().pending(); }
    [[nodiscard]] std::size_t requests_kept() const noexcept { return server_.requests_kept(); }

private:
    Endpoint(const EndpointConfig& config, verbs::Device& device, rpc::MsgPool& pool);
    Status open(connections::Home& home);
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override;
    void look_for_silent(Instant now) noexcept;

    EndpointConfig config_;
    verbs::Device& device_;
    rpc::CallbackGuard guard_;
    Statistics statistics_;
    Sessions sessions_;
    Client client_;
    Server server_;
    OneSided one_sided_;
    Queues queues_;
    Peers peers_;
    rpc::Probes probes_;
    std::unique_ptr<rpc::Links> links_;
    std::optional<Exchange> exchange_;
    Instant next_poll_{};  // for jobs, if nothing wakes the worker
    worker::Tenancy tenancy_;
    const telemetry::Registration registration_;
};

}  // namespace cairn::copyrpc
