// What a small call costs both sides without a device: two workers with a copyrpc endpoint each, joined in memory.
//
//     batch_ruler CALLS [WINDOW]     makes so many calls, WINDOW of them at a time (32), over one session
//
// The calls of a window are one batch, and so are their answers. Under callgrind (--toggle-collect=*counted_part*) only
// the calls are counted, neither the set-up nor the end.
#include "lib/worker/worker.hpp"
#include "rpc/copyrpc/endpoint.hpp"
#include "tests/rulers/call_loop.hpp"

namespace {

using namespace cairn;

constexpr std::uint16_t kService = 7472;

struct CopyrpcSide : ruler::Host {
    using Host::Host;

    void start() {
        roce::EngineConfig engine;
        engine.max_queue_pairs = 8;
        engine.max_regions = 16;
        engine.seed = {key(), 1};
        worker = worker::Worker::create(port, engine, {}).value();
        home = connections::Home::create(connections::Agent::create(), *worker, {}).value();
        device = std::make_unique<verbs::Device>(*worker);
        copyrpc::EndpointConfig config;
        config.sessions_max = 4;
        config.answer_bytes = ruler::kMessageBytes;
        endpoint = copyrpc::Endpoint::create(config, *device, *home, pool).value();
    }
    void serve() {
        endpoint->set_handler(
            ruler::kEcho,
            [](void*, const copyrpc::Request& request) {
                request.endpoint.answer(request.handle, request.payload, request.now);
            },
            nullptr);
        if (!endpoint->listen(kService).ok()) {
            std::abort();
        }
    }
    [[nodiscard]] SessionId connect(CopyrpcSide& to, Instant now) {
        return endpoint->connect(to.port.local_address(), kService, now).value();
    }
    // Nobody went, and nothing came twice.
    void check() const {
        if (endpoint->sessions_open() != 1 || endpoint->calls_pending() != 0 ||
            endpoint->statistics().links.peers_lost != 0) {
            std::abort();
        }
    }

    std::unique_ptr<connections::Home> home;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<copyrpc::Endpoint> endpoint;
};

}  // namespace

int main(int argc, char** argv) {
    return ruler::count_calls<CopyrpcSide>(argc, argv, 32, 1);
}
