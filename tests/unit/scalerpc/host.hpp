// A host with a ScaleRPC endpoint on a wire in memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "rpc/scalerpc/endpoint.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::scalerpc {

constexpr std::uint16_t kService = 7473;

struct Host {
    static constexpr std::size_t kPoolBytes = 64U << 20U;

    Host(const char* address, std::uint64_t seed, const EndpointConfig& config)
        : port(address, 8192), worker(worker::Worker::create(port, engine_config(seed), Instant{}).value()) {
        home = connections::Home::create(connections::Agent::create(), *worker, {}).value();
        device = std::make_unique<verbs::Device>(*worker);
        endpoint = Endpoint::create(config, *device, *home, pool).value();
        endpoint->set_session_callback(
            [](void* context, SessionId, SessionEvent event) { static_cast<Host*>(context)->events.push_back(event); },
            this);
    }
    static roce::EngineConfig engine_config(std::uint64_t seed) {
        roce::EngineConfig config;
        config.seed = {seed, 1};
        return config;
    }
    // Takes a turn. Returns true if it did something.
    bool turn(Instant now) {
        const std::uint64_t before = port.sent();
        return worker->turn(now) || port.sent() != before;
    }

    test::WirePort port;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kPoolBytes);
    rpc::MsgPool pool{memory};
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<connections::Home> home;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<Endpoint> endpoint;
    std::vector<SessionEvent> events;
};

}  // namespace cairn::scalerpc
