// eRPC endpoint: sessions, calls and request handlers over one UD queue pair (Kalia et al., "Datacenter RPCs
// can be General and Fast", NSDI 2019). Client-driven: a server only answers. One thread drives it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/base/result.hpp"
#include "lib/worker/worker.hpp"
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

class Endpoint final : public roce::UdReceiver, public rpc::RequestTypes<Endpoint>, private worker::Tenant {
public:
    // Both outlive the endpoint. Errors: those of UdMux::create_qp, or limits out of range.
    static Result<std::unique_ptr<Endpoint>> create(const EndpointConfig& config, worker::Worker& worker,
                                                    rpc::MsgPool& pool);
    ~Endpoint() override;
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    void set_session_callback(SessionCallback callback, void* context) noexcept {
        control_.set_callback(callback, context);
    }
    // Starts a session; the callback tells how it went. Calls may be posted at once: they wait.
    Result<SessionId> connect(const roce::UdAddress& peer, Instant now) { return control_.connect(peer, now); }
    // Ends a client session: pending calls fail with Disconnected. Unknown sessions are left alone.
    void disconnect(SessionId id, Instant now) noexcept { control_.disconnect(id, now); }

    // Never completes a call itself.
    Posted post(SessionId session, const Call& call, Instant now) noexcept;
    // The completion runs with Cancelled before this returns. False: there is no such call, or it has ended.
    bool cancel(CallId id, Instant now) noexcept { return client_.cancel(id, now); }

    // Room for a response of `bytes`. Empty when it is longer than max_message_bytes(), the pool is empty, or the
    // handle is stale. respond() sends what was written there. A handler without room answers later, or refuses: the
    // call then fails with AnswerLost.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept {
        return server_.reserve(handle, bytes);
    }
    bool respond(const RequestHandle& handle, Instant now) noexcept { return server_.respond(handle, now); }
    // Answers with a copy of `message`, which may be (of) the request, but not what reserve() gave: reserve() and
    // respond() in one. False: the answer is too long, there is no room for it, or the handle is stale.
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> message, Instant now) noexcept {
        return server_.answer(handle, message, now);
    }
    bool refuse(const RequestHandle& handle, Instant now) noexcept { return server_.refuse(handle, now); }

    // Keeps a histogram of the latencies (ns) of the calls of this type that succeed from now on. Allocates it.
    void keep_latency(std::uint8_t type) { client_.calls().keep_latency(type); }
    // nullptr: it is not kept.
    [[nodiscard]] const telemetry::Histogram* latency_ns(std::uint8_t type) const noexcept {
        return client_.calls().latency_ns(type);
    }

    void on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept override;
    [[nodiscard]] std::size_t take_known(std::span<port::PacketRef> burst, Instant now) noexcept override;
    // Timers: retransmission, deadlines, pings, dead peers. Harmless when early. `now` never goes back: SteadyTime.
    void on_timeout(Instant now) noexcept;
    [[nodiscard]] Instant next_deadline() const noexcept override;

    [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
    [[nodiscard]] Qpn qpn() const noexcept { return config_.qp.qpn; }
    [[nodiscard]] std::uint32_t max_message_bytes() const noexcept { return config_.max_message_bytes; }
    [[nodiscard]] std::size_t sessions_open() const noexcept { return sessions_.open_count(); }
    [[nodiscard]] std::uint32_t calls_pending() const noexcept { return client_.calls().pending(); }
    // Asserts what must hold between any two events: credits, slots, lists.
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
    std::size_t messages_place_ = 0;  // among the open sessions
};

}  // namespace cairn::erpc
