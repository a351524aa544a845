// The promises of all RPC systems, kept by ScaleRPC, and by RawWrite.
#include "tests/support/rpc_clean_room.hpp"
#include "tests/support/rpc_endings.hpp"
#include "tests/support/rpc_kept_requests.hpp"
#include "tests/support/rpc_other_requests.hpp"
#include "tests/support/rpc_promises.hpp"

#include "tests/unit/scalerpc/host.hpp"

namespace cairn::rpc::test {
namespace {

template <bool kScale>
class ScalerpcPair {
public:
    using Endpoint = scalerpc::Endpoint;

    ScalerpcPair() {
        for (scalerpc::Host* const client : {&client_, &other_}) {
            client->port.join(server_.port);
            server_.port.join(client->port);
        }
        EXPECT_TRUE(server_.endpoint->listen(scalerpc::kService).ok());
    }
    Endpoint& client() { return *client_.endpoint; }
    Endpoint& other() { return *other_.endpoint; }
    Endpoint& server() { return *server_.endpoint; }
    cairn::test::WirePort& server_port() { return server_.port; }
    MsgPool& server_pool() { return server_.pool; }
    void end_client() { client_.endpoint.reset(); }
    SessionId connect() { return connect(client_); }
    SessionId connect_other() { return connect(other_); }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(20)) {
            client_.turn(now);
            other_.turn(now);
            server_.turn(now);
        }
    }
    Instant now{1'000'000'000};

private:
    SessionId connect(scalerpc::Host& from) {
        const auto session = from.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), scalerpc::kService, now);
        EXPECT_TRUE(session.ok());
        run(milliseconds(5));
        EXPECT_EQ(from.events.back(), scalerpc::SessionEvent::Connected);
        return session.value();
    }
    static scalerpc::EndpointConfig config() {
        scalerpc::EndpointConfig config;
        config.shape = {8192, 32};
        config.sessions_max = 2;
        if (!kScale) {
            config.features = scalerpc::kRawWrite;
        }
        return config;
    }
    scalerpc::Host client_{"10.0.0.1", 11, config()};
    scalerpc::Host other_{"10.0.0.3", 33, config()};
    scalerpc::Host server_{"10.0.0.2", 22, config()};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Scalerpc, RpcPromises, ScalerpcPair<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Scalerpc, RpcKeptRequests, ScalerpcPair<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Scalerpc, RpcOtherRequests, ScalerpcPair<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Scalerpc, RpcCleanRoom, ScalerpcPair<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Scalerpc, RpcEndings, ScalerpcPair<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(RawWrite, RpcPromises, ScalerpcPair<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(RawWrite, RpcKeptRequests, ScalerpcPair<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(RawWrite, RpcOtherRequests, ScalerpcPair<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(RawWrite, RpcCleanRoom, ScalerpcPair<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(RawWrite, RpcEndings, ScalerpcPair<false>);

}  // namespace
}  // namespace cairn::rpc::test
