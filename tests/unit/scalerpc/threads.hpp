// A server with threads for background handlers, whose jobs the test runs by hand.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/support/take_all.hpp"
#include "tests/unit/scalerpc/many_clients.hpp"

namespace cairn::scalerpc {

constexpr std::uint8_t kSlow = 9;
constexpr std::uint8_t kBrief = 10;

class ScalerpcBackground : public ManyClients {
protected:
    ScalerpcBackground() {
        rpc::BackgroundConfig config;
        config.stepped = true;
        config.jobs_max = 2;
        threads = rpc::BackgroundPool::create(config).value();
    }
    ~ScalerpcBackground() override { server.reset(); }  // before its threads
    // Begins with threads at the server only.
    void begin_with_threads(EndpointConfig config, std::uint32_t clients) {
        begin(config, 0);
        config.background = threads.get();
        server = std::make_unique<Host>("10.0.0.2", 22, config);
        client = std::make_unique<Host>("10.0.0.1", 11, small(64));
        client->port.join(server->port);
        server->port.join(client->port);
        ASSERT_TRUE(server->endpoint->listen(kService).ok());
        server->endpoint->set_handler(
            kEcho,
            [](void*, const RequestOf& request) {
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            nullptr);
        for (std::uint32_t i = 0; i < clients; ++i) {
            sessions.push_back(
                client->endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).value());
            run(microseconds(100));
        }
        run(milliseconds(5));
    }
    static void echo(void* context, rpc::BackgroundRequest& request) {
        ++*static_cast<int*>(context);
        const std::span<std::uint8_t> room = request.reserve(static_cast<std::uint32_t>(request.payload().size()));
        std::copy(request.payload().begin(), request.payload().end(), room.begin());
    }

    // Leaves this much of the server's memory, in one piece.
    void leave_memory(std::uint32_t bytes) {
        rpc::MsgBuffer left = server->pool.allocate(bytes);
        others = rpc::test::take_all(server->pool);
        server->pool.release(left);
    }
    void give_memory_back() {
        for (rpc::MsgBuffer& each : others) {
            server->pool.release(each);
        }
        others.clear();
    }

    std::unique_ptr<rpc::BackgroundPool> threads;
    std::vector<rpc::MsgBuffer> others;
    int in_background = 0;
    int in_worker = 0;
};

}  // namespace cairn::scalerpc
