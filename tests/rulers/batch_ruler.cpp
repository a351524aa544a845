// Measures the cost of a small call over connections at both ends, without a device: two workers with an endpoint each,
// joined in memory.
//
//     copyrpc_ruler CALLS [WINDOW [SESSIONS]]
//     scalerpc_ruler CALLS [WINDOW [SESSIONS [SLICE_US]]]
//
// make CALLS calls, WINDOW of them at a time (32), over one session or more. The calls of a window over one session are
// one batch of copyrpc, and so are their answers. Up to 60 sessions of ScaleRPC are served all the time. More sessions
// take turns: a call then also costs its share of a switch, and the server counts the switches. A turn of both ends
// takes 300 ns here, whatever they do: SLICE_US says how many calls a slice has. Under callgrind
// (--toggle-collect=*counted_part*) only the calls are counted, neither the set-up nor the end.
#include <algorithm>
#include <bit>

#include "lib/worker/worker.hpp"
#include "rpc/copyrpc/endpoint.hpp"
#include "rpc/scalerpc/endpoint.hpp"
#include "tests/rulers/call_loop.hpp"

namespace {

using namespace cairn;

namespace ruled = CAIRN_RULED_SYSTEM;  // one program for each: code that both systems call is not inlined for either

constexpr std::uint16_t kService = 7472;

std::int64_t slice_us = 100;  // NOLINT: of the command line

template <class Config>
Config config_of(std::size_t sessions) {
    Config config;
    config.sessions_max = config.host_sessions_max = 1000;
    if constexpr (std::is_same_v<Config, copyrpc::EndpointConfig>) {
        config.answer_bytes = ruler::kMessageBytes;
        // Two rings of each session share half of the pool.
        const std::size_t share = std::bit_floor(ruler::kPoolBytes / (4 * sessions));
        config.ring_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(share, config.ring_bytes));
    } else {
        config.shape = {128, 32};  // one call each of the usual window
        config.groups.slice = microseconds(slice_us);
    }
    return config;
}

template <class Endpoint, class Config>
struct Side : ruler::Host {
    using Host::Host;

    void start(std::size_t sessions) {
        roce::EngineConfig engine;
        engine.max_queue_pairs = 1024;
        engine.max_regions = 4096;
        engine.seed = {key(), 1};
        worker = worker::Worker::create(port, engine, {}).value();
        home = connections::Home::create(connections::Agent::create(), *worker, {}).value();
        device = std::make_unique<verbs::Device>(*worker);
        endpoint = Endpoint::create(config_of<Config>(sessions), *device, *home, pool).value();
    }
    void serve() {
        endpoint->set_handler(
            ruler::kEcho,
            [](void*, const rpc::Request<Endpoint>& request) {
                request.endpoint.answer(request.handle, request.payload, request.now);
            },
            nullptr);
        if (!endpoint->listen(kService).ok()) {
            std::abort();
        }
    }
    [[nodiscard]] SessionId connect(Side& to, Instant now) {
        return endpoint->connect(to.port.local_address(), kService, now).value();
    }
    // Aborts unless sessions are open, every call has ended and no peer was lost. Prints the counts of ScaleRPC.
    void check() const {
        if (endpoint->sessions_open() == 0 || endpoint->calls_pending() != 0 ||
            endpoint->statistics().links.peers_lost != 0) {
            std::abort();
        }
        if constexpr (std::is_same_v<Endpoint, scalerpc::Endpoint>) {
            const scalerpc::Statistics& counted = endpoint->statistics();
            std::printf("%llu requests, %llu switches, %llu READs, %llu notices alone\n",
                        static_cast<unsigned long long>(counted.requests_handled),
                        static_cast<unsigned long long>(counted.switches),
                        static_cast<unsigned long long>(counted.fetches),
                        static_cast<unsigned long long>(counted.notices_alone));
        }
    }

    std::unique_ptr<connections::Home> home;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<Endpoint> endpoint;
};

}  // namespace

int main(int argc, char** argv) {
    slice_us = argc > 4 ? std::strtoll(argv[4], nullptr, 10) : slice_us;
    if (slice_us <= 0) {
        std::fputs("SLICE_US: a slice is 1 us or longer\n", stderr);
        return 2;
    }
    return ruler::count_calls<Side<ruled::Endpoint, ruled::EndpointConfig>>(argc, argv, 32, 1);
}
