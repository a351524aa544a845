// Measures the cost of a small call at both ends, without a device: two workers with an eRPC endpoint, joined in
// memory.
//
//     call_ruler CALLS [WINDOW]     makes CALLS calls, WINDOW of them at a time (60), over 8 sessions
//
// Under callgrind (--toggle-collect=*counted_part*) only the calls are counted, neither the set-up nor the end.
#include "lib/worker/worker.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "tests/rulers/call_loop.hpp"

namespace {

using namespace cairn;

constexpr Qpn kService{0x100};
constexpr Qkey kKey{0x205};

struct ErpcSide : ruler::Host {
    using Host::Host;

    void start(std::size_t) {
        worker = worker::Worker::create(port, roce::kDatagramsOnly, {}).value();
        erpc::EndpointConfig config;
        config.qp.qpn = kService;
        config.qp.qkey = kKey;
        config.sessions_max = 256;
        config.seed = {key(), 1};
        endpoint = erpc::Endpoint::create(config, *worker, pool).value();
    }
    void serve() {
        const Status set = endpoint->set_handler(
            ruler::kEcho,
            [](void*, const erpc::Request& request) {
                request.endpoint.answer(request.handle, request.payload, request.now);
            },
            nullptr, ruler::kMessageBytes);
        CAIRN_ASSERT(set.ok());
    }
    [[nodiscard]] SessionId connect(ErpcSide& to, Instant now) {
        port::Path* const path =
            port.open_path({port.local_address(), to.port.local_address(), port::kFirstUdpSourcePort, 0}, now);
        return endpoint->connect({path, kService, kKey}, now).value();
    }
    void check() const { endpoint->check_invariants(); }

    std::unique_ptr<erpc::Endpoint> endpoint;
};

}  // namespace

int main(int argc, char** argv) {
    return ruler::count_calls<ErpcSide>(argc, argv, 60, 8);
}
