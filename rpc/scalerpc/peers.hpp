// The parts of an endpoint's sessions: memory, keys and queue pairs.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "rpc/linked/links.hpp"
#include "rpc/scalerpc/client.hpp"
#include "rpc/scalerpc/slices.hpp"

namespace cairn::scalerpc {

// Returns the sizes of the queues of a session's queue pair.
[[nodiscard]] verbs::QpCapacity qp_capacity(const EndpointConfig& config) noexcept;
// Returns the memory that a session of connect() takes from the pool.
[[nodiscard]] std::uint32_t memory_of_caller(const EndpointConfig& config) noexcept;
// Return the memory of an idle session without that of the pool: of a client that connected, and of a session of
// connect(). Tables of the engine and of the connection manager come on top.
[[nodiscard]] std::size_t bytes_of_guest(const EndpointConfig& config) noexcept;
[[nodiscard]] std::size_t bytes_of_caller(const EndpointConfig& config) noexcept;

class Peers final : public rpc::LinkOwner {
public:
    // All references outlive the object.
    Peers(const EndpointConfig& config, verbs::Device& device, rpc::MsgPool& pool, Sessions& sessions, Client& client,
          Server& server, Slices& slices);
    // Makes the completion queues. Errors: the device has no room.
    Status open();

    [[nodiscard]] verbs::Cq& sends() noexcept { return *sends_; }
    // Returns the protection domain of all clients' queue pairs. Their windows lie in common memory.
    [[nodiscard]] verbs::Pd& guests_pd() noexcept { return *guests_pd_; }

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
    Status give_caller_memory(Session& session);

    const EndpointConfig& config_;
    verbs::Device& device_;
    rpc::MsgPool& pool_;
    Sessions& sessions_;
    Client& client_;
    Server& server_;
    Slices& slices_;
    std::unique_ptr<verbs::Pd> guests_pd_;
    std::unique_ptr<verbs::Cq> sends_;
    std::unique_ptr<verbs::Cq> receives_;
    RawHello hello_{};          // the value that hello_of() returns
    std::uint32_t guests_ = 0;  // number of clients' sessions made so far
};

}  // namespace cairn::scalerpc
