// Replays recorded conversations of Linux's connection manager (Soft-RoCE): each side of ours gets the messages of the
// other side, and must send the recorded ones. They are compared after replacing unforeseeable values: names of
// connections and transactions.
#include "tests/support/golden_mads.hpp"
#include "tests/unit/cm/cm_host.hpp"

namespace cairn::cm {
namespace {

// Returns Linux's default configuration.
Config linux_config(std::uint64_t guid) {
    Config config;
    config.seed = {0x1234'5678'9abc'def0U, 0};
    config.ca_guid = guid;
    config.response_timeout = wire::CmTimeout{20};
    config.packet_lifetime = wire::CmTimeout{18};
    return config;
}

// Each test replays one golden trace, by its name.
#define SKIP_WITHOUT(mads, trace)                                                             \
    if (mads.empty() && !test::traces_are_golden()) {                                         \
        GTEST_SKIP() << "replays the golden trace " << trace << ", which is not among these"; \
    }

constexpr std::uint64_t kServerGuid = 0x505400fffe770010U;
constexpr std::uint64_t kClientGuid = 0x505400fffe770011U;

class CmGolden : public testing::Test {
protected:
    // Returns a recorded message of the peer as it would be addressed to us.
    static wire::MadBytes renamed(const wire::MadBytes& mad, wire::CommId from, wire::CommId to) {
        wire::CmMad parsed = wire::CmMad::parse(mad).value();
        std::visit(
            [&](auto& message) {
                if constexpr (requires { message.ids; }) {
                    message.ids.local = message.ids.local == from ? to : message.ids.local;
                    message.ids.remote = message.ids.remote == from ? to : message.ids.remote;
                }
                if constexpr (requires { message.local_comm_id; }) {
                    message.local_comm_id = message.local_comm_id == from ? to : message.local_comm_id;
                }
            },
            parsed.message);
        return parsed.bytes();
    }
    // Returns a message of ours with the recording's transaction.
    static wire::MadBytes as_recorded(const OutMad& mad, const wire::MadBytes& recorded, wire::CommId ours,
                                      wire::CommId theirs) {
        wire::CmMad parsed = wire::CmMad::parse(renamed(mad.bytes, ours, theirs)).value();
        parsed.transaction = wire::CmMad::parse(recorded).value().transaction;
        return parsed.bytes();
    }
    // Checks the next message of the host, with the recorded name in place of its own one for the connection.
    static void expect_sent(CmHost& host, const wire::MadBytes& recorded, wire::CommId ours, wire::CommId theirs) {
        const std::optional<OutMad> mad = host.manager.poll_transmit();
        ASSERT_TRUE(mad.has_value());
        EXPECT_EQ(as_recorded(*mad, recorded, ours, theirs), recorded);
    }
    [[nodiscard]] ConnectRequest rping(const wire::Req& recorded, std::uint16_t source_port) const {
        ConnectRequest request;
        request.route = client.to(server);
        request.service = recorded.service_id;
        request.source_port = source_port;
        request.qpn = recorded.local_qpn;
        request.starting_psn = recorded.starting_psn;
        request.path_mtu_bytes = 4096;
        request.flow_label = recorded.primary.flow_label;
        request.features = 0;
        return request;
    }

    CmHost client{kClientAddress, linux_config(kClientGuid)};
    CmHost server{kServerAddress, linux_config(kServerGuid)};
    Instant now{1};
};

TEST_F(CmGolden, OurServerAnswersTheClientOfRpingAsLinuxDid) {
    const auto mads = test::golden_mads("cm_rping");
    SKIP_WITHOUT(mads, "cm_rping");
    ASSERT_EQ(mads.size(), 5U);
    const wire::Rep recorded = std::get<wire::Rep>(wire::CmMad::parse(mads[1]).value().message);
    ASSERT_EQ(server.manager.listen(wire::ip_service(wire::IpProtocol::Tcp, 7174), 1), std::nullopt);
    server.take(client, mads[0], now);
    const Requested requested = server.event<Requested>();
    ASSERT_TRUE(requested.ip.has_value());
    EXPECT_EQ(requested.ip->source_port, 0x818c);
    EXPECT_EQ(requested.qp.send_psn, Psn{0xffdc25});  // PSN of the server's first READ in the recording
    EXPECT_EQ(requested.features, 0U);
    AcceptParameters accepted;
    accepted.qpn = recorded.local_qpn;
    accepted.starting_psn = recorded.starting_psn;
    ASSERT_EQ(server.manager.accept(requested.id, accepted, now), std::nullopt);
    const wire::CommId theirs = recorded.ids.local;
    expect_sent(server, mads[1], requested.id, theirs);
    server.take(client, renamed(mads[2], theirs, requested.id), now);
    EXPECT_EQ(server.event<Established>().id, requested.id);
    server.take(client, renamed(mads[3], theirs, requested.id), now);
    EXPECT_EQ(server.event<DisconnectRequested>().id, requested.id);
    ASSERT_EQ(server.manager.disconnect(requested.id, {}, now), std::nullopt);
    expect_sent(server, mads[4], requested.id, theirs);
    EXPECT_TRUE(server.sends_nothing());
    EXPECT_EQ(server.manager.counters().total() + server.manager.mad_drops().total(), 0U);
}

TEST_F(CmGolden, OurClientAsksTheServerOfRpingAsLinuxDid) {
    const auto mads = test::golden_mads("cm_rping");
    SKIP_WITHOUT(mads, "cm_rping");
    ASSERT_EQ(mads.size(), 5U);
    const wire::Req recorded = std::get<wire::Req>(wire::CmMad::parse(mads[0]).value().message);
    const auto connected = client.manager.connect(rping(recorded, 0x818c), now);
    ASSERT_TRUE(connected.ok());
    const ConnectionId id = connected.value();
    const wire::CommId theirs = recorded.local_comm_id;
    expect_sent(client, mads[0], id, theirs);
    client.take(server, renamed(mads[1], theirs, id), now);
    const Replied replied = client.event<Replied>();
    EXPECT_EQ(replied.qp.remote_qpn, Qpn{0xc4});
    EXPECT_EQ(replied.qp.send_psn, Psn{0x81143b});  // PSN of the client's first SEND in the recording
    EXPECT_EQ(replied.qp.ack_timeout, wire::CmTimeout{19});
    EXPECT_EQ(replied.features, 0U);
    ASSERT_EQ(client.manager.ready(id, {}, now), std::nullopt);
    expect_sent(client, mads[2], id, theirs);
    ASSERT_EQ(client.manager.disconnect(id, {}, now), std::nullopt);
    expect_sent(client, mads[3], id, theirs);
    client.take(server, renamed(mads[4], theirs, id), now);
    EXPECT_EQ(client.event<Disconnected>().id, id);
    EXPECT_TRUE(client.sends_nothing());
    EXPECT_EQ(client.manager.counters().total() + client.manager.mad_drops().total(), 0U);
}

TEST_F(CmGolden, APortNobodyListensOnIsRefusedAsByLinux) {
    const auto mads = test::golden_mads("cm_reject");
    SKIP_WITHOUT(mads, "cm_reject");
    ASSERT_EQ(mads.size(), 2U);
    server.take(client, mads[0], now);
    const std::optional<OutMad> refusal = server.manager.poll_transmit();
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->bytes, mads[1]);

    const wire::Req recorded = std::get<wire::Req>(wire::CmMad::parse(mads[0]).value().message);
    const auto connected = client.manager.connect(rping(recorded, 0x0dac), now);
    ASSERT_TRUE(connected.ok());
    client.take(server, renamed(mads[1], recorded.local_comm_id, connected.value()), now);
    EXPECT_EQ(client.event<Rejected>().reason, wire::RejectReason::InvalidServiceId);
}

TEST_F(CmGolden, ADatagramServiceIsResolvedAsByLinux) {
    const auto mads = test::golden_mads("cm_udaddy");
    SKIP_WITHOUT(mads, "cm_udaddy");
    ASSERT_EQ(mads.size(), 2U);
    const wire::ServiceId service = wire::ip_service(wire::IpProtocol::Udp, 7174);
    ASSERT_EQ(server.manager.datagrams().listen(service, {}, DatagramService{Qpn{0xc6}, Qkey{0x01234567}, {}}),
              std::nullopt);
    server.take(client, mads[0], now);
    const std::optional<OutMad> answer = server.manager.poll_transmit();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->bytes, mads[1]);

    ResolveRequest request;
    request.route = client.to(server);
    request.service = service;
    request.source_port = 0x8eac;
    const auto resolving = client.manager.datagrams().resolve(request, now);
    ASSERT_TRUE(resolving.ok());
    wire::CmMad asked = wire::CmMad::parse(client.manager.poll_transmit()->bytes).value();
    const wire::CmMad recorded = wire::CmMad::parse(mads[0]).value();
    asked.transaction = recorded.transaction;
    std::get<wire::SidrReq>(asked.message).request_id = std::get<wire::SidrReq>(recorded.message).request_id;
    EXPECT_EQ(asked.bytes(), mads[0]);
    wire::CmMad told = wire::CmMad::parse(mads[1]).value();
    std::get<wire::SidrRep>(told.message).request_id = resolving.value();
    client.take(server, told, now);
    const Resolved resolved = client.event<Resolved>();
    EXPECT_EQ(resolved.status, wire::SidrStatus::Valid);
    EXPECT_EQ(resolved.qpn, Qpn{0xc6});
    EXPECT_EQ(resolved.qkey, Qkey{0x01234567});
}

}  // namespace
}  // namespace cairn::cm
