// The promises of all RPC systems, kept by copyrpc.
#include "tests/support/rpc_clean_room.hpp"
#include "tests/support/rpc_endings.hpp"
#include "tests/support/rpc_kept_requests.hpp"
#include "tests/support/rpc_other_requests.hpp"
#include "tests/support/rpc_promises.hpp"

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::rpc::test {
namespace {

template <copyrpc::Flow kFlow>
class CopyrpcPair {
public:
    using Endpoint = copyrpc::Endpoint;

    CopyrpcPair() {
        for (copyrpc::Host* const client : {&client_, &other_}) {
            client->port.join(server_.port);
            server_.port.join(client->port);
        }
        EXPECT_TRUE(server_.endpoint->listen(copyrpc::kService).ok());
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
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client_.turn(now);
            other_.turn(now);
            server_.turn(now);
        }
    }
    Instant now{1'000'000'000};

private:
    SessionId connect(copyrpc::Host& from) {
        const auto session = from.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), copyrpc::kService, now);
        EXPECT_TRUE(session.ok());
        run(milliseconds(5));
        EXPECT_EQ(from.events.back(), copyrpc::SessionEvent::Connected);
        return session.value();
    }
    static copyrpc::EndpointConfig config() {
        copyrpc::EndpointConfig config;
        config.ring_bytes = 256U << 10U;
        config.answer_bytes = 6000;
        config.sessions_max = 2;
        config.flow = kFlow;
        return config;
    }
    copyrpc::Host client_{"10.0.0.1", 11, config()};
    copyrpc::Host other_{"10.0.0.3", 33, config()};
    copyrpc::Host server_{"10.0.0.2", 22, config()};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Copyrpc, RpcPromises, CopyrpcPair<copyrpc::Flow::Credit>);
INSTANTIATE_TYPED_TEST_SUITE_P(Copyrpc, RpcKeptRequests, CopyrpcPair<copyrpc::Flow::Credit>);
INSTANTIATE_TYPED_TEST_SUITE_P(Copyrpc, RpcOtherRequests, CopyrpcPair<copyrpc::Flow::Credit>);
INSTANTIATE_TYPED_TEST_SUITE_P(Copyrpc, RpcCleanRoom, CopyrpcPair<copyrpc::Flow::Credit>);
INSTANTIATE_TYPED_TEST_SUITE_P(Copyrpc, RpcEndings, CopyrpcPair<copyrpc::Flow::Credit>);
INSTANTIATE_TYPED_TEST_SUITE_P(CopyrpcReads, RpcPromises, CopyrpcPair<copyrpc::Flow::Read>);
INSTANTIATE_TYPED_TEST_SUITE_P(CopyrpcReads, RpcKeptRequests, CopyrpcPair<copyrpc::Flow::Read>);
INSTANTIATE_TYPED_TEST_SUITE_P(CopyrpcReads, RpcOtherRequests, CopyrpcPair<copyrpc::Flow::Read>);
INSTANTIATE_TYPED_TEST_SUITE_P(CopyrpcReads, RpcCleanRoom, CopyrpcPair<copyrpc::Flow::Read>);
INSTANTIATE_TYPED_TEST_SUITE_P(CopyrpcReads, RpcEndings, CopyrpcPair<copyrpc::Flow::Read>);

}  // namespace
}  // namespace cairn::rpc::test

namespace cairn::copyrpc {
namespace {

using CopyrpcEnd = TwoHosts;

TEST_F(CopyrpcEnd, NoSessionBeginsWhileTheEndpointEnds) {
    const SessionId session = connect();
    bool begun = true;
    struct {
        Endpoint& endpoint;
        bool& begun;
        Instant now;
    } told{*client.endpoint, begun, now};
    Call call;
    call.type = kKeep;
    call.context = &told;
    call.ends_with_endpoint = true;
    call.completion = [](void* context, const rpc::CallResult& result) {
        const auto& self = *static_cast<decltype(told)*>(context);
        EXPECT_EQ(result.status, CallStatus::Disconnected);
        const net::IpAddress peer = net::IpAddress::parse("10.0.0.2").value();
        self.begun = self.endpoint.connect(peer, kService, self.now).ok();
    };
    ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    run(milliseconds(1));
    client.endpoint.reset();
    EXPECT_FALSE(begun);
}

}  // namespace
}  // namespace cairn::copyrpc
