// The promises of all RPC systems, kept by ScaleRPC, and by RawWrite.
#include "tests/support/rpc_kept_requests.hpp"
#include "tests/support/rpc_promises.hpp"

#include "tests/unit/scalerpc/host.hpp"

namespace cairn::rpc::test {
namespace {

template <bool kScale>
class ScalerpcPair {
public:
    using Endpoint = scalerpc::Endpoint;

    ScalerpcPair() {
        client_.port.join(server_.port);
        server_.port.join(client_.port);
        EXPECT_TRUE(server_.endpoint->listen(scalerpc::kService).ok());
    }
    Endpoint& client() { return *client_.endpoint; }
    Endpoint& server() { return *server_.endpoint; }
    SessionId connect() {
        const auto session =
            client_.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), scalerpc::kService, now);
        EXPECT_TRUE(session.ok());
        run(milliseconds(5));
        EXPECT_EQ(client_.events, std::vector{scalerpc::SessionEvent::Connected});
        return session.value();
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(20)) {
            client_.turn(now);
            server_.turn(now);
        }
    }
    Instant now{1'000'000'000};

private:
    static scalerpc::EndpointConfig config() {
        scalerpc::EndpointConfig config;
        config.shape = {8192, 32};
        config.sessions_max = 8;
        if (!kScale) {
            config.features = scalerpc::kRawWrite;
        }
        return config;
    }
    scalerpc::Host client_{"10.0.0.1", 11, config()};
    scalerpc::Host server_{"10.0.0.2", 22, config()};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Scalerpc, RpcPromises, ScalerpcPair<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Scalerpc, RpcKeptRequests, ScalerpcPair<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(RawWrite, RpcPromises, ScalerpcPair<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(RawWrite, RpcKeptRequests, ScalerpcPair<false>);

}  // namespace
}  // namespace cairn::rpc::test
