// The parts of an endpoint's sessions: rings, keys and queue pairs.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "rpc/copyrpc/client.hpp"
#include "rpc/copyrpc/one_sided.hpp"
#include "rpc/copyrpc/queues.hpp"
#include "rpc/copyrpc/server.hpp"
#include "rpc/copyrpc/sessions.hpp"
#include "rpc/linked/links.hpp"

namespace cairn::copyrpc {

// Returns the sizes of the queues of a session's queue pair. In the send queue, long messages take at most half and
// one-sided operations an eighth. Batches take the rest.
[[nodiscard]] verbs::QpCapacity qp_capacity(const EndpointConfig& config) noexcept;
// Returns the memory of an idle session: both rings, and its queue pair with its slots. Memory that the endpoint shares
// among sessions is not counted.
[[nodiscard]] std::size_t bytes_of_session(const EndpointConfig& config) noexcept;

class Peers final : public rpc::LinkOwner {
public:
    static constexpr std::uint32_t kWordBytes = 2 * sizeof(RawConsumerWord);  // per session, with Flow::Read

    // All references outlive the object.
    Peers(const EndpointConfig& config, verbs::Device& device, Queues& queues, rpc::MsgPool& pool, Sessions& sessions,
          Client& client, Server& server, OneSided& one_sided) noexcept
        : config_(config),
          device_(device),
          queues_(queues),
          pool_(pool),
          sessions_(sessions),
          client_(client),
          server_(server),
          one_sided_(one_sided) {}

    // Notes that a batch of the session came. The connector may report later that the connection is established.
    // Returns true if the session's rings exist, so that the batch can be read.
    [[nodiscard]] bool meet(Session& session);

private:
    Result<rpc::LinkedSession*> make(bool ours) override;
    std::span<const std::uint8_t> hello_of(const rpc::LinkedSession& linked) override;
    bool welcomes(const cm::PrivateBytes& said) override;
    bool greet(rpc::LinkedSession& linked, const cm::PrivateBytes& said) override;
    bool open(rpc::LinkedSession& linked, Instant now) override;
    void stop(rpc::LinkedSession& linked, CallStatus status, Instant now) override;
    void remove(rpc::LinkedSession& linked) override;
    void name(rpc::LinkedSession& session) override { sessions_.name(of(session), session.connection); }
    rpc::LinkedSession* of_connection(verbs::ConnectionId id) override { return sessions_.of_connection(id); }
    rpc::LinkedSession* find(SessionId id) override { return sessions_.find(id); }
    void for_each(const std::function<void(rpc::LinkedSession&)>& run) override { sessions_.for_each(run); }
    void list(rpc::LinkedSession& session) override { sessions_.list(of(session)); }

    [[nodiscard]] static Session& of(rpc::LinkedSession& session) noexcept { return static_cast<Session&>(session); }
    [[nodiscard]] Status give_memory(verbs::Pd& pd, rpc::MsgBuffer& memory, std::unique_ptr<verbs::Mr>& region,
                                     std::uint32_t bytes, verbs::Rights rights);
    [[nodiscard]] Status open_rings(Session& session);
    [[nodiscard]] Status give_word(Session& session);

    const EndpointConfig& config_;
    verbs::Device& device_;
    Queues& queues_;
    rpc::MsgPool& pool_;
    Sessions& sessions_;
    Client& client_;
    Server& server_;
    OneSided& one_sided_;
    RawHello hello_{};  // the value that hello_of() returns
};

}  // namespace cairn::copyrpc
