// The differences between RPC systems for a program: how it makes, announces and finds an endpoint.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "lib/base/secret.hpp"
#include "lib/connections/home.hpp"
#include "lib/net/address.hpp"
#include "lib/verbs/device.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/copyrpc/endpoint.hpp"
#include "rpc/erpc/directory.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/scalerpc/endpoint.hpp"

namespace cairn::counters {

// The objects that an endpoint uses. They outlive it.
struct Ground {
    worker::Worker& worker;
    connections::Home& home;
    rpc::MsgPool& pool;
    std::uint16_t path_mtu_bytes;
};

// Makes endpoints over datagrams. A directory names the queue pair of the service.
class ErpcHost {
public:
    using Endpoint = erpc::Endpoint;

    static Result<std::unique_ptr<ErpcHost>> create(const Ground& ground) {
        erpc::EndpointConfig config;
        config.qp = {.qpn = kOffer.qpn, .qkey = kOffer.qkey, .path_mtu_bytes = ground.path_mtu_bytes};
        config.seed = draw_secret();
        auto made = Endpoint::create(config, ground.worker, ground.pool);
        return made.ok() ? Result(std::make_unique<ErpcHost>(ground, std::move(made).value())) : made.error();
    }
    ErpcHost(const Ground& ground, std::unique_ptr<Endpoint> endpoint)
        : ground_(ground), directory_(ground.home), endpoint_(std::move(endpoint)) {}

    [[nodiscard]] Endpoint& endpoint() noexcept { return *endpoint_; }
    Status listen(std::uint16_t service) { return directory_.serve(service, kOffer); }
    Status look_for(const net::IpAddress& server, std::uint16_t service, Instant now) {
        server_ = server;
        return directory_.ask(server, service, now);
    }
    // Returns the session, or why there is none, once that is known.
    [[nodiscard]] std::optional<Result<SessionId>> poll_session(Instant now) {
        const std::optional<erpc::ServiceAnswer> answer = directory_.poll_answer();
        if (!answer) {
            return std::nullopt;
        }
        if (answer->outcome != erpc::ServiceAnswer::Outcome::Found) {
            return Error{erpc::text_of(answer->outcome), "start the server first, with this --system and --service"};
        }
        port::Port& port = ground_.worker.port();
        roce::UdAddress peer;
        peer.path = port.open_path({port.local_address(), server_, port::kFirstUdpSourcePort, 0}, now);
        peer.qpn = answer->offer.qpn;
        peer.qkey = answer->offer.qkey;
        return endpoint_->connect(peer, now);
    }

private:
    static constexpr erpc::ServiceOffer kOffer{Qpn{0x1000}, Qkey{0x0205}};

    Ground ground_;
    net::IpAddress server_{};
    erpc::Directory directory_;
    std::unique_ptr<Endpoint> endpoint_;
};

// Makes endpoints over reliable connections to a port.
template <class System, class Config>
class LinkedHost {
public:
    using Endpoint = System;

    static Result<std::unique_ptr<LinkedHost>> create(const Ground& ground) {
        Config config;
        config.path_mtu_bytes = ground.path_mtu_bytes;
        auto device = std::make_unique<verbs::Device>(ground.worker);
        auto made = Endpoint::create(config, *device, ground.home, ground.pool);
        return made.ok() ? Result(std::make_unique<LinkedHost>(std::move(device), std::move(made).value()))
                         : made.error();
    }
    LinkedHost(std::unique_ptr<verbs::Device> device, std::unique_ptr<Endpoint> endpoint)
        : device_(std::move(device)), endpoint_(std::move(endpoint)) {}

    [[nodiscard]] Endpoint& endpoint() noexcept { return *endpoint_; }
    Status listen(std::uint16_t service) { return endpoint_->listen(service); }
    Status look_for(const net::IpAddress& server, std::uint16_t service, Instant now) {
        const Result<SessionId> session = endpoint_->connect(server, service, now);
        if (!session.ok()) {
            return session.error();
        }
        session_ = session.value();
        return Nothing{};
    }
    // Returns the session, which may still be opening. Calls wait for it.
    [[nodiscard]] std::optional<Result<SessionId>> poll_session(Instant /*now*/) { return session_; }

private:
    std::unique_ptr<verbs::Device> device_;
    std::unique_ptr<Endpoint> endpoint_;
    SessionId session_{};
};
using CopyrpcHost = LinkedHost<copyrpc::Endpoint, copyrpc::EndpointConfig>;
using ScalerpcHost = LinkedHost<scalerpc::Endpoint, scalerpc::EndpointConfig>;

}  // namespace cairn::counters
