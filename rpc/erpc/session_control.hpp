// Opens, supervises and ends sessions. Nothing here is per call.
#pragma once

#include <cstdint>

#include "lib/base/result.hpp"
#include "rpc/erpc/client.hpp"
#include "rpc/erpc/secrets.hpp"
#include "rpc/erpc/server.hpp"
#include "rpc/erpc/server_sessions.hpp"
#include "rpc/erpc/session_states.hpp"

namespace cairn::erpc {

class SessionControl {
public:
    // The arguments outlive this object.
    SessionControl(const EndpointConfig& config, PacketWriter& writer, SessionTable& sessions, ServerMessages& messages,
                   Client& client, Server& server, Statistics& statistics);

    void set_callback(SessionCallback callback, void* context) noexcept;
    // The functions of Endpoint with the same names describe these.
    Result<SessionId> connect(const roce::UdAddress& peer, Instant now);
    void disconnect(SessionId id, Instant now) noexcept;

    // Takes a control packet. `serves`: the endpoint takes sessions of clients.
    void on_packet(const roce::UdDatagram& datagram, const Header& header, bool serves, Instant now) noexcept;
    // Pings peers and gives up on silent ones. `listening_from`: when our own worker began to listen.
    void scan(Instant listening_from, Instant now) noexcept;
    // Returns when scan() has something to do, or Instant::never() without sessions.
    [[nodiscard]] Instant next_scan() const noexcept {
        return sessions_.open_count() == 0 ? Instant::never() : next_scan_;
    }
    // Notifies all peers that the endpoint ends. The effort is bounded, and a peer may not get the message.
    void take_leave(Instant now) noexcept;

private:
    void on_connect(const roce::UdAddress& from, const Control& control, bool serves, Instant now) noexcept;
    void hear_client(const roce::UdAddress& from, const Control& control, Instant now) noexcept;
    void hear_server(const roce::UdAddress& from, const Control& control, Instant now) noexcept;
    void act(Session& session, ControlVerdict verdict, const Control& control, Instant now) noexcept;
    void on_challenge(Session& session, const Control& control, Instant now) noexcept;
    void establish(Session& session, const Control& control, Instant now) noexcept;
    [[nodiscard]] Session* open(const roce::UdAddress& peer, std::uint64_t token, Instant now);
    void end(Session& session, SessionEvent event, CallStatus status, Instant now,
             RefuseReason reason = RefuseReason::None) noexcept;
    void supervise(Session& session, Instant listening_from, Instant now) noexcept;
    void supervise_client(Session& session, Duration unheard, Instant now) noexcept;

    const EndpointConfig& config_;
    PacketWriter& writer_;
    SessionTable& sessions_;
    ServerMessages& messages_;
    Client& client_;
    Server& server_;
    Statistics& statistics_;
    Secrets secrets_;
    ServerSessions server_sessions_;
    Duration ping_interval_;
    Instant next_scan_{};
    std::size_t scan_place_ = 0;  // open sessions below this place come next
    SessionCallback callback_ = nullptr;
    void* context_ = nullptr;
};

}  // namespace cairn::erpc
