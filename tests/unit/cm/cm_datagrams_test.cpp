// Services over datagrams: questions, answers, repeated questions, and questions without an answer.
#include "tests/unit/cm/cm_host.hpp"

namespace cairn::cm {
namespace {

class CmDatagrams : public CmPair {
protected:
    [[nodiscard]] ResolveRequest question() const {
        ResolveRequest request;
        request.route = client.to(server);
        request.service = kService;
        return request;
    }
    DatagramId resolve(const ResolveRequest& request) {
        const auto resolving = client.manager.datagrams().resolve(request, now);
        EXPECT_TRUE(resolving.ok());
        return resolving.ok() ? resolving.value() : DatagramId{};
    }
    Datagrams& serving() { return server.manager.datagrams(); }
};

TEST_F(CmDatagrams, AStandingAnswerIsGivenToEveryQuestionAndKeepsNothing) {
    const auto said = octets("version 3");
    ASSERT_EQ(serving().listen(kService, {}, DatagramService{Qpn{0x77}, Qkey{0x1234}, said}), std::nullopt);
    EXPECT_EQ(serving().listen(kService, {}, std::nullopt), CallRefusal::ServiceTaken);
    const DatagramId id = resolve(question());
    client.pass_all(server, now);
    server.pass_all(client, now);
    const Resolved resolved = client.event<Resolved>();
    EXPECT_EQ(resolved.id, id);
    EXPECT_EQ(resolved.status, wire::SidrStatus::Valid);
    EXPECT_EQ(resolved.qpn, Qpn{0x77});
    EXPECT_EQ(resolved.qkey, Qkey{0x1234});
    EXPECT_EQ(text_of(resolved.private_data), "version 3");
    EXPECT_EQ(client.manager.next_deadline(), Instant::never());
    EXPECT_EQ(server.manager.next_deadline(), Instant::never());
    server.pass_last(client, now);  // a late copy
    EXPECT_TRUE(client.has_no_event());
    EXPECT_EQ(client.count(Counter::UnknownConnection), 1U);
}

TEST_F(CmDatagrams, AQuestionIsAnsweredByItsUserOnceAndItsCopiesAlike) {
    const wire::ServiceId service = wire::ip_service(wire::IpProtocol::Udp, 7174);
    ASSERT_EQ(serving().listen(service, kServerAddress, std::nullopt), std::nullopt);
    ResolveRequest asked = question();
    asked.service = service;
    asked.source_port = 4000;
    asked.pkey = Pkey{0x8001};
    const auto said = octets("who?");
    asked.private_data = said;
    (void)resolve(asked);
    (void)client.sent<wire::SidrReq>();
    client.pass_last(server, now);
    client.pass_last(server, now);
    const DatagramRequested requested = server.event<DatagramRequested>();
    EXPECT_TRUE(server.has_no_event() && server.sends_nothing());
    EXPECT_EQ(requested.service, service);
    EXPECT_EQ(requested.route, server.to(client));
    EXPECT_EQ(requested.pkey, Pkey{0x8001});
    ASSERT_TRUE(requested.ip.has_value());
    EXPECT_EQ(requested.ip->source_port, 4000);
    EXPECT_EQ(text_of(requested.private_data), "who?");
    const auto told = octets("me");
    ASSERT_EQ(serving().answer(requested.id, wire::SidrStatus::Valid, {Qpn{5}, Qkey{6}, told}, now), std::nullopt);
    EXPECT_EQ(serving().answer(requested.id, wire::SidrStatus::Valid, {}, now), CallRefusal::WrongState);
    (void)server.sent<wire::SidrRep>();
    const wire::MadBytes answer = server.last.bytes;
    client.pass_last(server, now);  // the answer was lost
    (void)server.sent<wire::SidrRep>();
    EXPECT_EQ(server.last.bytes, answer);
    server.pass_last(client, now);
    EXPECT_EQ(text_of(client.event<Resolved>().private_data), "me");
    EXPECT_EQ(server.manager.next_deadline(), now + kDatagramAnswersKept);
    pass_time(server);
    EXPECT_EQ(serving().answer(requested.id, wire::SidrStatus::Valid, {}, now), CallRefusal::UnknownConnection);
}

TEST_F(CmDatagrams, UnknownServicesAndFalseEndsAreRefused) {
    (void)resolve(question());
    client.pass_all(server, now);
    server.pass_all(client, now);
    EXPECT_EQ(client.event<Resolved>().status, wire::SidrStatus::UnsupportedService);
    const wire::ServiceId service = wire::ip_service(wire::IpProtocol::Udp, 7174);
    ASSERT_EQ(serving().listen(service, {}, std::nullopt), std::nullopt);
    wire::SidrReq req;
    req.service_id = service;
    server.take(client, {1, req}, now);
    EXPECT_EQ(server.sent<wire::SidrRep>().status, wire::SidrStatus::Rejected);
    ASSERT_EQ(serving().unlisten(service, {}), std::nullopt);
    EXPECT_EQ(serving().unlisten(service, {}), CallRefusal::UnknownService);
}

TEST_F(CmDatagrams, AQuestionIsAskedAgainAndGivenUp) {
    const DatagramId id = resolve(question());
    (void)client.sent<wire::SidrReq>();
    const wire::MadBytes first = client.last.bytes;
    for (int retry = 0; retry < Config{}.max_retries.value; ++retry) {
        EXPECT_EQ(client.manager.next_deadline(), now + response_wait(Config{}, Config{}.response_timeout));
        pass_time(client);
        (void)client.sent<wire::SidrReq>();
        EXPECT_EQ(client.last.bytes, first);
    }
    pass_time(client);
    EXPECT_TRUE(client.sends_nothing());
    const Resolved resolved = client.event<Resolved>();
    EXPECT_EQ(resolved.id, id);
    EXPECT_FALSE(resolved.status.has_value());
    EXPECT_EQ(client.manager.next_deadline(), Instant::never());
}

TEST_F(CmDatagrams, OnlyTheAskedHostAnswersAndOnlyWhatWasAsked) {
    const DatagramId id = resolve(question());
    CmHost stranger(net::IpAddress::from_v4(0x0a4d0066));
    wire::SidrRep rep;
    rep.request_id = id;
    rep.service_id = kService;
    client.take(stranger, {1, rep}, now);
    EXPECT_EQ(client.count(Counter::WrongPeer), 1U);
    rep.service_id = wire::ServiceId{1};
    client.take(server, {1, rep}, now);
    EXPECT_EQ(client.count(Counter::Unexpected), 1U);
    EXPECT_TRUE(client.has_no_event());
    rep.status = wire::SidrStatus::NoQueuePair;  // some peers name no service in this case
    client.take(server, {1, rep}, now);
    EXPECT_EQ(client.event<Resolved>().status, wire::SidrStatus::NoQueuePair);
}

TEST_F(CmDatagrams, ACancelledQuestionHasNoAnswer) {
    const DatagramId id = resolve(question());
    EXPECT_EQ(client.manager.datagrams().cancel(id), std::nullopt);
    EXPECT_EQ(client.manager.datagrams().cancel(id), CallRefusal::UnknownConnection);
    EXPECT_EQ(client.manager.next_deadline(), Instant::never());
}

TEST_F(CmDatagrams, QuestionsAreBoundedAndAnsweredOnesMakeRoom) {
    Config config = config_of(9);
    config.max_datagram_requests = 2;
    CmHost small(kServerAddress, config);
    Datagrams& few = small.manager.datagrams();
    ASSERT_EQ(few.listen(kService, {}, std::nullopt), std::nullopt);
    wire::SidrReq req;
    req.service_id = kService;
    const auto ask = [&](std::uint32_t id) {
        req.request_id = wire::SidrRequestId{id};
        small.take(client, {id, req}, now);
    };
    ask(1);
    ask(2);
    ask(3);
    const DatagramId first = small.event<DatagramRequested>().id;
    (void)small.event<DatagramRequested>();
    EXPECT_TRUE(small.has_no_event());
    EXPECT_EQ(small.count(Counter::BacklogFull), 1U);
    ASSERT_EQ(few.answer(first, wire::SidrStatus::Rejected, {}, now), std::nullopt);
    ask(3);
    (void)small.event<DatagramRequested>();
    EXPECT_EQ(few.answer(first, wire::SidrStatus::Rejected, {}, now), CallRefusal::UnknownConnection);
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(few.resolve({small.to(client), kService}, now).ok());
    }
    EXPECT_EQ(few.resolve({small.to(client), kService}, now).reason(), CallRefusal::NoRoom);
}

TEST_F(CmDatagrams, AQuestionThatIsIgnoredIsAsIfItHadNotCome) {
    ASSERT_EQ(serving().listen(kService, {}, std::nullopt), std::nullopt);
    (void)resolve(question());
    (void)client.sent<wire::SidrReq>();
    for (std::uint32_t i = 1; i <= 3; ++i) {
        client.pass_last(server, now);
        const DatagramId id = server.event<DatagramRequested>().id;
        serving().ignore(id);
        serving().ignore(id);  // it does not exist
        EXPECT_TRUE(server.has_no_event() && server.sends_nothing());
        EXPECT_EQ(server.count(Counter::BacklogFull), i);
    }
    client.pass_last(server, now);
    const DatagramId id = server.event<DatagramRequested>().id;
    ASSERT_EQ(serving().answer(id, wire::SidrStatus::Rejected, {}, now), std::nullopt);
    serving().ignore(id);
    (void)server.sent<wire::SidrRep>();
    client.pass_last(server, now);
    (void)server.sent<wire::SidrRep>();  // the server keeps the answer
    EXPECT_EQ(server.count(Counter::BacklogFull), 3U);
}

TEST_F(CmDatagrams, ANumberUsedAgainInAnotherLifeIsANewQuestionOnceAnswered) {
    ASSERT_EQ(serving().listen(kService, {}, std::nullopt), std::nullopt);
    wire::SidrReq req;
    req.service_id = kService;
    req.request_id = wire::SidrRequestId{1};
    server.take(client, {1, req}, now);
    const DatagramId first = server.event<DatagramRequested>().id;
    server.take(client, {2, req}, now);
    EXPECT_TRUE(server.has_no_event());
    ASSERT_EQ(serving().answer(first, wire::SidrStatus::Valid, {Qpn{1}, Qkey{1}, {}}, now), std::nullopt);
    server.take(client, {2, req}, now);
    EXPECT_NE(server.event<DatagramRequested>().id, first);
}

TEST_F(CmDatagrams, WhatDoesNotFitOrMakesNoSenseIsRefusedAtOnce) {
    const std::vector<std::uint8_t> much(217, 1);
    const auto first = [&much](std::size_t bytes) { return std::span(much).first(bytes); };
    ResolveRequest asked = question();
    asked.private_data = first(217);
    EXPECT_EQ(client.manager.datagrams().resolve(asked, now).reason(), CallRefusal::PrivateDataTooLong);
    asked.service = wire::ip_service(wire::IpProtocol::Udp, 1);
    asked.private_data = first(181);
    EXPECT_EQ(client.manager.datagrams().resolve(asked, now).reason(), CallRefusal::PrivateDataTooLong);
    asked.private_data = first(180);
    EXPECT_TRUE(client.manager.datagrams().resolve(asked, now).ok());
    for (const char* const nobody : {"0.0.0.0", "224.0.0.1", "255.255.255.255", "2001:db8::1"}) {
        asked.route.remote = net::IpAddress::parse(nobody).value();
        EXPECT_EQ(client.manager.datagrams().resolve(asked, now).reason(), CallRefusal::BadAddress) << nobody;
    }
    EXPECT_EQ(serving().listen(kService, {}, DatagramService{Qpn{1}, Qkey{1}, first(137)}),
              CallRefusal::PrivateDataTooLong);
    ASSERT_EQ(serving().listen(kService, {}, std::nullopt), std::nullopt);
    (void)resolve(question());
    client.pass_all(server, now);
    const DatagramId id = server.event<DatagramRequested>().id;
    EXPECT_EQ(serving().answer(id, wire::SidrStatus::Valid, {Qpn{1}, Qkey{1}, first(137)}, now),
              CallRefusal::PrivateDataTooLong);
    EXPECT_EQ(serving().answer(id, wire::SidrStatus::Valid, {Qpn{1}, Qkey{1}, first(136)}, now), std::nullopt);
}

}  // namespace
}  // namespace cairn::cm
