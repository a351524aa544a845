// Lost, doubled and late messages while a connection is made; slow users; peers that refuse or vanish.
#include "tests/unit/cm/cm_host.hpp"

namespace cairn::cm {
namespace {

const Duration kAnswerWait = response_wait(Config{}, Config{}.response_timeout);

TEST_F(CmPair, ARequestIsSentAgainAtItsTimesAndGivenUpAfterTheLast) {
    active = connect(request());
    (void)client.sent<wire::Req>();
    const wire::MadBytes first = client.last.bytes;
    for (int retry = 0; retry < Config{}.max_retries.value; ++retry) {
        EXPECT_EQ(client.manager.next_deadline(), now + kAnswerWait);
        client.manager.on_timeout(now + kAnswerWait - nanoseconds(1));
        EXPECT_TRUE(client.sends_nothing());
        pass_time(client);
        (void)client.sent<wire::Req>();
        EXPECT_EQ(client.last.bytes, first);
    }
    EXPECT_TRUE(client.has_no_event());
    pass_time(client);
    const wire::Rej rej = client.sent<wire::Rej>();
    EXPECT_EQ(rej.reason, wire::RejectReason::Timeout);
    EXPECT_EQ(rej.message, wire::Answered::Other);
    EXPECT_EQ(rej.ids, (wire::CommIds{active, wire::CommId{}}));
    EXPECT_EQ(rej.info_bytes, 8);
    EXPECT_EQ(read_raw<Be64>(rej.info.data()).get(), 0x1111'0000'2222'0001U * 0x0101);
    EXPECT_EQ(client.event<Unreachable>().id, active);
    EXPECT_EQ(client.event<Released>().id, active);
    EXPECT_EQ(client.count(Counter::Retransmitted), 15U);
    EXPECT_EQ(client.count(Counter::GivenUp), 1U);
}

TEST_F(CmPair, AServerHearsThatItsClientHasGivenUp) {
    listen();
    ask();
    ASSERT_EQ(client.manager.abandon(active, now), std::nullopt);
    EXPECT_EQ(client.manager.connections(), 0U);
    client.pass_all(server, now);
    const Rejected rejected = server.event<Rejected>();
    EXPECT_EQ(rejected.id, passive);
    EXPECT_EQ(rejected.reason, wire::RejectReason::Timeout);
    EXPECT_TRUE(rejected.by_peer);
    EXPECT_EQ(rejected.info.size, 8);
    EXPECT_EQ(server.manager.accept(passive, acceptance(), now), CallRefusal::UnknownConnection);
    EXPECT_EQ(server.event<Released>().id, passive);
    EXPECT_EQ(server.manager.connections(), 0U);
}

TEST_F(CmPair, AReplyIsSentAgainAtItsTimesAndWhenTheRequestComesAgain) {
    listen();
    ask();
    const wire::MadBytes req = client.last.bytes;
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    (void)server.sent<wire::Rep>();
    const wire::MadBytes rep = server.last.bytes;
    server.take(client, req, now);
    (void)server.sent<wire::Rep>();
    EXPECT_EQ(server.last.bytes, rep);
    EXPECT_EQ(server.count(Counter::Duplicate), 1U);
    for (int copy = 0; copy < kMostReplyCopies; ++copy) {
        EXPECT_EQ(server.manager.next_deadline(), now + kAnswerWait);
        pass_time(server);
        (void)server.sent<wire::Rep>();
        EXPECT_EQ(server.last.bytes, rep);
    }
    pass_time(server);
    EXPECT_TRUE(server.sends_nothing());
    EXPECT_EQ(server.event<Unreachable>().id, passive);
    EXPECT_EQ(state_at(server, passive), State::TimeWait);
    pass_time(server);
    EXPECT_EQ(server.event<Released>().id, passive);
}

TEST_F(CmPair, AReplyThatComesAgainIsToldAgainThatTheClientIsReady) {
    listen();
    ask();
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    (void)server.sent<wire::Rep>();
    server.pass_last(client, now);
    (void)client.event<Replied>();
    ASSERT_EQ(client.manager.ready(active, octets("ready"), now), std::nullopt);
    (void)client.sent<wire::Rtu>();
    const wire::MadBytes rtu = client.last.bytes;  // lost
    server.pass_last(client, now);
    (void)client.sent<wire::Rtu>();
    EXPECT_EQ(client.last.bytes, rtu);
    EXPECT_TRUE(client.has_no_event());
    client.pass_last(server, now);
    client.pass_last(server, now);
    EXPECT_EQ(text_of(server.event<Established>().private_data), "ready");
    EXPECT_TRUE(server.has_no_event());
}

TEST_F(CmPair, TheClientSaysAFewTimesThatItIsReady) {
    listen();
    ask_and_accept();
    ASSERT_EQ(client.manager.ready(active, octets("ready"), now), std::nullopt);
    (void)client.sent<wire::Rtu>();
    const wire::MadBytes rtu = client.last.bytes;  // lost
    for (int copy = 0; copy < kReadyCopies; ++copy) {
        EXPECT_EQ(client.manager.next_deadline(), now + kAnswerWait);
        pass_time(client);
        (void)client.sent<wire::Rtu>();
        EXPECT_EQ(client.last.bytes, rtu);
        client.pass_last(server, now);
    }
    EXPECT_EQ(client.manager.next_deadline(), Instant::never());
    EXPECT_EQ(text_of(server.event<Established>().private_data), "ready");
    EXPECT_TRUE(server.has_no_event());
    EXPECT_EQ(server.count(Counter::Duplicate), 0U);
}

TEST_F(CmPair, APeerIsAskedForTimeBeforeItSendsAgain) {
    listen();
    ask();
    const Instant asked_at = now;
    const wire::MadBytes req = client.last.bytes;
    pass_time(server);
    EXPECT_LT(now, asked_at + kAnswerWait);
    const wire::Mra mra = server.sent<wire::Mra>();
    EXPECT_EQ(mra.ids, (wire::CommIds{passive, active}));
    EXPECT_EQ(mra.message, wire::Answered::Req);
    EXPECT_EQ(mra.service_timeout, Config{}.service_timeout);
    EXPECT_EQ(server.manager.next_deadline(), Instant::never());
    server.pass_last(client, now);
    EXPECT_EQ(state_at(client, active), State::MraReqRcvd);
    EXPECT_EQ(client.manager.next_deadline(), now + wire::duration_of(Config{}.service_timeout) + kAnswerWait);
    const Instant extended = client.manager.next_deadline();
    server.pass_last(client, now + seconds(1));  // a late copy does not extend it
    EXPECT_EQ(client.manager.next_deadline(), extended);
    server.take(client, req, now);
    (void)server.sent<wire::Mra>();  // sent again when the request comes again
    pass_time(client);
    (void)client.sent<wire::Req>();
    EXPECT_EQ(client.manager.next_deadline(), now + kAnswerWait);
    EXPECT_EQ(state_at(client, active), State::ReqSent);
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    server.pass_all(client, now);
    EXPECT_EQ(client.event<Replied>().id, active);
}

TEST_F(CmPair, AServerIsAskedForTimeWhenTheClientIsSlowToBeReady) {
    listen();
    ask_and_accept();
    const wire::MadBytes rep = server.last.bytes;
    pass_time(client);
    EXPECT_EQ(client.sent<wire::Mra>().message, wire::Answered::Rep);
    client.pass_last(server, now);
    EXPECT_EQ(state_at(server, passive), State::MraRepRcvd);
    EXPECT_EQ(server.manager.next_deadline(), now + wire::duration_of(Config{}.service_timeout) + kAnswerWait);
    client.take(server, rep, now);
    EXPECT_EQ(client.sent<wire::Mra>().message, wire::Answered::Rep);
    pass_time(server);
    (void)server.sent<wire::Rep>();
    EXPECT_EQ(state_at(server, passive), State::RepSent);
    ASSERT_EQ(client.manager.ready(active, {}, now), std::nullopt);
    client.pass_all(server, now);
    EXPECT_EQ(server.event<Established>().id, passive);
}

TEST_F(CmPair, ADuplicateIsAnsweredByAskingForTimeWhileTheUserThinks) {
    listen();
    ask();
    client.pass_last(server, now);
    EXPECT_EQ(server.sent<wire::Mra>().message, wire::Answered::Req);
    EXPECT_EQ(state_at(server, passive), State::MraReqSent);
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    (void)server.sent<wire::Rep>();
    server.pass_last(client, now);
    (void)client.event<Replied>();
    server.pass_last(client, now);
    EXPECT_EQ(client.sent<wire::Mra>().message, wire::Answered::Rep);
}

TEST_F(CmPair, HoursThatAPeerAsksForAreCutShort) {
    active = connect(request());
    (void)client.sent<wire::Req>();
    wire::Mra mra;
    mra.ids = {wire::CommId{77}, active};
    mra.service_timeout = wire::CmTimeout{31};
    client.take(server, {0, mra}, now);
    EXPECT_EQ(client.manager.next_deadline(), now + wire::duration_of(kLongestService) + kAnswerWait);
    wire::Req req;
    req.primary.local_gid = kClientAddress.octets();
    req.primary.remote_gid = kServerAddress.octets();
    req.primary.ack_timeout = wire::CmTimeout{31};
    req.local_response_timeout = wire::CmTimeout{31};
    req.remote_response_timeout = wire::CmTimeout{31};
    req.path_mtu = wire::path_mtu_of(1024);
    req.service_id = kService;
    listen();
    server.take(client, {9, req}, now);
    EXPECT_EQ(server.manager.next_deadline(), now + wire::duration_of(kLongestResponse) / 2);
    passive = server.event<Requested>().id;
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    EXPECT_EQ(server.manager.next_deadline(), now + kLongestReplyWait * 2);
    ASSERT_EQ(server.manager.established(passive), std::nullopt);
    wire::Dreq dreq;
    dreq.ids = {req.local_comm_id, passive};
    dreq.remote_qpn = acceptance().qpn;
    server.take(client, {10, dreq}, now);
    ASSERT_EQ(server.manager.disconnect(passive, {}, now), std::nullopt);
    EXPECT_EQ(server.manager.next_deadline(), now + wire::duration_of(kLongestTimeWait));
}

TEST_F(CmPair, ARefusalReachesTheClientAndIsRepeatedForLateRequests) {
    listen();
    ask();
    const wire::MadBytes req = client.last.bytes;
    const auto info = octets("info");
    const auto said = octets("no");
    ASSERT_EQ(server.manager.reject(passive, {wire::RejectReason::NoQueuePair, info, said}, now), std::nullopt);
    const wire::Rej rej = server.sent<wire::Rej>();
    EXPECT_EQ(rej.ids, (wire::CommIds{wire::CommId{}, active}));
    EXPECT_EQ(rej.message, wire::Answered::Req);
    const wire::MadBytes sent = server.last.bytes;
    server.take(client, req, now);  // the refusal was lost
    (void)server.sent<wire::Rej>();
    EXPECT_EQ(server.last.bytes, sent);
    server.pass_last(client, now);
    const Rejected rejected = client.event<Rejected>();
    EXPECT_EQ(rejected.id, active);
    EXPECT_EQ(rejected.reason, wire::RejectReason::NoQueuePair);
    EXPECT_EQ(text_of(rejected.info), "info");
    EXPECT_EQ(text_of(rejected.private_data), "no");
    EXPECT_EQ(client.event<Released>().id, active);
    EXPECT_EQ(client.manager.connections(), 0U);
    pass_time(server);
    EXPECT_EQ(server.manager.connections(), 0U);
    EXPECT_TRUE(server.has_no_event());
}

TEST_F(CmPair, ARefusalIsKeptAsLongAsTheClientMayWaitBeforeItAsksAgain) {
    listen();
    ask();
    const wire::MadBytes req = client.last.bytes;
    pass_time(server);
    (void)server.sent<wire::Mra>();
    ASSERT_EQ(server.manager.reject(passive, {}, now), std::nullopt);
    EXPECT_EQ(server.sent<wire::Rej>().ids.local, passive);  // the client knows the name by the MRA
    EXPECT_EQ(server.manager.next_deadline(), now + wire::duration_of(Config{}.service_timeout) + kAnswerWait * 2);
    now = server.manager.next_deadline() - nanoseconds(1);
    server.take(client, req, now);
    EXPECT_EQ(server.sent<wire::Rej>().message, wire::Answered::Req);
    EXPECT_EQ(server.manager.next_deadline(), now + kAnswerWait * 2);
    EXPECT_TRUE(server.has_no_event());
}

TEST_F(CmPair, AReplyCanBeTakenBackWhetherItArrivedOrNot) {
    listen();
    ask();
    const wire::MadBytes req = client.last.bytes;
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    (void)server.sent<wire::Rep>();  // lost
    ASSERT_EQ(server.manager.reject(passive, {}, now), std::nullopt);
    EXPECT_EQ(server.sent<wire::Rej>().message, wire::Answered::Req);
    EXPECT_EQ(server.sent<wire::Rej>().message, wire::Answered::Other);
    server.take(client, req, now);
    EXPECT_EQ(server.sent<wire::Rej>().message, wire::Answered::Req);
    server.pass_last(client, now);
    EXPECT_EQ(client.event<Rejected>().reason, wire::RejectReason::Consumer);
    pass_time(server);
    EXPECT_EQ(server.event<Released>().id, passive);
}

TEST_F(CmPair, AClientMayRefuseWhatItIsRepliedAndSaysSoAgain) {
    listen();
    ask_and_accept();
    const wire::MadBytes rep = server.last.bytes;
    ASSERT_EQ(client.manager.reject(active, {}, now), std::nullopt);
    EXPECT_EQ(client.sent<wire::Rej>().message, wire::Answered::Rep);
    client.take(server, rep, now);
    EXPECT_EQ(client.sent<wire::Rej>().message, wire::Answered::Rep);
    client.pass_last(server, now);
    EXPECT_EQ(server.event<Rejected>().reason, wire::RejectReason::Consumer);
    EXPECT_EQ(state_at(server, passive), State::TimeWait);
    pass_time(server);
    client.manager.on_timeout(now);
    EXPECT_EQ(server.event<Released>().id, passive);
    EXPECT_EQ(client.event<Released>().id, active);
}

}  // namespace
}  // namespace cairn::cm
