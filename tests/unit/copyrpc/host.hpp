// A host with a copyrpc endpoint on a wire in memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "rpc/copyrpc/endpoint.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::copyrpc {

constexpr std::uint16_t kService = 7472;

// Returns a configuration with the smallest rings, the fewest batches under way, and no longer messages.
inline EndpointConfig small_config(std::uint32_t answer_bytes) {
    EndpointConfig config;
    config.ring_bytes = RingShape::kLeastBytes;
    config.receives = Hello::kLeastReceives;
    config.answer_bytes = answer_bytes;
    config.message_bytes_max = 0;
    config.host_sessions_max = config.sessions_max;
    return config;
}

struct Host {
    static constexpr std::size_t kPoolBytes = 16U << 20U;

    Host(const char* address, std::uint64_t seed, const EndpointConfig& config, std::size_t pool_bytes = kPoolBytes)
        : port(address, 4096),
          memory(pool_bytes),
          worker(worker::Worker::create(port, engine_config(seed), Instant{}).value()) {
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
    std::vector<std::uint8_t> memory;
    rpc::MsgPool pool{memory};
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<connections::Home> home;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<Endpoint> endpoint;
    std::vector<SessionEvent> events;
};

}  // namespace cairn::copyrpc
