// ScaleRPC endpoint: sessions, calls and request handlers over reliable connections. Clients take turns, by groups, in
// blocks that all groups share. Source: Chen, Lu, Shu: Scalable RDMA RPC on Reliable Connection with Efficient Resource
// Sharing, EuroSys 2019. One thread uses an endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/base/result.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/common/callback_guard.hpp"
#include "rpc/common/coroutine.hpp"
#include "rpc/linked/probes.hpp"
#include "rpc/scalerpc/peers.hpp"

namespace cairn::scalerpc {

using Handler = rpc::Handler<Endpoint>;
using RequestOf = rpc::Request<Endpoint>;
using SessionEvent = rpc::LinkEvent;

// A tenant of the device's worker. Its counters are among the worker's. A session's messages leave at the end of the
// worker's turn.
class Endpoint final : public rpc::RequestTypes<Endpoint>, private worker::Tenant {
public:
    // Makes an endpoint. Device, connections and pool outlive it. Errors: limits out of range; no memory; the device
    // has no room.
    static Result<std::unique_ptr<Endpoint>> create(const EndpointConfig& config, verbs::Device& device,
                                                    connections::Home& home, rpc::MsgPool& pool);
    // Returns the memory that an endpoint takes from its pool at once. Each session that it begins takes
    // memory_of_caller().
    [[nodiscard]] static std::size_t memory_for(const EndpointConfig& config) noexcept;
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
    // Sets a handler for times in which half of a type's last eight requests took longer than a slice. Then it executes
    // the type's requests on the endpoint's BackgroundPool, for a second, or longer while they still do. The type has
    // its other handler by set_handler(). Errors: as of set_background_handler().
    Status set_legacy_handler(std::uint8_t type, rpc::BackgroundHandler handler, void* context,
                              std::uint32_t response_bytes_max) {
        const Status has_threads = judge_background(type, handler);
        const Status fits = has_threads.ok() ? answer_limit().judge(type, response_bytes_max) : has_threads;
        if (fits.ok()) {
            server_.legacy().set(type, handler, context, response_bytes_max);
        }
        return fits;
    }
    // Starts a session. The callback gets the outcome. Calls may be posted at once; they wait for the session. Errors:
    // all sessions are in use; no memory; the peer has no path.
    Result<SessionId> connect(const net::IpAddress& remote, std::uint16_t port, Instant now) {
        return links_->connect(remote, port, now);
    }
    // Ends a session. Its pending calls fail with Disconnected. Does nothing for an unknown session.
    void disconnect(SessionId id, Instant now) noexcept;

    // Posts a call over a session that connect() began. Its completion never runs before post() returns. The call waits
    // if its session connects, or has as many calls under way as blocks. Returns TooLong if it fits no block.
    Posted post(SessionId session, const Call& call, Instant now) noexcept;
    // Cancels a call. Its completion runs with Cancelled before cancel() returns. Returns false if there is no such
    // call or it has ended. Its block stays in use until the answer comes.
    bool cancel(CallId id, Instant now) noexcept {
        const auto inside = guard_.enter();
        return client_.cancel(id, now);
    }

    // Returns room for a response of `bytes`, all 0. Returns no room if the pool is empty, the response would be longer
    // than any block, or the handle is stale. respond() sends what was written there. If the response does not fit the
    // caller's block, the call ends with ResponseTooLong.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept {
        return server_.reserve(handle, bytes);
    }
    bool respond(const RequestHandle& handle, Instant) noexcept { return server_.respond(handle); }
    // Answers with a copy of `message`, which may be part of the request. Returns false if the handle is stale.
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> message, Instant) noexcept {
        return server_.answer(handle, message);
    }
    bool refuse(const RequestHandle& handle, Instant) noexcept { return server_.drop(handle); }

    // Allocates a histogram. It takes the latencies (ns) of calls of this type that succeed from now on.
    void keep_latency(std::uint8_t type) { client_.calls().keep_latency(type); }
    // Returns the histogram, or nullptr if none is kept for this type.
    [[nodiscard]] const telemetry::Histogram* latency_ns(std::uint8_t type) const noexcept {
        return client_.calls().latency_ns(type);
    }

    [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
    [[nodiscard]] std::size_t sessions_open() const noexcept { return sessions_.count(); }
    [[nodiscard]] std::uint32_t calls_pending() const noexcept { return client_.calls().pending(); }
    [[nodiscard]] const Server& server() const noexcept { return server_; }
    [[nodiscard]] const Slices& slices() const noexcept { return slices_; }

private:
    Endpoint(const EndpointConfig& config, verbs::Device& device, rpc::MsgPool& pool);
    Status open(connections::Home& home);
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override;
    void take_completions(Instant now) noexcept;
    void take(const verbs::Completion& completion, Instant now) noexcept;
    void end_broken(Instant now) noexcept;
    void look_for_silent(Instant now) noexcept;
    bool flush(Instant now) noexcept;

    EndpointConfig config_;
    verbs::Device& device_;
    rpc::CallbackGuard guard_;
    rpc::MsgPool& pool_;
    Statistics statistics_;
    Sessions sessions_;
    Client client_;
    Server server_;
    Slices slices_;
    Peers peers_;
    rpc::Probes probes_;
    std::unique_ptr<rpc::Links> links_;
    Slices::Broken broken_;                     // sessions whose peers broke a rule in this turn
    Instant next_poll_{};                       // for jobs, if nothing wakes the worker
    std::array<verbs::Completion, 32> done_{};  // the completions that are being handled
    worker::Tenancy tenancy_;
    const telemetry::Registration registration_;
};

}  // namespace cairn::scalerpc
