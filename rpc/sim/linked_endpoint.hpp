// The interface of endpoints over reliable connections for the users of a simulated world.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "lib/base/result.hpp"
#include "rpc/common/call.hpp"
#include "rpc/common/request.hpp"
#include "rpc/linked/links.hpp"

namespace cairn::sim {

struct LinkedRequest {
    rpc::RequestKeeper& keeper;
    rpc::RequestHandle handle{};
    std::uint8_t type = 0;
    std::span<const std::uint8_t> payload{};

    [[nodiscard]] rpc::KeptRequest keep() const noexcept {
        keeper.keep(handle);
        return {keeper, handle};
    }
};
using LinkedHandler = void (*)(void* context, const LinkedRequest& request);

// The functions are those of the endpoints of rpc/copyrpc and rpc/scalerpc.
class LinkedEndpoint {
public:
    LinkedEndpoint() = default;
    LinkedEndpoint(const LinkedEndpoint&) = delete;
    LinkedEndpoint& operator=(const LinkedEndpoint&) = delete;
    virtual ~LinkedEndpoint() = default;

    virtual Status listen(std::uint16_t port) = 0;
    // Sets the callbacks. All handlers get `context`.
    virtual void set_callbacks(rpc::LinkCallback on_event, LinkedHandler handler, void* context) = 0;
    // Sends requests of this type to the handler.
    virtual void serve(std::uint8_t type) = 0;
    virtual Result<SessionId> connect(const net::IpAddress& remote, std::uint16_t port, Instant now) = 0;
    virtual void disconnect(SessionId id, Instant now) = 0;
    virtual rpc::Posted post(SessionId session, const rpc::Call& call, Instant now) = 0;
    virtual bool cancel(rpc::CallId id, Instant now) = 0;
    [[nodiscard]] virtual std::span<std::uint8_t> reserve(const rpc::RequestHandle& handle, std::uint32_t bytes) = 0;
    virtual bool respond(const rpc::RequestHandle& handle, Instant now) = 0;
    virtual bool answer(const rpc::RequestHandle& handle, std::span<const std::uint8_t> message, Instant now) = 0;
    virtual bool refuse(const rpc::RequestHandle& handle, Instant now) = 0;
    // Returns false if the handle is stale, or the system retains no payloads.
    virtual bool retain(const rpc::RequestHandle& handle) = 0;
    [[nodiscard]] virtual std::size_t sessions_open() const = 0;
    [[nodiscard]] virtual std::uint32_t calls_pending() const = 0;
    [[nodiscard]] virtual std::size_t requests_kept() const = 0;
    [[nodiscard]] virtual std::uint64_t breaches() const = 0;
};

template <class Endpoint>
class LinkedEndpointOf final : public LinkedEndpoint {
public:
    explicit LinkedEndpointOf(std::unique_ptr<Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}
    [[nodiscard]] Endpoint& own() noexcept { return *endpoint_; }

    Status listen(std::uint16_t port) override { return endpoint_->listen(port); }
    void set_callbacks(rpc::LinkCallback on_event, LinkedHandler handler, void* context) override {
        on_event_ = on_event;
        handler_ = handler;
        context_ = context;
        endpoint_->set_session_callback(
            [](void* self, SessionId id, auto event) {
                const auto& adapter = *static_cast<LinkedEndpointOf*>(self);
                adapter.on_event_(adapter.context_, id, static_cast<rpc::LinkEvent>(event));
            },
            this);
    }
    void serve(std::uint8_t type) override {
        endpoint_->set_handler(
            type,
            [](void* self, const rpc::Request<Endpoint>& request) {
                const auto& adapter = *static_cast<LinkedEndpointOf*>(self);
                adapter.handler_(adapter.context_, {request.keeper, request.handle, request.type, request.payload});
            },
            this);
    }
    Result<SessionId> connect(const net::IpAddress& remote, std::uint16_t port, Instant now) override {
        return endpoint_->connect(remote, port, now);
    }
    void disconnect(SessionId id, Instant now) override { endpoint_->disconnect(id, now); }
    rpc::Posted post(SessionId session, const rpc::Call& call, Instant now) override {
        return endpoint_->post(session, call, now);
    }
    bool cancel(rpc::CallId id, Instant now) override { return endpoint_->cancel(id, now); }
    std::span<std::uint8_t> reserve(const rpc::RequestHandle& handle, std::uint32_t bytes) override {
        return endpoint_->reserve(handle, bytes);
    }
    bool respond(const rpc::RequestHandle& handle, Instant now) override { return endpoint_->respond(handle, now); }
    bool answer(const rpc::RequestHandle& handle, std::span<const std::uint8_t> message, Instant now) override {
        return endpoint_->answer(handle, message, now);
    }
    bool refuse(const rpc::RequestHandle& handle, Instant now) override { return endpoint_->refuse(handle, now); }
    bool retain(const rpc::RequestHandle& handle) override {
        if constexpr (requires { endpoint_->retain(handle); }) {
            return endpoint_->retain(handle);
        }
        return false;
    }
    std::size_t sessions_open() const override { return endpoint_->sessions_open(); }
    std::uint32_t calls_pending() const override { return endpoint_->calls_pending(); }
    std::size_t requests_kept() const override {
        if constexpr (requires { endpoint_->requests_kept(); }) {
            return endpoint_->requests_kept();
        } else {
            return endpoint_->server().requests_kept();
        }
    }
    std::uint64_t breaches() const override { return endpoint_->statistics().breaches.snapshot().total(); }

private:
    std::unique_ptr<Endpoint> endpoint_;
    rpc::LinkCallback on_event_ = nullptr;
    LinkedHandler handler_ = nullptr;
    void* context_ = nullptr;
};

}  // namespace cairn::sim
