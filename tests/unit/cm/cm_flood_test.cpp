// Floods of requests from real and forged addresses: messages to uninvolved hosts, and service for others meanwhile.
#include "tests/unit/cm/cm_host.hpp"

namespace cairn::cm {
namespace {

class CmFlood : public CmPair {
protected:
    // Makes a request of any host; each request is another one.
    static wire::Req request_from(const net::IpAddress& source, std::uint32_t number) {
        wire::Req req;
        req.local_comm_id = wire::CommId{0x10000 + number};
        req.local_qpn = Qpn{0x1000 + number % 0x100000};
        req.service_id = kService;
        req.path_mtu = wire::path_mtu_of(1024);
        req.primary.local_gid = source.octets();
        req.primary.remote_gid = kServerAddress.octets();
        // The longest timeouts that a request can have.
        req.primary.ack_timeout = wire::CmTimeout{31};
        req.local_response_timeout = wire::CmTimeout{31};
        req.remote_response_timeout = wire::CmTimeout{31};
        req.max_cm_retries = wire::CmRetries{15};
        return req;
    }
    void forge(const net::IpAddress& source, std::uint32_t number) {
        server.manager.on_mad({kServerAddress, source}, wire::CmMad{number, request_from(source, number)}.bytes(), now);
    }
    // Returns how many messages the server has sent to others than the client since; the client gets its own.
    std::size_t messages_to_others() {
        std::size_t count = 0;
        while (const std::optional<OutMad> mad = server.manager.poll_transmit()) {
            if (mad->route.remote == kClientAddress) {
                client.take(server, mad->bytes, now);
            } else {
                ++count;
            }
        }
        return count;
    }
    // Accepts every request for the server's user.
    void accept_all() {
        while (const std::optional<Event> event = server.manager.poll_event()) {
            if (const auto* requested = std::get_if<Requested>(&*event)) {
                ASSERT_EQ(server.manager.accept(requested->id, acceptance(), now), std::nullopt);
            }
        }
    }
    // Returns how many messages the server sends by itself until `until`.
    std::size_t messages_until(Instant until) {
        std::size_t count = messages_to_others();
        while (server.manager.next_deadline() <= until) {
            pass_time(server);
            count += messages_to_others();
        }
        now = until;
        return count;
    }
    // Runs a flood of `per_second` requests from `source(number)` and connects during it. Returns how long connecting
    // took.
    template <class Source>
    Duration connects_after(std::uint32_t per_second, std::uint32_t backlog, Source source) {
        listen(backlog);
        const Duration gap = seconds(1) / static_cast<std::int64_t>(per_second);
        Instant asked_at = Instant::never();
        for (std::uint32_t number = 0; asked_at == Instant::never() || now < asked_at + seconds(4); ++number) {
            forge(source(number), number);
            if (asked_at == Instant::never() && number >= 2 * backlog + per_second) {
                asked_at = now;
                active = connect(request());
            }
            client.manager.on_timeout(now);
            client.pass_all(server, now);
            accept_all();
            (void)messages_to_others();
            while (const std::optional<Event> event = client.manager.poll_event()) {
                if (std::holds_alternative<Replied>(*event)) {
                    EXPECT_EQ(client.manager.ready(active, {}, now), std::nullopt);
                    client.pass_all(server, now);
                    return now - asked_at;
                }
            }
            now = now + gap;
            server.manager.on_timeout(now);
        }
        return seconds(1'000'000);
    }
    static net::IpAddress made_up(std::uint32_t number) { return net::IpAddress::from_v4(0x0b000000 + number); }

