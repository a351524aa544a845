// Connections by address and port between two devices: made, refused, ended, broken.
#include "lib/verbs/connector.hpp"

#include <cstring>

#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::verbs {
namespace {

constexpr std::array<std::uint8_t, 4> kHello{1, 2, 3, 4};

bool begins_with(const cm::PrivateBytes& data, std::span<const std::uint8_t> with) {
    return data.size >= with.size() && std::equal(with.begin(), with.end(), data.octets.begin());
}

TEST_F(VerbsPair, ConnectsAndCarriesAMessage) {
    connect();
    EXPECT_EQ(a.qps[0]->state(), QpState::Rts);
    EXPECT_EQ(b.qps[0]->state(), QpState::Rts);
    EXPECT_EQ(a.qps[0]->attributes().dest_qpn, b.qps[0]->qpn());
    EXPECT_EQ(a.qps[0]->attributes().send_psn, b.qps[0]->attributes().receive_psn);
    EXPECT_EQ(a.qps[0]->attributes().path_mtu_bytes, 4096U);
    EXPECT_EQ(a.qps[0]->attributes().max_rd_atomic, 16U);
    a.words[0] = 0x1122334455667788U;
    ASSERT_EQ(write(1, 8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*a.sends).size(), 1U);
    EXPECT_EQ(b.words[0], a.words[0]);
}

TEST_F(VerbsPair, AnAddressOfTheOtherFamilyIsAnErrorAtOnce) {
    a.qps.push_back(a.make_qp());
    ConnectTo to = to_b();
    to.remote = net::IpAddress::parse("fd00::2").value();
    const auto connected = a.connector->connect(*a.qps.back(), to, now);
    ASSERT_FALSE(connected.ok());
    EXPECT_NE(connected.error().text().find("fd00::2"), std::string::npos);
    EXPECT_FALSE(a.connector->resolve(to.remote, 7, {}, now).ok());
    EXPECT_FALSE(a.device.create_ah(to.remote, 0xc000, now).ok());
    to.remote = net::IpAddress{};
    EXPECT_FALSE(a.connector->connect(*a.qps.back(), to, now).ok());
    EXPECT_TRUE(a.connector->connect(*a.qps.back(), to_b(), now).ok());
}

TEST_F(VerbsPair, AnUnreliableQueuePairConnectsToOneOfItsKind) {
    QpCapacity unreliable;
    unreliable.service = Service::Uc;
    connect(unreliable);
    a.words[0] = 0x1122334455667788U;
    ASSERT_EQ(write(1, 8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*a.sends).size(), 1U);
    EXPECT_EQ(b.words[0], a.words[0]);
    EXPECT_FALSE(a.qps[0]->attributes().selective || a.qps[0]->attributes().delayed_acks);

    a.qps.push_back(a.make_qp(unreliable));
    b.qps.push_back(b.make_qp());
    ASSERT_TRUE(a.connector->connect(*a.qps.back(), to_b(), now).ok());
    run();
    const auto requested = b.expect_event<cm::Requested>();
    EXPECT_EQ(requested.qp.transport, wire::TransportService::Uc);
    EXPECT_FALSE(b.connector->accept(requested.id, *b.qps.back(), choice(), now).ok());
    b.qps.push_back(b.make_qp(unreliable));
    EXPECT_TRUE(b.connector->accept(requested.id, *b.qps.back(), choice(), now).ok());
}

TEST_F(VerbsPair, EarlyPacketsAreHeldAndAcknowledgementsDelayedWhereBothEndsAgreeOnIt) {
    connect();
    EXPECT_TRUE(a.qps[0]->attributes().selective && b.qps[0]->attributes().selective);
    EXPECT_TRUE(a.qps[0]->attributes().delayed_acks && b.qps[0]->attributes().delayed_acks);
    for (const bool at_a : {true, false}) {
        a.qps.push_back(a.make_qp());
        b.qps.push_back(b.make_qp());
        ConnectTo to = to_b();
        to.choice.features = at_a ? 0 : to.choice.features;
        ASSERT_TRUE(a.connector->connect(*a.qps.back(), to, now).ok());
        run();
        ConnectionChoice answer = choice();
        answer.features = at_a ? answer.features : 0;
        ASSERT_TRUE(b.connector->accept(b.expect_event<cm::Requested>().id, *b.qps.back(), answer, now).ok());
        run();
        (void)a.expect_event<cm::Established>();
        (void)b.expect_event<cm::Established>();
        EXPECT_FALSE(a.qps.back()->attributes().selective || b.qps.back()->attributes().selective) << at_a;
        EXPECT_FALSE(a.qps.back()->attributes().delayed_acks || b.qps.back()->attributes().delayed_acks) << at_a;
    }
}

TEST_F(VerbsPair, NoMoreReadsAreAskedAtATimeThanThePeerAnswers) {
    connect();
    a.qps.push_back(a.make_qp());
    b.qps.push_back(b.make_qp());
    ConnectTo to = to_b();
    to.choice.responder_resources = 3;
    ASSERT_TRUE(a.connector->connect(*a.qps.back(), to, now).ok());
    run();
    ConnectionChoice answer = choice();
    answer.responder_resources = 5;
    ASSERT_TRUE(b.connector->accept(b.expect_event<cm::Requested>().id, *b.qps.back(), answer, now).ok());
    run();
    EXPECT_EQ(a.qps.back()->attributes().max_dest_rd_atomic, 3U);
    EXPECT_EQ(b.qps.back()->attributes().max_rd_atomic, 3U);
    EXPECT_EQ(b.qps.back()->attributes().max_dest_rd_atomic, 5U);
    EXPECT_EQ(a.qps.back()->attributes().max_rd_atomic, 5U);
}

TEST_F(VerbsPair, APeerIsWaitedForNoLongerThanItIsChosen) {
    ConnectionChoice choosy = choice();
    EXPECT_EQ(choosy.ack_timeout_of(0), 0U);
    EXPECT_EQ(choosy.ack_timeout_of(31), 31U);
    choosy.ack_timeout_max = 5;
    choosy.rnr_retry_max = 3;
    EXPECT_EQ(choosy.ack_timeout_of(0), 5U);
    EXPECT_EQ(choosy.ack_timeout_of(5), 5U);
    EXPECT_EQ(choosy.ack_timeout_of(4), 4U);
    connect();
    EXPECT_GT(b.qps[0]->attributes().ack_timeout, 5U);
    EXPECT_EQ(b.qps[0]->attributes().rnr_retry, 7U);
    a.qps.push_back(a.make_qp());
    b.qps.push_back(b.make_qp());
    ASSERT_TRUE(a.connector->connect(*a.qps.back(), to_b(), now).ok());
    run();
    ASSERT_TRUE(b.connector->accept(b.expect_event<cm::Requested>().id, *b.qps.back(), choosy, now).ok());
    run();
    EXPECT_EQ(b.qps.back()->attributes().ack_timeout, 5U);
    EXPECT_EQ(b.qps.back()->attributes().rnr_retry, 3U);
    EXPECT_GT(a.qps.back()->attributes().ack_timeout, 5U);
}

TEST_F(VerbsPair, ARequestSaysWhatTheLostWordOfThePeerWouldHaveSaid) {
    constexpr std::uint64_t kReadyToUse = 1;  // the second message of the active end
    a.port.fate = [](std::uint64_t number) { return number == kReadyToUse ? 0 : 1; };
    a.qps.push_back(a.make_qp());
    b.qps.push_back(b.make_qp());
    ASSERT_TRUE(b.connector->listen(kPort, 1).ok());
    ASSERT_TRUE(a.connector->connect(*a.qps[0], to_b(), now).ok());
    run();
    const auto requested = b.expect_event<cm::Requested>();
    ASSERT_TRUE(b.connector->accept(requested.id, *b.qps[0], choice(), now).ok());
    run();
    (void)a.expect_event<cm::Established>();
    EXPECT_FALSE(b.connector->poll_event().has_value());
    ASSERT_EQ(write(1, 8), PostVerdict::Posted);
    run();
    EXPECT_EQ(b.expect_event<cm::Established>().id, requested.id);
    pass(seconds(3));
    EXPECT_FALSE(b.connector->poll_event().has_value());
    ASSERT_TRUE(b.connector->disconnect(requested.id, {}, now).ok());
    run();
    (void)a.expect_event<cm::DisconnectRequested>();
}

TEST_F(VerbsPair, BothEndsUseTheUdpPortOfTheOneThatConnects) {
    connections::HomeConfig config;
    config.udp_source_port = 0xc042;
    a.open_connector(config);
    connect();
    EXPECT_EQ(a.qps[0]->path()->key().udp_source_port, 0xc042);
    EXPECT_EQ(b.qps[0]->path()->key().udp_source_port, 0xc042);
}

TEST_F(VerbsPair, PrivateDataGoesWithEachMessage) {
    a.qps.push_back(a.make_qp());
    b.qps.push_back(b.make_qp());
    ASSERT_TRUE(b.connector->listen(kPort, 1).ok());
    const auto asked = a.connector->connect(*a.qps[0], to_b(kHello), now);
    ASSERT_TRUE(asked.ok());
    run();
    const auto requested = b.expect_event<cm::Requested>();
    EXPECT_TRUE(begins_with(requested.private_data, kHello));
    EXPECT_EQ(requested.route.remote, a.port.local_address());
    constexpr std::array<std::uint8_t, 3> kAnswer{9, 8, 7};
    ASSERT_TRUE(b.connector->accept(requested.id, *b.qps[0], choice(kAnswer), now).ok());
    run();
    EXPECT_TRUE(begins_with(a.expect_event<cm::Established>().private_data, kAnswer));
    (void)b.expect_event<cm::Established>();
    ASSERT_TRUE(a.connector->disconnect(asked.value(), kHello, now).ok());
    run();
    EXPECT_TRUE(begins_with(b.expect_event<cm::DisconnectRequested>().private_data, kHello));
    ASSERT_TRUE(b.connector->disconnect(requested.id, kAnswer, now).ok());
    run();
    EXPECT_TRUE(begins_with(a.expect_event<cm::Disconnected>().private_data, kAnswer));
}

TEST_F(VerbsPair, ADisconnectStopsBothQueuePairsAndReleasesThemInTheEnd) {
    const auto [at_a, at_b] = connect();
    ASSERT_TRUE(a.connector->disconnect(at_a, {}, now).ok());
    run();
    (void)b.expect_event<cm::DisconnectRequested>();
    EXPECT_EQ(b.qps[0]->state(), QpState::Err);
    EXPECT_TRUE(b.qps[0]->in_use());
    ASSERT_TRUE(b.connector->disconnect(at_b, {}, now).ok());
    run();
    (void)a.expect_event<cm::Disconnected>();
    EXPECT_EQ(a.qps[0]->state(), QpState::Err);
    pass(seconds(10));
    EXPECT_EQ(a.expect_event<cm::Released>().id, at_a);
    EXPECT_EQ(b.expect_event<cm::Released>().id, at_b);
    EXPECT_TRUE(destroy(a.qps[0]).ok());
    EXPECT_TRUE(destroy(b.qps[0]).ok());
}

TEST_F(VerbsPair, NobodyListeningIsARefusal) {
    a.qps.push_back(a.make_qp());
    ASSERT_TRUE(a.connector->connect(*a.qps[0], to_b(), now).ok());
    run();
    EXPECT_EQ(a.expect_event<cm::Rejected>().reason, wire::RejectReason::InvalidServiceId);
    EXPECT_EQ(a.qps[0]->state(), QpState::Reset);
    (void)a.expect_event<cm::Released>();
    EXPECT_FALSE(a.qps[0]->in_use());
}

TEST_F(VerbsPair, ARefusalCarriesItsReasonInPrivateData) {
    a.qps.push_back(a.make_qp());
    ASSERT_TRUE(b.connector->listen(kPort, 1).ok());
    ASSERT_TRUE(a.connector->connect(*a.qps[0], to_b(), now).ok());
    run();
    ASSERT_TRUE(b.connector->reject(b.expect_event<cm::Requested>().id, kHello, now).ok());
    run();
    const auto rejected = a.expect_event<cm::Rejected>();
    EXPECT_EQ(rejected.reason, wire::RejectReason::Consumer);
    EXPECT_TRUE(begins_with(rejected.private_data, kHello));
}

TEST_F(VerbsPair, AnAbsentHostIsUnreachable) {
    a.qps.push_back(a.make_qp());
    a.port.fate = [](std::uint64_t) { return 0; };
    ASSERT_TRUE(a.connector->connect(*a.qps[0], to_b(), now).ok());
    pass(seconds(30));
    (void)a.expect_event<cm::Unreachable>();
    (void)a.expect_event<cm::Released>();
}

TEST_F(VerbsPair, LostMessagesDelayAConnectionOnly) {
    a.port.fate = b.port.fate = [](std::uint64_t number) { return number % 3 == 2 ? 1 : 0; };
    a.qps.push_back(a.make_qp());
    b.qps.push_back(b.make_qp());
    ASSERT_TRUE(b.connector->listen(kPort, 1).ok());
    ASSERT_TRUE(a.connector->connect(*a.qps[0], to_b(), now).ok());
    pass(seconds(5));
    ASSERT_TRUE(b.connector->accept(b.expect_event<cm::Requested>().id, *b.qps[0], choice(), now).ok());
    pass(seconds(20));
    (void)a.expect_event<cm::Established>();
    (void)b.expect_event<cm::Established>();
}

TEST_F(VerbsPair, APeerThatVanishesFailsTheWorkInTheEnd) {
    connect();
    a.port.fate = [](std::uint64_t) { return 0; };
    ASSERT_EQ(write(1, 8), PostVerdict::Posted);
    pass(seconds(60));
    const std::vector<Completion> completions = drain(*a.sends);
    ASSERT_EQ(completions.size(), 1U);
    EXPECT_EQ(completions[0].status, CompletionStatus::RetryExceeded);
    EXPECT_EQ(a.qps[0]->state(), QpState::Err);
}

TEST_F(VerbsPair, APathMtuThatThePortDoesNotCarryIsRefused) {
    a.qps.push_back(a.make_qp());
    ConnectTo to = to_b();
    to.path_mtu_bytes = 8192;
    EXPECT_FALSE(a.connector->connect(*a.qps[0], to, now).ok());
}

TEST_F(VerbsPair, AQueuePairHasOneConnectionAtATime) {
    const auto [at_a, at_b] = connect();
    EXPECT_FALSE(a.connector->connect(*a.qps[0], to_b(), now).ok());
    EXPECT_FALSE(destroy(a.qps[0]).ok());
    a.connector->abandon(at_a, now);
    EXPECT_EQ(a.qps[0]->state(), QpState::Err);
    EXPECT_TRUE(destroy(a.qps[0]).ok());
    a.qps.clear();
    run();
    EXPECT_EQ(b.expect_event<cm::DisconnectRequested>().id, at_b);
}

TEST_F(VerbsPair, MisuseOfTheConnectorIsAnErrorThatSaysWhy) {
    a.qps.push_back(a.make_qp());
    EXPECT_FALSE(b.connector->listen(kPort, 0).ok());
    ASSERT_TRUE(b.connector->listen(kPort, 1).ok());
    const Status taken = b.connector->listen(kPort, 1);
    ASSERT_FALSE(taken.ok());
    EXPECT_NE(taken.error().text().find("another port"), std::string::npos);
    EXPECT_TRUE(b.connector->unlisten(kPort).ok());
    EXPECT_FALSE(b.connector->unlisten(kPort).ok());
    const std::array<std::uint8_t, 57> too_long{};
    EXPECT_FALSE(a.connector->connect(*a.qps[0], to_b(too_long), now).ok());
    EXPECT_FALSE(a.qps[0]->in_use());
    EXPECT_FALSE(a.connector->accept(ConnectionId{77}, *a.qps[0], choice(), now).ok());
    EXPECT_FALSE(a.connector->disconnect(ConnectionId{77}, {}, now).ok());
    EXPECT_FALSE(connections::Home::create(connections::Agent::create(), *a.worker, {}).ok());
}

TEST_F(VerbsPair, NumbersAndFirstPsnsFollowFromTheSeedAlone) {
    connect();
    connect();
    const auto psn = [](const std::unique_ptr<Qp>& qp) { return qp->attributes().send_psn; };
    EXPECT_NE(psn(a.qps[0]), psn(a.qps[1]));
    EXPECT_NE(a.qps[0]->qpn(), b.qps[0]->qpn());
    VerbsHost same("10.0.0.9", 5);
    EXPECT_EQ(same.make_qp()->qpn(), a.qps[0]->qpn());
}

TEST_F(VerbsPair, WhatIsAbandonedIsHeardOfNoMore) {
    a.qps.push_back(a.make_qp());
    b.qps.push_back(b.make_qp());
    ASSERT_TRUE(b.connector->listen(kPort, 1).ok());
    const ConnectionId id = a.connector->connect(*a.qps[0], to_b(), now).value();
    run();
    const auto requested = b.expect_event<cm::Requested>();
    ASSERT_TRUE(b.connector->accept(requested.id, *b.qps[0], choice(), now).ok());
    run();
    a.connector->abandon(id, now);  // its Established has not been polled
    EXPECT_FALSE(a.connector->poll_event().has_value());
    run();
    a.connector->abandon(id, now);  // a second call changes nothing
    b.connector->abandon(requested.id, now);
    pass(seconds(30));
    EXPECT_FALSE(a.connector->poll_event().has_value());
    EXPECT_FALSE(b.connector->poll_event().has_value());
    EXPECT_EQ(a.qps[0]->state(), QpState::Err);
}

TEST_F(VerbsPair, NobodyIsConnectedToOrAskedWhoIsNoHostOrOfAnotherFamily) {
    a.qps.push_back(a.make_qp());
    for (const char* const nobody : {"0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "2001:db8::1"}) {
        ConnectTo to = to_b();
        to.remote = net::IpAddress::parse(nobody).value();
        EXPECT_FALSE(a.connector->connect(*a.qps[0], to, now).ok()) << nobody;
        EXPECT_FALSE(a.connector->resolve(to.remote, kPort, {}, now).ok()) << nobody;
    }
    EXPECT_EQ(a.qps[0]->state(), QpState::Reset);
}

}  // namespace
}  // namespace cairn::verbs
