// Requests that cannot be granted, floods and nonsense: they are refused or counted, and disturb no other connection.
#include "tests/unit/cm/cm_host.hpp"

namespace cairn::cm {
namespace {

// The reason for which the server refuses a request changed by `change`; none if it is not refused.
class CmRefusal : public CmPair {
protected:
    template <class Change>
    wire::RejectReason refusal_of(Change change) {
        (void)connect(request());
        wire::Req req = client.sent<wire::Req>();
        change(req);
        server.take(client, {5, req}, now);
        if (server.manager.poll_event().has_value()) {
            return {};
        }
        return server.sent<wire::Rej>().reason;
    }
};

TEST_F(CmRefusal, RequestsThatCanNotBeGrantedAreRefusedWithTheirReason) {
    listen();
    EXPECT_EQ(refusal_of([](wire::Req& req) { req.service = wire::TransportService::Rd; }),
              wire::RejectReason::InvalidTransport);
    EXPECT_EQ(refusal_of([](wire::Req& req) { req.service = wire::TransportService::Extended; }),
              wire::RejectReason::InvalidTransport);
    EXPECT_EQ(refusal_of([](wire::Req& req) {
                  req.service = wire::TransportService::Extended;
                  req.extended_transport = wire::kExtendedXrc + 1;
              }),
              wire::RejectReason::InvalidTransport);
    EXPECT_EQ(refusal_of([](wire::Req& req) { req.path_mtu = wire::PathMtu{0}; }), wire::RejectReason::InvalidPathMtu);
    EXPECT_EQ(refusal_of([](wire::Req& req) { req.path_mtu = wire::PathMtu{6}; }), wire::RejectReason::InvalidPathMtu);
    EXPECT_EQ(refusal_of([](wire::Req& req) { req.primary.local_gid[15] ^= 1U; }), wire::RejectReason::InvalidGid);
    EXPECT_EQ(refusal_of([](wire::Req& req) { req.primary.remote_gid[15] ^= 1U; }), wire::RejectReason::InvalidGid);
    EXPECT_EQ(server.count(Counter::BadRequest), 7U);
    EXPECT_EQ(refusal_of([](wire::Req& req) { req.service_id = wire::ServiceId{0x4321}; }),
              wire::RejectReason::InvalidServiceId);
    EXPECT_EQ(server.count(Counter::NoListener), 1U);
    EXPECT_EQ(refusal_of([](wire::Req&) {}), wire::RejectReason{});
}

TEST_F(CmRefusal, AnIpServiceIsRefusedToWhoeverNamesOtherEnds) {
    const wire::ServiceId service = wire::ip_service(wire::IpProtocol::Tcp, 7);
    ASSERT_EQ(server.manager.listen(service, 8), std::nullopt);
    const auto with_header = [&](wire::Gid source, wire::Gid destination) {
        return refusal_of([&](wire::Req& req) {
            req.service_id = service;
            emit_at(req.private_data.data(), wire::IpCmHeader{1, source, destination});
        });
    };
    wire::Gid other = kClientAddress.octets();
    other[15] ^= 0x40U;
    EXPECT_EQ(with_header(other, kServerAddress.octets()), wire::RejectReason::Consumer);
    EXPECT_EQ(with_header(kClientAddress.octets(), other), wire::RejectReason::Consumer);
    EXPECT_EQ(refusal_of([&](wire::Req& req) { req.service_id = service; }), wire::RejectReason::Consumer);
    EXPECT_EQ(with_header(kClientAddress.octets(), kServerAddress.octets()), wire::RejectReason{});
}

TEST_F(CmPair, AnAlternatePathIsDeclinedInTheReplyAndLaterOnes) {
    listen();
    (void)connect(request());
    wire::Req req = client.sent<wire::Req>();
    req.alternate.local_lid = 1;
    server.take(client, {5, req}, now);
    ASSERT_EQ(server.manager.accept(server.event<Requested>().id, acceptance(), now), std::nullopt);
    EXPECT_EQ(server.sent<wire::Rep>().failover, wire::Failover::NotSupported);
    server.take(client, {6, wire::Lap{{wire::CommId{3}, wire::CommId{4}}}}, now);
    const wire::Apr apr = server.sent<wire::Apr>();
    EXPECT_EQ(apr.ids, (wire::CommIds{wire::CommId{4}, wire::CommId{3}}));
    EXPECT_EQ(apr.status, wire::AlternatePathStatus::NotSupported);
    server.take(client, {7, apr}, now);
    EXPECT_TRUE(server.sends_nothing());
    EXPECT_EQ(server.count(Counter::Unexpected), 1U);
}

TEST_F(CmPair, ARequestThatIsIgnoredIsAsIfItHadNotCome) {
    listen(1);
    (void)connect(request());
    (void)client.sent<wire::Req>();
    for (std::uint32_t i = 1; i <= 3; ++i) {
        client.pass_last(server, now);
        const ConnectionId id = server.event<Requested>().id;
        ASSERT_EQ(server.manager.abandon(id, now, Parting::Ignores), std::nullopt);
        EXPECT_TRUE(server.has_no_event() && server.sends_nothing());
        EXPECT_EQ(server.manager.connections(), 0U);
        EXPECT_EQ(server.count(Counter::BacklogFull), i);
    }
    EXPECT_EQ(server.manager.next_deadline(), Instant::never());
    client.pass_last(server, now);
    const ConnectionId accepted = server.event<Requested>().id;
    ASSERT_EQ(server.manager.accept(accepted, acceptance(), now), std::nullopt);
    (void)server.sent<wire::Rep>();
    ASSERT_EQ(server.manager.abandon(accepted, now, Parting::Ignores), std::nullopt);
    (void)server.sent<wire::Rej>();  // it was answered
    EXPECT_EQ(server.count(Counter::BacklogFull), 3U);
}

TEST_F(CmPair, AFullBacklogIsSilentAndTheNextRetryGetsIn) {
    listen(2);
    std::vector<ConnectionId> waiting;
    std::vector<wire::MadBytes> requests;
    for (std::uint32_t i = 0; i < 3; ++i) {
        ConnectRequest asked = request();
        asked.qpn = Qpn{0x50 + i};
        (void)connect(asked);
        (void)client.sent<wire::Req>();
        requests.push_back(client.last.bytes);
        client.pass_last(server, now);
    }
    waiting = {server.event<Requested>().id, server.event<Requested>().id};
    EXPECT_TRUE(server.has_no_event() && server.sends_nothing());
    EXPECT_EQ(server.count(Counter::BacklogFull), 1U);
    ASSERT_EQ(server.manager.accept(waiting[0], acceptance(), now), std::nullopt);
    server.take(client, requests[2], now);
    EXPECT_TRUE(server.has_no_event());  // accepted, but not established: it still counts
    server.pass_all(client, now);
    ASSERT_EQ(client.manager.ready(client.event<Replied>().id, {}, now), std::nullopt);
    client.pass_all(server, now);
    (void)server.event<Established>();
    server.take(client, requests[2], now);
    EXPECT_EQ(server.event<Requested>().qp.remote_qpn, Qpn{0x52});
    ASSERT_EQ(server.manager.reject(waiting[1], {}, now), std::nullopt);
    ConnectRequest asked = request();
    asked.qpn = Qpn{0x53};
    (void)connect(asked);
    client.pass_all(server, now);
    EXPECT_EQ(server.event<Requested>().qp.remote_qpn, Qpn{0x53});
}

TEST_F(CmPair, AFloodIsNotAnsweredFasterThanAnswersLeave) {
    Config config = config_of(9);
    config.max_queued = 8;
    CmHost small(kServerAddress, config);
    (void)connect(request());
    wire::Req req = client.sent<wire::Req>();
    for (std::uint32_t i = 0; i < 1000; ++i) {
        req.local_comm_id = wire::CommId{i + 1};
        small.take(client, {i, req}, now);
    }
    EXPECT_EQ(small.count(Counter::NoListener), 7U);  // as many refusals as may wait to be sent
    EXPECT_EQ(small.count(Counter::Overload), 1000U - 7U);
    std::size_t queued = 0;
    while (!small.sends_nothing()) {
        ++queued;
    }
    EXPECT_EQ(queued, 7U);
}

TEST_F(CmPair, RequestsTakenBackKeepTheirPlacesUntilSomebodyHasLooked) {
    listen(4);
    (void)connect(request());
    wire::Req req = client.sent<wire::Req>();
    for (std::uint32_t i = 0; i < 1000; ++i) {
        req.local_comm_id = wire::CommId{i + 1};
        server.take(client, {i, req}, now);
        wire::Rej rej;
        rej.ids = {req.local_comm_id, wire::CommId{}};
        rej.reason = wire::RejectReason::Timeout;
        server.take(client, {i, rej}, now);
    }
    EXPECT_EQ(server.manager.connections(), 4U);
    std::size_t events = 0;
    while (!server.has_no_event()) {
        ++events;
    }
    EXPECT_EQ(events, 12U);
    EXPECT_EQ(server.manager.connections(), 0U);
}

TEST_F(CmPair, ARequestTakenBackGivesWayToNobodyUntilSomebodyHasLooked) {
    listen(2);
    (void)connect(request());
    wire::Req req = client.sent<wire::Req>();
    for (std::uint32_t i = 1; i <= 2; ++i) {
        req.local_comm_id = wire::CommId{i};
        server.take(client, {i, req}, now);
        wire::Rej rej;
        rej.ids = {req.local_comm_id, wire::CommId{}};
        rej.reason = wire::RejectReason::Timeout;
        server.take(client, {i, rej}, now);
    }
    CmHost third(net::IpAddress::from_v4(0x0a4d000c), config_of(9));
    ConnectRequest asked = request();
    asked.route = third.to(server);
    ASSERT_TRUE(third.manager.connect(asked, now).ok());
    const wire::Req other = third.sent<wire::Req>();
    third.pass_last(server, now);
    EXPECT_EQ(server.count(Counter::BacklogFull), 1U);
    for (int i = 0; i < 2; ++i) {
        const ConnectionId id = server.event<Requested>().id;
        EXPECT_EQ(server.event<Rejected>().id, id);
        EXPECT_EQ(server.event<Released>().id, id);
    }
    EXPECT_TRUE(server.has_no_event());
    third.pass_last(server, now);  // sent again
    EXPECT_EQ(server.event<Requested>().qp.remote_qpn, other.local_qpn);
}

TEST_F(CmPair, AFullTableRefusesOurOwnToo) {
    Config config = config_of(9);
    config.max_connections = 1;
    CmHost small(kClientAddress, config);
    ASSERT_TRUE(small.manager.connect(request(), now).ok());
    EXPECT_EQ(small.manager.connect(request(), now).reason(), CallRefusal::NoRoom);
}

TEST_F(CmPair, NamesAreNotUsedAgainSoon) {
    Config config = config_of(9);
    config.max_connections = 4;
    CmHost small(kClientAddress, config);
    std::vector<ConnectionId> names;
    for (int i = 0; i < 1000; ++i) {
        names.push_back(small.manager.connect(request(), now).value());
        ASSERT_EQ(small.manager.abandon(names.back(), now), std::nullopt);
    }
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

TEST_F(CmPair, MessagesForUnknownConnectionsAreAnsweredOnlyWhereItHelps) {
    const wire::CommIds ids{wire::CommId{3}, wire::CommId{4}};
    const wire::CommIds back{wire::CommId{4}, wire::CommId{3}};
    wire::Rep rep;
    rep.ids = ids;
    server.take(client, {1, rep}, now);
    const wire::Rej rej = server.sent<wire::Rej>();
    EXPECT_EQ(rej.ids, back);
    EXPECT_EQ(rej.reason, wire::RejectReason::InvalidCommId);
    EXPECT_EQ(rej.message, wire::Answered::Rep);
    wire::Dreq dreq;
    dreq.ids = ids;
    server.take(client, {1, dreq}, now);
    EXPECT_EQ(server.sent<wire::Drep>().ids, back);
    wire::Rej other;
    other.ids = ids;
    server.take(client, {1, other}, now);
    wire::Mra mra;
    mra.ids = ids;
    server.take(client, {1, mra}, now);
    server.take(client, {1, wire::Rtu{ids, {}}}, now);
    server.take(client, {1, wire::Drep{ids, {}}}, now);
    EXPECT_TRUE(server.sends_nothing());
    EXPECT_EQ(server.count(Counter::UnknownConnection), 6U);
}

TEST_F(CmPair, MessagesThatDoNotFitTheStateChangeNothing) {
    listen();
    ask();
    const auto unexpected_at_server = [this](const wire::CmMessage& message) {
        const std::uint64_t before = server.count(Counter::Unexpected);
        server.take(client, {1, message}, now);
        return server.count(Counter::Unexpected) - before == 1 && server.sends_nothing() && server.has_no_event() &&
               state_at(server, passive) == State::ReqRcvd;
    };
    const wire::CommIds ids{active, passive};
    wire::Rep rep;
    rep.ids = ids;
    wire::Mra mra;
    mra.ids = ids;
    mra.message = wire::Answered::Rep;
    wire::Mra of_another = mra;
    of_another.message = wire::Answered::Other;
    EXPECT_TRUE(unexpected_at_server(rep));
    EXPECT_TRUE(unexpected_at_server(mra));
    EXPECT_TRUE(unexpected_at_server(of_another));
    EXPECT_TRUE(unexpected_at_server(wire::Rtu{ids, {}}));
    EXPECT_TRUE(unexpected_at_server(wire::Drep{ids, {}}));
}

TEST_F(CmPair, NonsenseIsCountedByItsReason) {
    const std::vector<std::uint8_t> noise(256, 0x5a);
    server.take(client, noise, now);
    server.take(client, std::span(noise).first(100), now);
    EXPECT_EQ(server.manager.mad_drops().of(wire::MadDrop::BadVersion), 1U);
    EXPECT_EQ(server.manager.mad_drops().of(wire::MadDrop::BadSize), 1U);
    EXPECT_TRUE(server.sends_nothing());
}

// The verdicts that accept a message, by state: all others leave the connection as it is.
TEST(CmJudge, EachMessageIsTakenInItsStatesOnly) {
    const auto states_of = [](Message message, Verdict verdict) {
        std::vector<State> states;
        for (std::size_t state = 0; state < static_cast<std::size_t>(State::Count); ++state) {
            if (judge(static_cast<State>(state), message) == verdict) {
                states.push_back(static_cast<State>(state));
            }
        }
        return states;
    };
    using enum State;
    using States = std::vector<State>;
    EXPECT_EQ(states_of(Message::Rep, Verdict::TakeRep), (States{ReqSent, MraReqRcvd}));
    EXPECT_EQ(states_of(Message::Rtu, Verdict::TakeRtu), (States{RepSent, MraRepRcvd}));
    EXPECT_EQ(states_of(Message::Mra, Verdict::TakeMra), (States{ReqSent, RepSent}));
    EXPECT_EQ(states_of(Message::Rej, Verdict::TakeRej),
              (States{ReqSent, MraReqRcvd, RepRcvd, MraRepSent, ReqRcvd, MraReqSent, RepSent, MraRepRcvd,
                      State::Established, DreqSent}));
    EXPECT_EQ(states_of(Message::Dreq, Verdict::TakeDreq), (States{RepSent, MraRepRcvd, State::Established}));
    EXPECT_EQ(states_of(Message::Dreq, Verdict::CrossDreq), (States{DreqSent}));
    EXPECT_EQ(states_of(Message::Drep, Verdict::TakeDrep), (States{State::Established, DreqSent}));
    EXPECT_EQ(states_of(Message::Req, Verdict::AskForTime), (States{ReqRcvd}));
    EXPECT_EQ(states_of(Message::Rep, Verdict::AskForTime), (States{RepRcvd}));
    EXPECT_EQ(states_of(Message::Req, Verdict::Repeat), (States{MraReqSent, RepSent, TimeWait}));
    EXPECT_EQ(states_of(Message::Rep, Verdict::Repeat), (States{MraRepSent, State::Established, TimeWait}));
    EXPECT_EQ(states_of(Message::Dreq, Verdict::Repeat), (States{TimeWait}));
}

}  // namespace
}  // namespace cairn::cm
