// One process that serves eRPC and RDMA at once: endpoint, directory, device and connector on one worker.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/verbs/connector.hpp"
#include "rpc/erpc/directory.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "tests/support/worker_config.hpp"

namespace cairn::connections {

constexpr std::uint8_t kEcho = 1;
constexpr Qkey kQkey{0x205};

// A worker with all of these tenants.
struct Tenants {
    Tenants(port::Port& at, std::shared_ptr<Agent> agent, std::uint8_t owner_bits, std::uint32_t number,
            std::uint64_t seed)
        : port(at), pool(pool_memory) {
        worker = worker::Worker::create(at, test::worker_config(owner_bits, number, seed), Instant{}).value();
        home = Home::create(std::move(agent), *worker, {}).value();
        device = std::make_unique<verbs::Device>(*worker);
        connector = std::make_unique<verbs::Connector>(*device, *home);
        pd = device->create_pd();
        completions = device->create_cq(256).value();
        constexpr verbs::Rights kRights =
            verbs::Rights{verbs::Right::LocalWrite} | verbs::Right::RemoteWrite | verbs::Right::RemoteRead;
        mr = device->register_memory(*pd, memory, kRights).value();
        qp = device->create_qp(*pd, {}, {*completions, *completions}).value();
        erpc::EndpointConfig rpc;
        rpc.qp.qpn = Qpn{0x100 + number};
        rpc.qp.qkey = kQkey;
        rpc.sessions_max = 16;
        rpc.calls_max = 64;
        rpc.seed = {seed, 100 + number};
        endpoint = erpc::Endpoint::create(rpc, *worker, pool).value();
        const Status set = endpoint->set_handler(
            kEcho,
            [](void*, const erpc::Request& request) {
                const auto bytes = static_cast<std::uint32_t>(request.payload.size());
                const auto answer = request.endpoint.reserve(request.handle, bytes);
                std::copy(request.payload.begin(), request.payload.end(), answer.begin());
                request.endpoint.respond(request.handle, request.now);
            },
            nullptr, 1024);
        CAIRN_ASSERT(set.ok());
        directory = std::make_unique<erpc::Directory>(*home);
    }
    ~Tenants() { connector.reset(); }

    port::Port& port;
    std::vector<std::uint8_t> pool_memory = std::vector<std::uint8_t>(std::size_t{1} << 20U);
    std::array<std::uint8_t, 16384> memory{};
    rpc::MsgPool pool;
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<Home> home;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<verbs::Pd> pd;
    std::unique_ptr<verbs::Cq> completions;
    std::unique_ptr<verbs::Mr> mr;
    std::unique_ptr<verbs::Qp> qp;
    std::unique_ptr<verbs::Connector> connector;
    std::unique_ptr<erpc::Endpoint> endpoint;
    std::unique_ptr<erpc::Directory> directory;
};

}  // namespace cairn::connections
