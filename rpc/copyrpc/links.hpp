// The connections of an endpoint: their memory, how they come about and how they end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/verbs/connector.hpp"
#include "rpc/copyrpc/client.hpp"
#include "rpc/copyrpc/queues.hpp"
#include "rpc/copyrpc/server.hpp"
#include "rpc/copyrpc/session_table.hpp"

namespace cairn::copyrpc {

class Links {
public:
    Links(const EndpointConfig& config, verbs::Device& device, connections::Home& home, Queues& queues,
          rpc::MsgPool& pool, SessionTable& sessions, Client& client, Server& server, Statistics& statistics);
    ~Links();
    Links(const Links&) = delete;
    Links& operator=(const Links&) = delete;

    void set_callback(SessionCallback callback, void* context) noexcept {
        callback_ = callback;
        context_ = context;
    }
    Status listen(std::uint16_t port);
    Result<SessionId> connect(const net::IpAddress& remote, std::uint16_t port, Instant now);
    // Ends a session; its calls fail with Disconnected.
    void end(Session& session, Instant now);
    // Ends a session whose peer broke a rule.
    void on_breach(Session& session, Breach breach, Instant now);
    // Ends a session whose queue pair failed.
    void on_lost(Session& session, Instant now);
    // A batch of the session came, maybe before the connector tells that it is established. Returns true if its rings
    // are there to read it.
    [[nodiscard]] bool meet(Session& session);
    // Handles what the connector says. Returns true if that was something. `serves`: peers may connect.
    bool poll_events(bool serves, Instant now);

private:
    [[nodiscard]] Result<Session*> make();
    [[nodiscard]] Status give_memory(verbs::Pd& pd, rpc::MsgBuffer& memory, std::unique_ptr<verbs::Mr>& region,
                                     std::uint32_t bytes, verbs::Rights rights);
    [[nodiscard]] Status open_rings(Session& session, const Hello& peer);
    void remove(Session& session);
    [[nodiscard]] Hello hello_of(const Session& session) const noexcept;
    bool displace(Instant now);
    bool admit(const cm::Requested& requested, const Hello& peer, Instant now);
    void on_requested(const cm::Requested& requested, bool serves, Instant now);
    void on_established(const cm::Established& established, Instant now);
    void on_ended(verbs::ConnectionId id, SessionEvent event);
    void stop(Session& session, CallStatus status);
    void hang_up(Session& session, Instant now);
    void remove_left();
    void tell(const Session& session, SessionEvent event) const;

    const EndpointConfig& config_;
    verbs::Device& device_;
    verbs::Connector connector_;
    Queues& queues_;
    rpc::MsgPool& pool_;
    SessionTable& sessions_;
    Client& client_;
    Server& server_;
    Statistics& statistics_;
    std::vector<SessionId> left_;  // sessions without a connection, to be removed
    SessionCallback callback_ = nullptr;
    void* context_ = nullptr;
};

}  // namespace cairn::copyrpc
