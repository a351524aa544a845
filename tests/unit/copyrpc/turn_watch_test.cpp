// A watcher of an endpoint's turns is notified where reading ends and composing begins.
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

struct Looker final : rpc::TurnWatch {
    void on_taken() noexcept override {
        ++turns;
        if (endpoint != nullptr && endpoint->statistics().requests_handled > handled) {
            handled = endpoint->statistics().requests_handled;
            batches_when_handled = endpoint->statistics().batches_sent;
        }
    }

    const Endpoint* endpoint = nullptr;
    std::uint64_t turns = 0;
    std::uint64_t handled = 0;
    std::uint64_t batches_when_handled = 0;
};

struct HasLooker {
    Looker looker;  // outlives the endpoint
};

struct WatchedTurns : HasLooker, TwoHosts {
    WatchedTurns() : TwoHosts({}, watched(looker)) { looker.endpoint = server.endpoint.get(); }
    static EndpointConfig watched(Looker& looker) {
        EndpointConfig config;
        config.watch = &looker;
        return config;
    }
};

TEST_F(WatchedTurns, AreToldOnceEachBetweenHandlersAndTheBatchWithTheAnswer) {
    const SessionId session = connect();
    const std::uint64_t before = looker.turns;
    const std::uint64_t batches = server.endpoint->statistics().batches_sent;
    for (int i = 0; i < 100; ++i) {
        server.turn(now);
    }
    EXPECT_EQ(looker.turns, before + 100);
    (void)post(session, 1);
    run(milliseconds(1));
    ASSERT_EQ(count(CallStatus::Ok), 1U);
    EXPECT_EQ(looker.handled, 1U);
    EXPECT_EQ(looker.batches_when_handled, batches) << "the answer had left already";
    EXPECT_GT(server.endpoint->statistics().batches_sent, batches);
}

}  // namespace
}  // namespace cairn::copyrpc
