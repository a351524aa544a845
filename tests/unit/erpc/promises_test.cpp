// The promises of all RPC systems, kept by eRPC.
#include "tests/support/rpc_kept_requests.hpp"
#include "tests/support/rpc_promises.hpp"

#include "tests/unit/erpc/host.hpp"

namespace cairn::rpc::test {
namespace {

class ErpcPair {
public:
    using Endpoint = erpc::Endpoint;

    ErpcPair() {
        client_.port.join(server_.port);
        server_.port.join(client_.port);
    }
    Endpoint& client() { return *client_.endpoint; }
    Endpoint& server() { return *server_.endpoint; }
    SessionId connect() {
        const SessionId session = client_.connect(server_, now);
        run(milliseconds(5));
        return session;
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client_.turn(now);
            server_.turn(now);
        }
    }
    Instant now{1'000'000'000};

private:
    erpc::Host client_{"10.0.0.1", 11};
    erpc::Host server_{"10.0.0.2", 22};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcPromises, ErpcPair);
INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcKeptRequests, ErpcPair);

}  // namespace
}  // namespace cairn::rpc::test