    const net::IpAddress victim = net::IpAddress::from_v4(0x0a4d0077);
};

TEST_F(CmFlood, AHostThatNeverAskedIsSentThreeMessagesAtMostForEachRequest) {
    listen();
    forge(victim, 1);
    accept_all();
    EXPECT_EQ(messages_until(now + seconds(120)), 3U);
    EXPECT_EQ(server.count(Counter::GivenUp), 1U);
    // The request comes again and again; each copy causes at most as many messages.
    forge(victim, 2);
    accept_all();
    std::size_t sent = messages_to_others();
    for (int copy = 0; copy < 10; ++copy) {
        forge(victim, 2);
        sent += messages_until(now + milliseconds(10));
    }
    EXPECT_EQ(sent, 11U);
    EXPECT_LE(sent + messages_until(now + seconds(120)), 33U);
}

TEST_F(CmFlood, SlowUsersDoNotMakeItMore) {
    listen();
    forge(victim, 1);
    std::size_t sent = messages_until(now + seconds(10));  // the user gets more time
    EXPECT_EQ(sent, 1U);
    const ConnectionId id = server.event<Requested>().id;
    for (int i = 0; i < 5; ++i) {
        (void)server.manager.ask_for_time(id, wire::CmTimeout{20}, {});
    }
    ASSERT_EQ(server.manager.accept(id, acceptance(), now), std::nullopt);
    sent += messages_until(now + seconds(1));
    ASSERT_EQ(server.manager.reject(id, {}, now), std::nullopt);
    sent += messages_until(now + seconds(120));
    EXPECT_EQ(sent, 3U);
}

TEST_F(CmFlood, AQuestionForAServiceIsAnsweredOnceEachTime) {
    ASSERT_EQ(server.manager.datagrams().listen(kService, {}, std::nullopt), std::nullopt);
    wire::SidrReq req;
    req.service_id = kService;
    const auto ask = [&] { server.manager.on_mad({kServerAddress, victim}, wire::CmMad{1, req}.bytes(), now); };
    ask();
    const DatagramId id = server.event<DatagramRequested>().id;
    ASSERT_EQ(server.manager.datagrams().answer(id, wire::SidrStatus::Valid, {Qpn{5}, Qkey{6}, {}}, now), std::nullopt);
    ask();
    EXPECT_EQ(messages_until(now + seconds(60)), 2U);
}

TEST_F(CmFlood, ThePeerDoesNotChooseHowLongItsReplyIsWaitedFor) {
    listen();
    forge(victim, 1);
    accept_all();
    const Instant replied_at = now;
    while (server.count(Counter::GivenUp) == 0) {
        pass_time(server);
        (void)messages_to_others();
    }
    EXPECT_LE(now, replied_at + seconds(4));
}

TEST_F(CmFlood, AClientGetsInBesideOneHostsFlood) {
    EXPECT_LT(connects_after(1000, 256, [this](std::uint32_t) { return victim; }), seconds(1));
    EXPECT_GT(server.count(Counter::GaveWay), 0U);
}

TEST_F(CmFlood, AClientGetsInBesideAFloodFromEverNewAddresses) {
    EXPECT_LT(connects_after(20'000, 256, made_up), seconds(1));
}

TEST_F(CmFlood, AFewRequestsASecondDoNotFillASmallBacklog) {
    EXPECT_LT(connects_after(4, 2, made_up), seconds(1));
}

TEST_F(CmFlood, AClientGetsInBesideAFloodInItsOwnName) {
    EXPECT_LT(connects_after(1000, 256, [](std::uint32_t) { return kClientAddress; }), seconds(1));
}

TEST_F(CmFlood, ABurstOfOneHostWaitsForItsUserWithoutLoss) {
    listen(4);
    for (std::uint32_t number = 0; number < 8; ++number) {
        forge(victim, number);
    }
    EXPECT_EQ(server.count(Counter::BacklogFull), 4U);
    EXPECT_EQ(server.count(Counter::GaveWay), 0U);
    for (int i = 0; i < 4; ++i) {
        (void)server.event<Requested>();
    }
    EXPECT_TRUE(server.has_no_event());
}

// Refusals are kept for copies of the refused request, but not at any price.
TEST_F(CmFlood, RefusedRequestsTakeABoundedPartOfTheTable) {
    Config config = config_of(9);
    config.max_connections = 64;
    CmHost small(kServerAddress, config);
    ASSERT_EQ(small.manager.listen(kService, 256), std::nullopt);
    for (std::uint32_t number = 0; number < 1000; ++number) {
        small.manager.on_mad({kServerAddress, victim}, wire::CmMad{number, request_from(victim, number)}.bytes(), now);
        while (const std::optional<Event> event = small.manager.poll_event()) {
            if (const auto* requested = std::get_if<Requested>(&*event)) {
                ASSERT_EQ(small.manager.reject(requested->id, {}, now), std::nullopt);
            }
        }
        while (!small.sends_nothing()) {
        }
        ASSERT_LE(small.manager.connections(), 32U);
    }
    EXPECT_EQ(small.count(Counter::TableFull), 0U);
    ASSERT_TRUE(small.manager.connect(request(), now).ok());
    (void)connect(request());
    client.pass_all(small, now);
    EXPECT_EQ(small.event<Requested>().qp.remote_qpn, Qpn{0x11});
}

TEST_F(CmFlood, WhoGivesWayIsToldToItsUserAndHeardOfNoMore) {
    listen(2);
    for (std::uint32_t number = 0; number < 2; ++number) {
        forge(victim, number);
    }
    const ConnectionId first = server.event<Requested>().id;
    const ConnectionId second = server.event<Requested>().id;
    active = connect(request());
    client.pass_all(server, now);
    const Rejected rejected = server.event<Rejected>();
    EXPECT_EQ(rejected.id, first);
    EXPECT_FALSE(rejected.by_peer);
    EXPECT_EQ(server.event<Released>().id, first);
    EXPECT_EQ(server.manager.accept(first, acceptance(), now), CallRefusal::UnknownConnection);
    EXPECT_EQ(server.event<Requested>().qp.remote_qpn, Qpn{0x11});
    // An accepted one ends as after a wait for its peer in vain.
    ASSERT_EQ(server.manager.accept(second, acceptance(), now), std::nullopt);
    now = now + kTimeToAnswer;
    forge(made_up(1), 77);
    EXPECT_EQ(server.event<Unreachable>().id, second);
    EXPECT_EQ(state_at(server, second), State::TimeWait);
}

TEST_F(CmFlood, AReplyThatHadTimeToBeAnsweredGivesWayToAnybody) {
    listen(2);
    forge(made_up(1), 1);
    forge(made_up(2), 2);
    accept_all();
    (void)connect(request());
    client.pass_all(server, now);  // this host has none yet, and its request takes the place of the first
    ConnectRequest another = request();
    another.qpn = Qpn{0x12};
    (void)connect(another);
    (void)client.sent<wire::Req>();
    client.pass_last(server, now);
    EXPECT_EQ(server.count(Counter::GaveWay), 1U);
    EXPECT_EQ(server.count(Counter::BacklogFull), 1U);
    now = now + kTimeToAnswer;
    client.pass_last(server, now);
    EXPECT_EQ(server.count(Counter::GaveWay), 2U);
}

TEST_F(CmFlood, QuestionsThatNobodyAnswersLeaveRoomForOtherHosts) {
    Config config = config_of(9);
    config.max_datagram_requests = 8;
    CmHost small(kServerAddress, config);
    ASSERT_EQ(small.manager.datagrams().listen(kService, {}, std::nullopt), std::nullopt);
    wire::SidrReq req;
    req.service_id = kService;
    for (std::uint32_t number = 0; number < 100; ++number) {
        req.request_id = wire::SidrRequestId{number};
        small.manager.on_mad({kServerAddress, victim}, wire::CmMad{number, req}.bytes(), now);
    }
    EXPECT_EQ(small.count(Counter::BacklogFull), 92U);
    (void)client.manager.datagrams().resolve({client.to(small), kService}, now);
    client.pass_all(small, now);
    std::optional<DatagramRequested> last;
    while (const std::optional<Event> event = small.manager.poll_event()) {
        last = std::get<DatagramRequested>(*event);
    }
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(last->route.remote, kClientAddress);
    EXPECT_EQ(small.manager.datagrams().answer(last->id, wire::SidrStatus::Valid, {}, now), std::nullopt);
}

// Both ends connect although every fifth message is lost, and the server learns of it from the CM alone.
TEST_F(CmFlood, ConnectionsComeAboutUnderHeavyLoss) {
    constexpr std::uint32_t kMany = 200;
    listen(2 * kMany);
    std::uint64_t state = 7;
    const auto lost = [&state] { return (state = state * 6364136223846793005U + 1442695040888963407U) >> 33U; };
    for (std::uint32_t i = 0; i < kMany; ++i) {
        ConnectRequest asked = request();
        asked.qpn = Qpn{0x1000 + i};
        (void)connect(asked);
    }
    std::uint32_t established = 0;
    std::uint32_t failed = 0;
    const auto pass = [&](CmHost& from, CmHost& to) {
        while (const std::optional<OutMad> mad = from.manager.poll_transmit()) {
            if (lost() % 5 != 0) {
                to.take(from, mad->bytes, now);
            }
        }
    };
    std::uint32_t next_qpn = 0x9000;
    const Instant until = now + seconds(20);
    while (now < until && established + failed < kMany) {
        pass(client, server);
        while (const std::optional<Event> event = server.manager.poll_event()) {
            if (const auto* requested = std::get_if<Requested>(&*event)) {
                AcceptParameters accepted = acceptance();
                accepted.qpn = Qpn{next_qpn++};
                ASSERT_EQ(server.manager.accept(requested->id, accepted, now), std::nullopt);
            }
            established += std::holds_alternative<Established>(*event) ? 1U : 0U;
            failed += std::holds_alternative<Unreachable>(*event) ? 1U : 0U;
        }
        pass(server, client);
        while (const std::optional<Event> event = client.manager.poll_event()) {
            if (const auto* replied = std::get_if<Replied>(&*event)) {
                ASSERT_EQ(client.manager.ready(replied->id, {}, now), std::nullopt);
            }
        }
        now = now + milliseconds(10);
        client.manager.on_timeout(now);
        server.manager.on_timeout(now);
    }
    EXPECT_EQ(failed, 0U);
    EXPECT_EQ(established, kMany);
}

}  // namespace
}  // namespace cairn::cm
