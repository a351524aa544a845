// Connections that end: at the request of one or both ends, because a peer has forgotten them, or because a user
// abandons them.
#include <set>
#include "lib/cm/last_words.hpp"

#include "tests/unit/cm/cm_host.hpp"

namespace cairn::cm {
namespace {

const Duration kWait = response_wait(Config{}, Config{}.response_timeout);

TEST_F(CmPair, ADisconnectionIsAskedForAgainAndEndsWithoutAnAnswer) {
    listen();
    establish();
    ASSERT_EQ(client.manager.disconnect(active, {}, now), std::nullopt);
    (void)client.sent<wire::Dreq>();
    for (int retry = 0; retry < Config{}.max_retries.value; ++retry) {
        EXPECT_EQ(client.manager.next_deadline(), now + kWait);
        pass_time(client);
        (void)client.sent<wire::Dreq>();
    }
    pass_time(client);
    EXPECT_TRUE(client.sends_nothing());
    const Disconnected ended = client.event<Disconnected>();
    EXPECT_EQ(ended.id, active);
    EXPECT_TRUE(ended.by_timeout);
    pass_time(client);
    EXPECT_EQ(client.event<Released>().id, active);
}

TEST_F(CmPair, SomebodyElseMayEndTheConnectionOfAProcessThatDied) {
    listen();
    EXPECT_EQ(last_words(server.manager.find(ConnectionId{7}), 1), std::nullopt);
    establish();
    const auto words = last_words(server.manager.find(passive), 1);
    ASSERT_TRUE(words.has_value());
    client.take(server, *words, now);
    EXPECT_EQ(client.event<DisconnectRequested>().id, active);
    ASSERT_EQ(client.manager.disconnect(active, {}, now), std::nullopt);
    EXPECT_EQ(last_words(client.manager.find(active), 1), std::nullopt);  // it is ending
}

TEST_F(CmPair, ADisconnectionThatComesAgainIsConfirmedAgain) {
    listen();
    establish();
    ASSERT_EQ(client.manager.disconnect(active, {}, now), std::nullopt);
    (void)client.sent<wire::Dreq>();
    client.pass_last(server, now);
    client.pass_last(server, now);
    EXPECT_TRUE(server.sends_nothing());  // its user has not stopped yet
    (void)server.event<DisconnectRequested>();
    EXPECT_TRUE(server.has_no_event());
    ASSERT_EQ(server.manager.disconnect(passive, octets("bye"), now), std::nullopt);
    (void)server.sent<wire::Drep>();
    client.pass_last(server, now);
    EXPECT_EQ(server.sent<wire::Drep>().private_data[0], 'b');
    pass_time(server);
    (void)server.event<Released>();
    client.pass_last(server, now);  // long forgotten, but the answer is the same
    EXPECT_EQ(server.sent<wire::Drep>().ids, (wire::CommIds{passive, active}));
}

TEST_F(CmPair, BothEndsMayDisconnectAtATime) {
    listen();
    establish();
    ASSERT_EQ(client.manager.disconnect(active, {}, now), std::nullopt);
    ASSERT_EQ(server.manager.disconnect(passive, {}, now), std::nullopt);
    (void)client.sent<wire::Dreq>();
    (void)server.sent<wire::Dreq>();
    client.pass_last(server, now);
    server.pass_last(client, now);
    EXPECT_EQ(client.event<Disconnected>().id, active);
    EXPECT_EQ(server.event<Disconnected>().id, passive);
    (void)client.sent<wire::Drep>();
    client.pass_last(server, now);
    server.pass_all(client, now);
    EXPECT_TRUE(client.has_no_event() && server.has_no_event());
    EXPECT_EQ(state_at(client, active), State::TimeWait);
    EXPECT_EQ(state_at(server, passive), State::TimeWait);
}

TEST_F(CmPair, ARestartedClientWithItsOldQueuePairIsStaleAndTheOldConnectionEnds) {
    listen();
    establish();
    CmHost restarted(kClientAddress, config_of(0x5555'0000'6666'0001U));
    const auto again = restarted.manager.connect(request(), now);
    ASSERT_TRUE(again.ok());
    restarted.pass_all(server, now);
    EXPECT_EQ(server.count(Counter::Stale), 1U);
    EXPECT_EQ(server.sent<wire::Rej>().reason, wire::RejectReason::StaleConnection);
    server.pass_last(restarted, now);
    EXPECT_EQ(restarted.event<Rejected>().reason, wire::RejectReason::StaleConnection);
    EXPECT_EQ(state_at(restarted, again.value()), State::TimeWait);
    (void)server.sent<wire::Dreq>();
    server.pass_last(restarted, now);
    (void)restarted.sent<wire::Drep>();  // it does not know the connection, which has the same effect
    restarted.pass_last(server, now);
    EXPECT_EQ(server.event<Disconnected>().id, passive);
    pass_time(server);
    const auto later = restarted.manager.connect(request(), now);
    ASSERT_TRUE(later.ok());
    restarted.pass_all(server, now);
    (void)server.event<Released>();
    EXPECT_EQ(server.event<Requested>().qp.remote_qpn, Qpn{0x11});
}

TEST_F(CmPair, ANameOfAnEarlierLifeIsStaleToo) {
    listen();
    establish();
    (void)connect(request());
    wire::Req req = client.sent<wire::Req>();
    req.local_comm_id = active;
    req.local_qpn = Qpn{0x99};
    server.take(client, {1, req}, now);
    EXPECT_EQ(server.sent<wire::Rej>().reason, wire::RejectReason::StaleConnection);
    const wire::Dreq dreq = server.sent<wire::Dreq>();
    EXPECT_EQ(dreq.ids, (wire::CommIds{passive, active}));
    EXPECT_EQ(dreq.remote_qpn, Qpn{});
    EXPECT_EQ(state_at(server, passive), State::Established);  // until its peer denies it
    server.take(client, {2, wire::Drep{{active, passive}, {}}}, now);
    EXPECT_EQ(server.event<Disconnected>().id, passive);
    EXPECT_EQ(state_at(server, passive), State::TimeWait);
}

TEST_F(CmPair, TheQueuePairOfAConnectionIsThatOfTheLastItsPeerMade) {
    listen();
    ask_and_accept();
    const wire::Rtu rtu{{active, passive}, {}};
    ConnectRequest asked = request();
    asked.starting_psn = Psn{0x777};  // another life of the peer; its request comes before the last message of this one
    const ConnectionId later = connect(asked);
    client.pass_all(server, now);
    const ConnectionId passive_later = server.event<Requested>().id;
    server.take(client, {1, rtu}, now);
    (void)server.event<Established>();
    ASSERT_EQ(server.manager.accept(passive_later, acceptance(), now), std::nullopt);
    (void)server.sent<wire::Rep>();
    server.take(client, {2, wire::Rtu{{later, passive_later}, {}}}, now);
    EXPECT_EQ(server.event<Established>().id, passive_later);
    EXPECT_EQ(server.count(Counter::Stale), 1U);
    EXPECT_EQ(server.sent<wire::Dreq>().ids, (wire::CommIds{passive, active}));  // asks whether it is still there
}

TEST_F(CmPair, AReplyFromAQueuePairThatIsAlreadyConnectedIsStale) {
    listen();
    establish();
    const ConnectionId old = active;
    CmHost restarted(kServerAddress, config_of(0x5555'0000'6666'0001U));
    ASSERT_EQ(restarted.manager.listen(kService, 1), std::nullopt);
    ConnectRequest asked = request();
    asked.qpn = Qpn{0x12};
    active = connect(asked);
    client.pass_all(restarted, now);
    passive = restarted.event<Requested>().id;
    ASSERT_EQ(restarted.manager.accept(passive, acceptance(), now), std::nullopt);  // Qpn 0x22 again
    restarted.pass_all(client, now);
    EXPECT_EQ(client.sent<wire::Rej>().reason, wire::RejectReason::StaleConnection);
    client.pass_last(restarted, now);
    EXPECT_EQ(restarted.event<Rejected>().reason, wire::RejectReason::StaleConnection);
    const Rejected rejected = client.event<Rejected>();
    EXPECT_EQ(rejected.id, active);
    EXPECT_FALSE(rejected.by_peer);
    EXPECT_EQ(state_at(client, old), State::Established);
    (void)client.event<Released>();
    (void)client.sent<wire::Dreq>();
    client.pass_last(restarted, now);
    restarted.pass_all(client, now);
    EXPECT_EQ(client.event<Disconnected>().id, old);
}

TEST_F(CmPair, APeerThatTookItsRequestBackMayAskAgainBeforeAnybodyLooked) {
    listen();
    active = connect(request());
    client.pass_all(server, now);
    ASSERT_EQ(client.manager.abandon(active, now), std::nullopt);
    active = connect(request());  // with the same queue pair
    client.pass_all(server, now);
    (void)server.event<Requested>();
    (void)server.event<Rejected>();
    (void)server.event<Released>();
    EXPECT_EQ(server.event<Requested>().qp.remote_qpn, Qpn{0x11});
    EXPECT_EQ(server.count(Counter::Stale), 0U);
}

TEST_F(CmPair, ALateCopyOfARequestOpensNothingWhileItIsRemembered) {
    listen();
    establish();
    (void)client.sends_nothing();
    const ConnectRequest asked = request();
    const std::uint64_t transaction = client.manager.find(active)->transaction;
    ASSERT_EQ(client.manager.disconnect(active, {}, now), std::nullopt);
    client.pass_all(server, now);
    (void)server.event<DisconnectRequested>();
    const wire::CmMad late{transaction, [&] {
                               wire::Req req;
                               req.local_comm_id = active;
                               req.local_qpn = asked.qpn;
                               req.starting_psn = asked.starting_psn;
                               return req;
                           }()};
    server.take(client, late, now);
    EXPECT_TRUE(server.sends_nothing());
    ASSERT_EQ(server.manager.disconnect(passive, {}, now), std::nullopt);
    server.pass_all(client, now);
    server.take(client, late, now);
    EXPECT_TRUE(server.sends_nothing() && server.has_no_event());
    EXPECT_EQ(server.count(Counter::Duplicate), 2U);
    EXPECT_EQ(server.count(Counter::Stale), 0U);
}

// Each of a host's 256 managers draws from 2^24 names.
TEST_F(CmPair, ANameThatIsFreeMayBeDrawnAgainAndMeansTheNewConnectionAlone) {
    constexpr std::size_t kDrawn = 20'000;
    Config config = config_of(7);
    config.names = {8, 5};
    CmHost drawing(kClientAddress, config);
    listen();
    std::set<ConnectionId> over;
    ConnectionId again{};
    while (again == ConnectionId{} && over.size() < kDrawn) {
        const ConnectionId id = drawing.manager.connect(request(), now).value();
        (void)drawing.sent<wire::Req>();
        if (!over.insert(id).second) {
            again = id;
            break;
        }
        ASSERT_EQ(drawing.manager.abandon(id, now), std::nullopt);
        (void)drawing.sent<wire::Rej>();
        ASSERT_EQ(drawing.manager.connections(), 0U);
    }
    ASSERT_NE(again, ConnectionId{}) << "no name came again";
    drawing.pass_last(server, now);
    passive = server.event<Requested>().id;
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    server.pass_all(drawing, now);
    EXPECT_EQ(drawing.event<Replied>().id, again);
    ASSERT_EQ(drawing.manager.ready(again, {}, now), std::nullopt);
    drawing.pass_all(server, now);
    EXPECT_EQ(server.event<Established>().id, passive);
    EXPECT_EQ(state_at(drawing, again), State::Established);
    EXPECT_TRUE(drawing.has_no_event() && server.has_no_event());
}

TEST_F(CmPair, AbandoningEndsEveryStateAndNoEventFollows) {
    listen();
    const auto both_forget = [this] {
        for (int turn = 0; turn < 40; ++turn) {
            client.pass_all(server, now);
            server.pass_all(client, now);
            while (const std::optional<Event> event = server.manager.poll_event()) {
                if (const auto* ending = std::get_if<DisconnectRequested>(&*event)) {
                    EXPECT_EQ(server.manager.disconnect(ending->id, {}, now), std::nullopt);
                }
            }
            now = std::min(client.manager.next_deadline(), server.manager.next_deadline());
            if (now == Instant::never()) {
                break;
            }
            client.manager.on_timeout(now);
            server.manager.on_timeout(now);
        }
        EXPECT_TRUE(client.has_no_event());
        EXPECT_EQ(client.manager.connections() + server.manager.connections(), 0U);
        now = Instant{now == Instant::never() ? 0 : now.ns};
    };
    ask_and_accept();
    ASSERT_EQ(client.manager.abandon(active, now), std::nullopt);
    both_forget();
    establish();
    ASSERT_EQ(client.manager.abandon(active, now), std::nullopt);
    both_forget();
    ask();
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    server.pass_all(client, now);
    ASSERT_EQ(client.manager.abandon(active, now), std::nullopt);  // with Replied not yet polled
    both_forget();
}

}  // namespace
}  // namespace cairn::cm
