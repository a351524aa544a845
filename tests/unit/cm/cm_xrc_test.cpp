// Connections of XRC: the fields that other connections do not need.
#include "tests/unit/cm/cm_host.hpp"

namespace cairn::cm {
namespace {

// Transport service 3, extended transport 1. The REP has the target's number in the field for EE contexts, as Linux
// writes and reads it. The active end is the initiator and answers no READs.
TEST_F(CmPair, AnXrcConnectionLeadsFromAnInitiatorToATarget) {
    listen();
    ConnectRequest asked = request();
    asked.transport = wire::TransportService::Extended;
    active = connect(asked);
    const auto req = client.sent<wire::Req>();
    EXPECT_EQ(req.extended_transport, 1);
    EXPECT_EQ(req.responder_resources, 0);
    client.pass_last(server, now);
    const Requested requested = server.event<Requested>();
    EXPECT_EQ(requested.qp.transport, wire::TransportService::Extended);
    EXPECT_EQ(requested.qp.remote_qpn, Qpn{0x11});
    EXPECT_EQ(requested.qp.max_dest_rd_atomic, 8);
    ASSERT_EQ(server.manager.accept(requested.id, acceptance(), now), std::nullopt);
    const auto rep = server.sent<wire::Rep>();
    EXPECT_EQ(rep.local_qpn, Qpn{});
    EXPECT_EQ(rep.local_eecn, wire::Eecn{0x22});
    EXPECT_EQ(rep.initiator_depth, 0);
    EXPECT_TRUE(rep.srq);
    server.pass_last(client, now);
    const Replied replied = client.event<Replied>();
    EXPECT_EQ(replied.qp.remote_qpn, Qpn{0x22});
    EXPECT_EQ(replied.qp.max_rd_atomic, 8);
    ASSERT_EQ(client.manager.ready(active, {}, now), std::nullopt);
    client.pass_all(server, now);
    EXPECT_EQ(server.event<Established>().id, requested.id);
    // The target's number is known: a new life of the server's with the same one ends the old connection.
    const auto again = connect(asked);
    (void)client.sent<wire::Req>();
    wire::Rep stale = rep;
    stale.ids = {wire::CommId{0x777}, again};
    client.take(server, {client.manager.find(again)->transaction, stale}, now);
    EXPECT_EQ(client.count(Counter::Stale), 1U);
}

}  // namespace
}  // namespace cairn::cm
