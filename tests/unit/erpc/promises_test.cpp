// The promises of all RPC systems, kept by eRPC.
#include "tests/support/rpc_clean_room.hpp"
#include "tests/support/rpc_endings.hpp"
#include "tests/support/rpc_kept_requests.hpp"
#include "tests/support/rpc_other_requests.hpp"
#include "tests/support/rpc_promises.hpp"

#include "tests/unit/erpc/host.hpp"

namespace cairn::rpc::test {
namespace {

class ErpcPair {
public:
    using Endpoint = erpc::Endpoint;

    ErpcPair() {
        for (erpc::Host* const client : {&client_, &other_}) {
            client->port.join(server_.port);
            server_.port.join(client->port);
        }
    }
    Endpoint& client() { return *client_.endpoint; }
    Endpoint& other() { return *other_.endpoint; }
    Endpoint& server() { return *server_.endpoint; }
    cairn::test::WirePort& server_port() { return server_.port; }
    MsgPool& server_pool() { return *server_.pool; }
    void end_client() { client_.endpoint.reset(); }
    SessionId connect() { return connect(client_); }
    SessionId connect_other() { return connect(other_); }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client_.turn(now);
            other_.turn(now);
            server_.turn(now);
        }
    }
    Instant now{1'000'000'000};

private:
    SessionId connect(erpc::Host& from) {
        const SessionId session = from.connect(server_, now);
        run(milliseconds(5));
        return session;
    }
    erpc::Host client_{"10.0.0.1", 11};
    erpc::Host other_{"10.0.0.3", 33};
    erpc::Host server_{"10.0.0.2", 22};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcPromises, ErpcPair);
INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcKeptRequests, ErpcPair);
INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcOtherRequests, ErpcPair);
INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcCleanRoom, ErpcPair);
INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcEndings, ErpcPair);

}  // namespace
}  // namespace cairn::rpc::test
