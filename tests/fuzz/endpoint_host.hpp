// A host with an endpoint of an RPC system over connections, for the fuzzers of such endpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/connections/home.hpp"
#include "lib/verbs/device.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::test {

template <class Endpoint>
struct EndpointHost {
    template <class Config>
    EndpointHost(const char* address, std::uint64_t seed, const Config& config, std::size_t pool_bytes,
                 std::uint32_t regions)
        : port(address, 256), memory(pool_bytes), pool(memory) {
        roce::EngineConfig engine;
        engine.seed = {seed, 1};
        engine.max_queue_pairs = 32;
        engine.max_regions = regions;
        worker = worker::Worker::create(port, engine, Instant{}).value();
        home = connections::Home::create(connections::Agent::create(), *worker, {}).value();
        device = std::make_unique<verbs::Device>(*worker);
        endpoint = Endpoint::create(config, *device, *home, pool).value();
        live_at_first = pool.live();
    }
    // Checks that all memory is free again.
    void end() {
        endpoint.reset();
        require(pool.live() == 0 && worker->engine().queue_pairs() == 0);
        device.reset();
        home.reset();
        worker.reset();
        require(port.buffers_in_use() == 0);
    }

    WirePort port;
    std::vector<std::uint8_t> memory;
    rpc::MsgPool pool;
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<connections::Home> home;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<Endpoint> endpoint;
    std::uint64_t live_at_first = 0;
};

}  // namespace cairn::test
