// Messages forged by others than the peer: they end and hinder no connection, and names cannot be guessed.
#include <bit>
#include <cstdlib>

#include "tests/unit/cm/cm_host.hpp"

namespace cairn::cm {
namespace {

class CmForged : public CmPair {
protected:
    // Takes a request in the name of the server, whose local name is that of its connection.
    ConnectionId take_forged_request() {
        wire::Req req;
        req.local_comm_id = passive;
        req.local_qpn = acceptance().qpn;
        req.service_id = kService;
        req.path_mtu = wire::path_mtu_of(1024);
        req.primary.local_gid = kServerAddress.octets();
        req.primary.remote_gid = kClientAddress.octets();
        client.take(server, {1, req}, now);
        return client.event<Requested>().id;
    }
    void ask_while_listening() {
        ASSERT_EQ(client.manager.listen(kService, 8), std::nullopt);
        listen();
        ask();
    }
    // Checks that the server's reply is accepted although that request is remembered.
    void expect_reply() {
        ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
        server.pass_all(client, now);
        EXPECT_EQ(client.event<Replied>().id, active);
    }
};

TEST_F(CmForged, NobodyElseCanEndOrChangeAConnection) {
    listen();
    establish();
    CmHost stranger(net::IpAddress::from_v4(0x0a4d0066));
    wire::Dreq dreq;
    dreq.ids = {active, passive};
    dreq.remote_qpn = Qpn{0x22};
    server.take(stranger, {1, dreq}, now);
    wire::Rej rej;
    rej.ids = {active, passive};
    server.take(stranger, {1, rej}, now);
    server.take(stranger, {1, wire::Drep{{active, passive}, {}}}, now);
    EXPECT_EQ(server.count(Counter::WrongPeer), 3U);
    EXPECT_TRUE(server.sends_nothing() && server.has_no_event());
    // The correct address with wrong names or numbers.
    dreq.remote_qpn = Qpn{0x23};
    server.take(client, {1, dreq}, now);
    dreq.remote_qpn = Qpn{0x22};
    dreq.ids.local = wire::CommId{active.value + 1};
    server.take(client, {1, dreq}, now);
    EXPECT_EQ(server.count(Counter::Unexpected), 2U);
    rej.ids.local = wire::CommId{active.value + 1};
    server.take(client, {1, rej}, now);
    EXPECT_EQ(server.count(Counter::UnknownConnection), 1U);
    EXPECT_TRUE(server.sends_nothing() && server.has_no_event());
    EXPECT_EQ(state_at(server, passive), State::Established);
}

// One end's name alone, which others than the peer may have seen, names no established connection.
TEST_F(CmForged, AForgedRefusalEndsNothing) {
    listen();
    establish();
    const auto refuse = [&](CmHost& host, const CmHost& peer, wire::CommIds ids) {
        wire::Rej rej;
        rej.ids = ids;
        rej.reason = wire::RejectReason::Timeout;
        host.take(peer, {1, rej}, now);
    };
    refuse(server, client, {wire::CommId{}, passive});
    refuse(server, client, {active, wire::CommId{}});
    refuse(server, client, {wire::CommId{}, wire::CommId{}});
    refuse(client, server, {wire::CommId{}, active});
    refuse(client, server, {passive, wire::CommId{}});
    EXPECT_EQ(server.count(Counter::UnknownConnection), 3U);
    EXPECT_EQ(client.count(Counter::UnknownConnection), 2U);
    EXPECT_TRUE(server.has_no_event() && client.has_no_event());
    EXPECT_EQ(state_at(server, passive), State::Established);
    EXPECT_EQ(state_at(client, active), State::Established);
}

TEST_F(CmForged, AForgedRequestForAConnectedQueuePairEndsNothing) {
    listen();
    establish();
    CmHost forger(kClientAddress, config_of(66));
    ASSERT_TRUE(forger.manager.connect(request(), now).ok());
    forger.pass_all(server, now);
    EXPECT_EQ(server.pass_all(client, now), 2U);  // a refusal, and a question whether the connection lives
    EXPECT_EQ(client.count(Counter::UnknownConnection) + client.count(Counter::Unexpected), 2U);
    EXPECT_TRUE(client.sends_nothing() && client.has_no_event() && server.has_no_event());
    EXPECT_EQ(state_at(server, passive), State::Established);
    EXPECT_EQ(state_at(client, active), State::Established);
}

TEST_F(CmForged, AForgedRequestHindersTheRealOneNeitherBeforeNorAfter) {
    listen();
    CmHost forger(kClientAddress, config_of(66));
    ASSERT_TRUE(forger.manager.connect(request(), now).ok());
    forger.pass_all(server, now);
    ASSERT_EQ(server.manager.accept(server.event<Requested>().id, acceptance(), now), std::nullopt);
    while (!server.sends_nothing()) {
    }
    ask();
    ASSERT_TRUE(forger.manager.connect(request(), now).ok());
    forger.pass_all(server, now);
    (void)server.event<Requested>();
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    server.pass_all(client, now);
    ASSERT_EQ(client.manager.ready(client.event<Replied>().id, {}, now), std::nullopt);
    client.pass_all(server, now);
    EXPECT_EQ(server.event<Established>().id, passive);
    EXPECT_EQ(server.count(Counter::Stale), 0U);
}

// The first request is answered or ends. A later request with the same name is repeated by its sender.
TEST_F(CmForged, AForgedRequestOfTheSameNameEndsAndRefusesNothing) {
    listen();
    ask();
    wire::Req forged = std::get<wire::Req>(wire::CmMad::parse(client.last.bytes).value().message);
    forged.local_qpn = Qpn{0x99};
    server.take(client, {1, forged}, now);
    EXPECT_EQ(server.count(Counter::Stale), 1U);
    EXPECT_TRUE(server.sends_nothing() && server.has_no_event());
    EXPECT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    server.take(client, {1, forged}, now);
    (void)server.sent<wire::Rep>();
    EXPECT_TRUE(server.sends_nothing() && server.has_no_event());
}

// The client also listens. A forged request that knows the name which its server will give has no effect on the
// connection.
TEST_F(CmForged, AForgedRequestOfTheServerDoesNotHinderItsReply) {
    ask_while_listening();
    const ConnectionId forged = take_forged_request();
    ASSERT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
    server.pass_all(client, now);
    EXPECT_EQ(client.event<Rejected>().id, forged);
    (void)client.event<Released>();
    EXPECT_EQ(client.event<Replied>().id, active);
}

// Only its wait remembers the request, until it ends.
TEST_F(CmForged, AForgedRequestThatOurProgramRejectedDoesNotHinderTheReply) {
    ask_while_listening();
    ASSERT_EQ(client.manager.reject(take_forged_request(), {}, now), std::nullopt);
    (void)client.sent<wire::Rej>();
    expect_reply();
}

TEST_F(CmForged, AForgedRequestThatOurProgramAbandonedDoesNotHinderTheReply) {
    ask_while_listening();
    ASSERT_EQ(client.manager.abandon(take_forged_request(), now), std::nullopt);
    expect_reply();
}

TEST_F(CmForged, NamesAndTransactionsFollowFromNoneBefore) {
    std::vector<std::uint32_t> names;
    std::vector<std::uint32_t> of_requests;  // the upper halves of their transactions
    std::vector<std::uint32_t> of_questions;
    for (int i = 0; i < 64; ++i) {
        names.push_back(connect(request()).value);
        (void)client.sent<wire::Req>();
        of_requests.push_back(
            static_cast<std::uint32_t>(wire::CmMad::parse(client.last.bytes).value().transaction >> 32U));
        names.push_back(client.manager.datagrams().resolve({client.to(server), kService}, now).value().value);
        (void)client.sent<wire::SidrReq>();
        of_questions.push_back(
            static_cast<std::uint32_t>(wire::CmMad::parse(client.last.bytes).value().transaction >> 32U));
    }
    const auto looks_random = [](const std::vector<std::uint32_t>& values) {
        int ones = 0;
        for (std::size_t i = 1; i < values.size(); ++i) {
            ones += std::popcount(values[i] ^ values[i - 1]);
        }
        const int expected = static_cast<int>(values.size() - 1) * 16;
        return std::abs(ones - expected) < expected / 4;
    };
    EXPECT_TRUE(looks_random(names));
    EXPECT_TRUE(looks_random(of_requests));
    EXPECT_TRUE(looks_random(of_questions));
}

}  // namespace
}  // namespace cairn::cm
