// Connections that are established, the events of each end, and private data.
#include <numeric>

#include "tests/unit/cm/cm_host.hpp"

namespace cairn::cm {
namespace {

TEST_F(CmPair, AConnectionComesAboutAndEndsWithEveryStepTold) {
    listen();
    establish();
    EXPECT_EQ(state_at(client, active), State::Established);
    EXPECT_EQ(state_at(server, passive), State::Established);
    EXPECT_EQ(server.manager.next_deadline(), Instant::never());

    ASSERT_EQ(client.manager.disconnect(active, {}, now), std::nullopt);
    client.pass_all(server, now);
    EXPECT_EQ(server.event<DisconnectRequested>().id, passive);
    ASSERT_EQ(server.manager.disconnect(passive, {}, now), std::nullopt);
    server.pass_all(client, now);
    const Disconnected ended = client.event<Disconnected>();
    EXPECT_EQ(ended.id, active);
    EXPECT_FALSE(ended.by_timeout);
    EXPECT_EQ(state_at(client, active), State::TimeWait);
    EXPECT_EQ(state_at(server, passive), State::TimeWait);
    EXPECT_TRUE(client.has_no_event());
    pass_time(client);
    server.manager.on_timeout(now);
    EXPECT_EQ(client.event<Released>().id, active);
    EXPECT_EQ(server.event<Released>().id, passive);
    EXPECT_EQ(client.manager.connections() + server.manager.connections(), 0U);
    EXPECT_TRUE(client.has_no_event() && server.has_no_event());
    EXPECT_EQ(client.count(Counter::Unexpected) + server.count(Counter::Unexpected), 0U);
}

TEST_F(CmPair, BothEndsLearnHowToMoveTheirQueuePairs) {
    listen();
    ConnectRequest asked = request();
    asked.transport = wire::TransportService::Uc;
    asked.retry_count = wire::RetryCount{5};
    asked.rnr_retry = wire::RetryCount{6};
    asked.pkey = Pkey{0x8123};
    asked.flow_label = wire::FlowLabel{0x54321};
    asked.traffic_class = 0x68;
    asked.srq = true;
    active = connect(asked);
    client.pass_all(server, now);
    const Requested requested = server.event<Requested>();
    EXPECT_EQ(requested.service, kService);
    EXPECT_EQ(requested.route, server.to(client));
    EXPECT_FALSE(requested.ip.has_value());
    EXPECT_EQ(requested.qp.transport, wire::TransportService::Uc);
    EXPECT_EQ(requested.qp.remote_qpn, Qpn{0x11});
    EXPECT_EQ(requested.qp.send_psn, Psn{0x100});
    EXPECT_EQ(requested.qp.path_mtu_bytes, 4096U);
    EXPECT_EQ(requested.qp.pkey, Pkey{0x8123});
    EXPECT_EQ(requested.qp.max_dest_rd_atomic, 8);
    EXPECT_EQ(requested.qp.max_rd_atomic, 4);
    EXPECT_EQ(requested.qp.ack_timeout, wire::CmTimeout{15});
    EXPECT_EQ(requested.qp.retry_count, wire::RetryCount{5});
    EXPECT_EQ(requested.qp.rnr_retry, wire::RetryCount{6});
    EXPECT_EQ(requested.qp.flow_label, wire::FlowLabel{0x54321});
    EXPECT_EQ(requested.qp.traffic_class, 0x68);
    EXPECT_TRUE(requested.qp.srq);

    AcceptParameters accepted = acceptance();
    accepted.responder_resources = 2;
    accepted.rnr_retry = wire::RetryCount{3};
    ASSERT_EQ(server.manager.accept(requested.id, accepted, now), std::nullopt);
    server.pass_all(client, now);
    const Replied replied = client.event<Replied>();
    EXPECT_EQ(replied.id, active);
    EXPECT_EQ(replied.qp.transport, wire::TransportService::Uc);
    EXPECT_EQ(replied.qp.remote_qpn, Qpn{0x22});
    EXPECT_EQ(replied.qp.send_psn, Psn{0x200});
    EXPECT_EQ(replied.qp.path_mtu_bytes, 4096U);
    EXPECT_EQ(replied.qp.max_rd_atomic, 2);       // READs that the server answers at a time
    EXPECT_EQ(replied.qp.max_dest_rd_atomic, 4);  // the server wanted 16, but 4 were offered
    EXPECT_EQ(replied.qp.retry_count, wire::RetryCount{5});
    EXPECT_EQ(replied.qp.rnr_retry, wire::RetryCount{3});
    EXPECT_FALSE(replied.qp.srq);
}

TEST_F(CmPair, AServerThatWantsMoreThanIsOfferedGetsWhatIsOffered) {
    listen();
    active = connect(request());
    (void)client.sent<wire::Req>();
    wire::Rep rep;
    rep.ids = {wire::CommId{9}, active};
    rep.initiator_depth = 200;
    rep.responder_resources = 200;
    client.take(server, {1, rep}, now);
    const Replied replied = client.event<Replied>();
    EXPECT_EQ(replied.qp.max_dest_rd_atomic, 4);
    EXPECT_EQ(replied.qp.max_rd_atomic, 8);
}

TEST_F(CmPair, EveryMessageCarriesPrivateData) {
    listen();
    ConnectRequest asked = request();
    const auto said = octets("in REQ");
    asked.private_data = said;
    active = connect(asked);
    client.pass_all(server, now);
    const Requested requested = server.event<Requested>();
    EXPECT_EQ(text_of(requested.private_data), "in REQ");
    EXPECT_EQ(requested.private_data.size, 84);
    ASSERT_EQ(server.manager.ask_for_time(requested.id, wire::CmTimeout{20}, octets("in MRA")), std::nullopt);
    EXPECT_EQ(server.sent<wire::Mra>().private_data[0], 'i');
    AcceptParameters accepted = acceptance();
    const auto answered = octets("in REP");
    accepted.private_data = answered;
    ASSERT_EQ(server.manager.accept(requested.id, accepted, now), std::nullopt);
    server.pass_all(client, now);
    EXPECT_EQ(text_of(client.event<Replied>().private_data), "in REP");
    ASSERT_EQ(client.manager.ready(active, octets("in RTU"), now), std::nullopt);
    client.pass_all(server, now);
    EXPECT_EQ(text_of(server.event<Established>().private_data), "in RTU");
    ASSERT_EQ(client.manager.disconnect(active, octets("in DREQ"), now), std::nullopt);
    client.pass_all(server, now);
    EXPECT_EQ(text_of(server.event<DisconnectRequested>().private_data), "in DREQ");
    ASSERT_EQ(server.manager.disconnect(requested.id, octets("in DREP"), now), std::nullopt);
    server.pass_all(client, now);
    EXPECT_EQ(text_of(client.event<Disconnected>().private_data), "in DREP");
}

TEST_F(CmPair, PrivateDataThatDoesNotFitIsRefusedAtOnce) {
    listen();
    const std::vector<std::uint8_t> much(225, 1);
    const auto first = [&much](std::size_t bytes) { return std::span(much).first(bytes); };
    ConnectRequest asked = request();
    asked.private_data = first(85);
    EXPECT_EQ(client.manager.connect(asked, now).reason(), CallRefusal::PrivateDataTooLong);
    asked.features = 0;  // leaves the trailer's room
    asked.private_data = first(93);
    EXPECT_EQ(client.manager.connect(asked, now).reason(), CallRefusal::PrivateDataTooLong);
    asked.service = wire::ip_service(wire::IpProtocol::Tcp, 7);
    asked.private_data = first(57);
    EXPECT_EQ(client.manager.connect(asked, now).reason(), CallRefusal::PrivateDataTooLong);
    EXPECT_EQ(client.manager.connections(), 0U);
    asked.private_data = first(56);
    EXPECT_TRUE(client.manager.connect(asked, now).ok());
    (void)client.sent<wire::Req>();

    ask();
    AcceptParameters accepted = acceptance();
    accepted.private_data = first(197);
    EXPECT_EQ(server.manager.accept(passive, accepted, now), CallRefusal::PrivateDataTooLong);
    accepted.features = wire::kFeatureSelective;
    accepted.private_data = first(189);
    EXPECT_EQ(server.manager.accept(passive, accepted, now), CallRefusal::PrivateDataTooLong);
    EXPECT_EQ(server.manager.reject(passive, {wire::RejectReason::Consumer, first(73), {}}, now),
              CallRefusal::PrivateDataTooLong);
    EXPECT_EQ(server.manager.reject(passive, {wire::RejectReason::Consumer, {}, first(149)}, now),
              CallRefusal::PrivateDataTooLong);
    EXPECT_EQ(server.manager.ask_for_time(passive, wire::CmTimeout{20}, first(223)), CallRefusal::PrivateDataTooLong);
    accepted.private_data = first(188);
    ASSERT_EQ(server.manager.accept(passive, accepted, now), std::nullopt);
    server.pass_all(client, now);
    EXPECT_EQ(client.manager.ready(active, first(225), now), CallRefusal::PrivateDataTooLong);
    ASSERT_EQ(client.manager.ready(active, first(224), now), std::nullopt);
    EXPECT_EQ(client.manager.disconnect(active, first(221), now), CallRefusal::PrivateDataTooLong);
}

TEST_F(CmPair, PeersAgreeOnFeaturesThatBothHave) {
    listen();
    ConnectRequest asked = request();
    asked.features = wire::kFeatureSelective | 0x10U;
    active = connect(asked);
    client.pass_all(server, now);
    const Requested requested = server.event<Requested>();
    EXPECT_EQ(requested.features, wire::kFeatureSelective | 0x10U);
    AcceptParameters accepted = acceptance();
    accepted.features = wire::kFeatureSelective | 0x20U;  // the last was never offered
    ASSERT_EQ(server.manager.accept(requested.id, accepted, now), std::nullopt);
    server.pass_all(client, now);
    const Replied replied = client.event<Replied>();
    EXPECT_EQ(replied.features, wire::kFeatureSelective);
    EXPECT_EQ(replied.private_data.size, 188);
}

TEST_F(CmPair, APeerWithoutFeaturesSeesNoneAndKeepsAllOfItsPrivateData) {
    listen();
    ConnectRequest asked = request();
    asked.features = 0;
    active = connect(asked);
    client.pass_all(server, now);
    const Requested requested = server.event<Requested>();
    EXPECT_EQ(requested.features, 0U);
    EXPECT_EQ(requested.private_data.size, 92);
    ASSERT_EQ(server.manager.accept(requested.id, acceptance(), now), std::nullopt);
    server.pass_all(client, now);
    EXPECT_EQ(client.event<Replied>().private_data.size, 196);
}

TEST_F(CmPair, AnIpServiceIsAskedForByAddressAndPort) {
    const wire::ServiceId service = wire::ip_service(wire::IpProtocol::Tcp, 7174);
    ASSERT_EQ(server.manager.listen(service, 8), std::nullopt);
    ConnectRequest asked = request();
    asked.service = service;
    asked.source_port = 40000;
    const auto said = octets("hello");
    asked.private_data = said;
    active = connect(asked);
    client.pass_all(server, now);
    const Requested requested = server.event<Requested>();
    ASSERT_TRUE(requested.ip.has_value());
    EXPECT_EQ(requested.ip->source, kClientAddress);
    EXPECT_EQ(requested.ip->source_port, 40000);
    EXPECT_EQ(requested.ip->destination, kServerAddress);
    EXPECT_EQ(text_of(requested.private_data), "hello");
    EXPECT_EQ(requested.private_data.size, 92 - 36 - 8);
}

TEST_F(CmPair, AListenerAtOneAddressGoesBeforeOneAtAll) {
    const net::IpAddress other = net::IpAddress::from_v4(0x0a4d00fe);
    ASSERT_EQ(server.manager.listen(kService, 1, kServerAddress), std::nullopt);
    ASSERT_EQ(server.manager.listen(kService, 1), std::nullopt);
    EXPECT_EQ(server.manager.listen(kService, 1), CallRefusal::ServiceTaken);
    EXPECT_EQ(server.manager.listen(kService, 1, kServerAddress), CallRefusal::ServiceTaken);
    ask();
    CmHost elsewhere(other);
    ConnectRequest asked = request();
    asked.route.remote = other;
    asked.qpn = Qpn{0x12};
    (void)connect(asked);
    (void)client.sent<wire::Req>();
    server.manager.on_mad({other, kClientAddress}, client.last.bytes, now);  // each listener has a backlog of its own
    (void)server.event<Requested>();
    EXPECT_EQ(server.manager.unlisten(kService, kServerAddress), std::nullopt);
    EXPECT_EQ(server.manager.unlisten(kService, kServerAddress), CallRefusal::UnknownService);
    asked = request();
    asked.qpn = Qpn{0x13};
    (void)connect(asked);
    client.pass_all(server, now);  // goes to the listener of any address, whose backlog is full
    EXPECT_TRUE(server.has_no_event());
    EXPECT_EQ(server.count(Counter::BacklogFull), 1U);
}

TEST_F(CmPair, ManyConnectionsAtOnceGetNamesOfTheirOwn) {
    constexpr std::uint32_t kMany = 3000;
    listen(kMany);
    std::vector<ConnectionId> actives;
    for (std::uint32_t i = 0; i < kMany; ++i) {
        ConnectRequest asked = request();
        asked.qpn = Qpn{0x1000 + i};
        actives.push_back(connect(asked));
        client.pass_all(server, now);
    }
    for (std::uint32_t i = 0; i < kMany; ++i) {
        const Requested requested = server.event<Requested>();
        EXPECT_EQ(requested.qp.remote_qpn, Qpn{0x1000 + i});
        AcceptParameters accepted = acceptance();
        accepted.qpn = Qpn{0x9000 + i};
        ASSERT_EQ(server.manager.accept(requested.id, accepted, now), std::nullopt);
        server.pass_all(client, now);
    }
    for (std::uint32_t i = 0; i < kMany; ++i) {
        const Replied replied = client.event<Replied>();
        EXPECT_EQ(replied.id, actives[i]);
        EXPECT_EQ(replied.qp.remote_qpn, Qpn{0x9000 + i});
        ASSERT_EQ(client.manager.ready(replied.id, {}, now), std::nullopt);
    }
    EXPECT_EQ(client.pass_all(server, now), kMany);
    for (std::uint32_t i = 0; i < kMany; ++i) {
        (void)server.event<Established>();
    }
    std::sort(actives.begin(), actives.end());
    EXPECT_EQ(std::unique(actives.begin(), actives.end()), actives.end());
}

TEST_F(CmPair, AHostConnectsToItself) {
    listen();
    ConnectRequest asked = request();
    asked.route = server.to(server);
    const auto connected = server.manager.connect(asked, now);
    ASSERT_TRUE(connected.ok());
    server.pass_all(server, now);
    passive = server.event<Requested>().id;
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    server.pass_all(server, now);
    EXPECT_EQ(server.event<Replied>().id, connected.value());
    ASSERT_EQ(server.manager.ready(connected.value(), {}, now), std::nullopt);
    server.pass_all(server, now);
    EXPECT_EQ(server.event<Established>().id, passive);
    ASSERT_EQ(server.manager.disconnect(passive, {}, now), std::nullopt);
    server.pass_all(server, now);
    EXPECT_EQ(server.event<DisconnectRequested>().id, connected.value());
    ASSERT_EQ(server.manager.disconnect(connected.value(), {}, now), std::nullopt);
    server.pass_all(server, now);
    EXPECT_EQ(server.event<Disconnected>().id, passive);
    EXPECT_EQ(server.manager.counters().total(), 0U);
}

TEST_F(CmPair, CallsThatMakeNoSenseAreRefused) {
    listen();
    EXPECT_EQ(client.manager.ready(ConnectionId{1}, {}, now), CallRefusal::UnknownConnection);
    EXPECT_EQ(client.manager.accept(ConnectionId{1}, {}, now), CallRefusal::UnknownConnection);
    EXPECT_EQ(client.manager.established(ConnectionId{1}), CallRefusal::UnknownConnection);
    EXPECT_EQ(client.manager.reject(ConnectionId{1}, {}, now), CallRefusal::UnknownConnection);
    EXPECT_EQ(client.manager.ask_for_time(ConnectionId{1}, {}, {}), CallRefusal::UnknownConnection);
    EXPECT_EQ(client.manager.disconnect(ConnectionId{1}, {}, now), CallRefusal::UnknownConnection);
    EXPECT_EQ(client.manager.abandon(ConnectionId{1}, now), CallRefusal::UnknownConnection);
    EXPECT_EQ(client.manager.listen(kService, 0), CallRefusal::BadParameters);
    ConnectRequest asked = request();
    asked.path_mtu_bytes = 1500;
    EXPECT_EQ(client.manager.connect(asked, now).reason(), CallRefusal::BadParameters);
    asked = request();
    asked.transport = wire::TransportService::Rd;
    EXPECT_EQ(client.manager.connect(asked, now).reason(), CallRefusal::BadParameters);
    asked = request();
    for (const char* const nobody : {"0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1", "2001:db8::1"}) {
        asked.route.remote = net::IpAddress::parse(nobody).value();
        EXPECT_EQ(client.manager.connect(asked, now).reason(), CallRefusal::BadAddress) << nobody;
    }

    ask();
    EXPECT_EQ(client.manager.ready(active, {}, now), CallRefusal::WrongState);
    EXPECT_EQ(client.manager.accept(active, {}, now), CallRefusal::WrongState);
    EXPECT_EQ(client.manager.reject(active, {}, now), CallRefusal::WrongState);
    EXPECT_EQ(client.manager.ask_for_time(active, {}, {}), CallRefusal::WrongState);
    EXPECT_EQ(client.manager.disconnect(active, {}, now), CallRefusal::WrongState);
    EXPECT_EQ(server.manager.ready(passive, {}, now), CallRefusal::WrongState);
    EXPECT_EQ(server.manager.established(passive), CallRefusal::WrongState);
    EXPECT_EQ(server.manager.disconnect(passive, {}, now), CallRefusal::WrongState);
    EXPECT_TRUE(client.sends_nothing() && server.sends_nothing());
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    EXPECT_EQ(server.manager.accept(passive, acceptance(), now), CallRefusal::WrongState);
}

TEST_F(CmPair, DataThatComesBeforeTheLastWordEstablishesTheConnection) {
    listen();
    ask_and_accept();
    ASSERT_EQ(client.manager.ready(active, {}, now), std::nullopt);
    ASSERT_EQ(server.manager.established(passive), std::nullopt);
    EXPECT_EQ(server.manager.next_deadline(), Instant::never());
    client.pass_all(server, now);
    EXPECT_TRUE(server.has_no_event());
    EXPECT_EQ(server.manager.counters().total(), 0U);
    EXPECT_EQ(state_at(server, passive), State::Established);
}

}  // namespace
}  // namespace cairn::cm
