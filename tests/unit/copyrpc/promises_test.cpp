// The promises of all RPC systems, kept by copyrpc.
#include "tests/support/rpc_kept_requests.hpp"
#include "tests/support/rpc_promises.hpp"

#include "tests/unit/copyrpc/host.hpp"

namespace cairn::rpc::test {
namespace {

template <copyrpc::Flow kFlow>
class CopyrpcPair {
public:
    using Endpoint = copyrpc::Endpoint;

    CopyrpcPair() {
        client_.port.join(server_.port);
        server_.port.join(client_.port);
        EXPECT_TRUE(server_.endpoint->listen(copyrpc::kService).ok());
    }
    Endpoint& client() { return *client_.endpoint; }
    Endpoint& server() { return *server_.endpoint; }
    SessionId connect() {
        const auto session =
            client_.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), copyrpc::kService, now);
        EXPECT_TRUE(session.ok());
        run(milliseconds(5));
        EXPECT_EQ(client_.events, std::vector{copyrpc::SessionEvent::Connected});
        return session.value();
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client_.turn(now);
            server_.turn(now);
        }
    }
    Instant now{1'000'000'000};

private:
    static copyrpc::EndpointConfig config() {
        copyrpc::EndpointConfig config;
        config.ring_bytes = 256U << 10U;
        config.answer_bytes = 6000;
        config.sessions_max = 8;
        config.flow = kFlow;
        return config;
    }
    copyrpc::Host client_{"10.0.0.1", 11, config()};
    copyrpc::Host server_{"10.0.0.2", 22, config()};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Copyrpc, RpcPromises, CopyrpcPair<copyrpc::Flow::Credit>);
INSTANTIATE_TYPED_TEST_SUITE_P(Copyrpc, RpcKeptRequests, CopyrpcPair<copyrpc::Flow::Credit>);
INSTANTIATE_TYPED_TEST_SUITE_P(CopyrpcReads, RpcPromises, CopyrpcPair<copyrpc::Flow::Read>);
INSTANTIATE_TYPED_TEST_SUITE_P(CopyrpcReads, RpcKeptRequests, CopyrpcPair<copyrpc::Flow::Read>);

}  // namespace
}  // namespace cairn::rpc::test
