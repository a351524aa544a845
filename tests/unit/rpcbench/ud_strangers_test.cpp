// Messages that no honest host sends, from a host that knows the server's queue pair and its Q_Key.
#include "tests/unit/rpcbench/ud_hosts.hpp"

namespace cairn::rpcbench {
namespace {

struct UdStrangers : UdHosts {
    UdStrangers() {
        // It is on the client's wire and address, as another process of that host could be.
        road = UdRoad::create(64, *client.device, client.pool).value();
        to = client.device->create_ah(net::IpAddress::parse("10.0.0.2").value(), 0xc000, now).value();
    }
    void SetUp() override {
        session = connect();
        ASSERT_EQ(client.count(UdEvent::Connected), 1U);
        // The server's endpoint is the last one that took a number there.
        const std::uint64_t before = server.breaches(UdBreach::Malformed);
        for (std::uint32_t qpn = 2; qpn < 1U << 24U && !target; ++qpn) {
            if (server.worker->datagrams().is_taken(Qpn{qpn})) {
                target = Qpn{qpn};
            }
        }
        ASSERT_TRUE(target);
        send(of_version(0));
        ASSERT_EQ(server.breaches(UdBreach::Malformed), before + 1) << "it is another one's queue pair";
    }
    void send(const RawUdMessage& head) {
        (void)road->room();
        road->send({to.get(), *target}, head, 0);
        run(milliseconds(1));
    }
    static RawUdMessage of_version(std::uint8_t version) {
        RawUdMessage head = message(UdKind::Request, 0, 0);
        head.version = version;
        return head;
    }
    static RawUdMessage message(UdKind kind, std::uint16_t session, std::uint64_t token) {
        return {RawUdMessage::kVersion, kind, kEchoed, 0, Be16{session}, Be16{0}, Be64{token}, Be64{1}};
    }
    std::vector<RawUdMessage> answers() {
        std::vector<RawUdMessage> heads;
        telemetry::CounterSet<UdBreach> breaches;
        for (const UdArrival& each : road->receive(breaches)) {
            heads.push_back(each.head);
        }
        road->release_received();
        return heads;
    }

    std::unique_ptr<UdRoad> road;
    std::unique_ptr<verbs::Ah> to;
    std::optional<Qpn> target;
    SessionId session{};
};

TEST_F(UdStrangers, WithoutTheTokenExecuteNothingAndEndNothing) {
    for (const unsigned number : {0U, 1U, 63U, 64U, 65535U}) {
        for (const UdKind kind : {UdKind::Request, UdKind::Response, UdKind::Refusal, UdKind::Bye}) {
            send(message(kind, static_cast<std::uint16_t>(number), 1234));
        }
    }
    EXPECT_EQ(executed, 0U);
    EXPECT_EQ(server.breaches(UdBreach::Stranger), 20U);
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
    EXPECT_TRUE(answers().empty());
    (void)post(session, 1);
    run(milliseconds(1));
    EXPECT_EQ(count(rpc::CallStatus::Ok), 1U);
}

TEST_F(UdStrangers, NonsenseIsCounted) {
    send(message(static_cast<UdKind>(0), 0, 0));
    send(message(static_cast<UdKind>(99), 0, 0));
    send(of_version(1));
    EXPECT_EQ(server.breaches(UdBreach::Malformed), 4U);  // including that of SetUp()
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
}

TEST_F(UdStrangers, AHelloTakesNoSessionBeforeItsTokenCameBack) {
    for (int i = 0; i < 100; ++i) {
        RawUdMessage hello = message(UdKind::Hello, 0, static_cast<std::uint64_t>(i));
        hello.own = Be16{static_cast<std::uint16_t>(i)};
        send(hello);
    }
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
    const std::vector<RawUdMessage> challenges = answers();
    ASSERT_FALSE(challenges.empty());
    EXPECT_EQ(challenges[0].kind, UdKind::Challenge);
    // The token is valid for that number of its host's, and for no other one.
    RawUdMessage hello = message(UdKind::Hello, 0, challenges[0].token.get());
    hello.own = Be16{1};
    send(hello);
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
    hello.own = Be16{0};
    send(hello);
    send(hello);  // as if the Welcome was lost
    EXPECT_EQ(server.endpoint->sessions_open(), 2U);
}

TEST_F(UdStrangers, RepliesThatNobodyAskedForChangeNothing) {
    for (const UdKind kind : {UdKind::Challenge, UdKind::Welcome}) {
        send(message(kind, 0, 7));
        send(message(kind, 9999, 7));
    }
    EXPECT_EQ(server.breaches(UdBreach::Stranger), 4U);
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
}

TEST_F(UdStrangers, AFloodIsTakenAsFarAsThereIsRoom) {
    for (int i = 0; i < 600; ++i) {
        ASSERT_GT(road->room(), 0U);
        road->send({to.get(), *target}, message(UdKind::Hello, 0, 0), 0);
    }
    run(milliseconds(5));
    (void)post(session, 1);
    run(milliseconds(2));
    EXPECT_EQ(count(rpc::CallStatus::Ok), 1U);
}

}  // namespace
}  // namespace cairn::rpcbench
