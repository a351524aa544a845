// Several workers of one address, each with connections: any of them may listen, connect or ask.
#include "lib/connections/home.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/verbs/connector.hpp"
#include "tests/support/queue_of.hpp"
#include "tests/support/worker_config.hpp"

namespace cairn::connections {
namespace {

constexpr std::uint16_t kPort = 7471;
constexpr std::uint8_t kOwnerBits = 2;
constexpr std::uint32_t kWorkers = 3;

// A worker with a verbs device and connections.
struct Seat {
    Seat(port::Port& port, std::shared_ptr<Agent> agent, std::uint32_t number, std::uint64_t seed) {
        worker = worker::Worker::create(port, test::worker_config(kOwnerBits, number, seed), Instant{}).value();
        device = std::make_unique<verbs::Device>(*worker);
        pd = device->create_pd();
        completions = device->create_cq(256).value();
        home = Home::create(std::move(agent), *worker, {}).value();
        connector = std::make_unique<verbs::Connector>(*device, *home);
    }
    ~Seat() {
        connector.reset();
        qps.clear();
    }
    verbs::Qp& add_qp() {
        qps.push_back(device->create_qp(*pd, {}, {*completions, *completions}).value());
        return *qps.back();
    }
    template <class Kind>
    std::optional<Kind> event() {
        const std::optional<cm::Event> next = connector->poll_event();
        return next && std::holds_alternative<Kind>(*next) ? std::optional(std::get<Kind>(*next)) : std::nullopt;
    }

    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<verbs::Pd> pd;
    std::unique_ptr<verbs::Cq> completions;
    std::vector<std::unique_ptr<verbs::Qp>> qps;
    std::unique_ptr<Home> home;
    std::unique_ptr<verbs::Connector> connector;
};

// A host of several workers.
struct ManySeats {
    ManySeats(const char* address, std::uint64_t seed) : shared(address, 4096, kOwnerBits) {
        for (std::uint32_t i = 0; i < kWorkers; ++i) {
            queues.push_back(std::make_unique<test::QueueOf>(shared, i));
            seats.push_back(std::make_unique<Seat>(*queues.back(), agent, i, seed));
        }
    }
    bool turn(Instant now) {
        bool worked = false;
        for (const auto& seat : seats) {
            worked = seat->worker->turn(now) || worked;
        }
        return worked;
    }
    Seat& operator[](std::size_t i) { return *seats[i]; }

    test::SharedWire shared;
    std::shared_ptr<Agent> agent = Agent::create();
    std::vector<std::unique_ptr<test::QueueOf>> queues;
    std::vector<std::unique_ptr<Seat>> seats;
};

class HomesTest : public testing::Test {
protected:
    HomesTest() {
        client.shared.wire.join(server.shared.wire);
        server.shared.wire.join(client.shared.wire);
    }
    void run() {
        for (int quiet = 0; quiet < 3;) {
            const bool worked = client.turn(now);
            quiet = server.turn(now) || worked ? 0 : quiet + 1;
        }
    }
    void pass(Duration span) {
        for (const Instant end = now + span; now < end; now = now + milliseconds(20)) {
            run();
        }
    }
    verbs::ConnectTo to_server(std::uint16_t port = kPort) {
        verbs::ConnectTo to;
        to.remote = server.shared.wire.local_address();
        to.port = port;
        return to;
    }
    // Connects a worker of the client to a listener at a worker of the server. Returns false if that fails.
    bool connect(std::size_t from, std::size_t to, std::uint16_t port = kPort) {
        verbs::Qp& active = client[from].add_qp();
        const auto id = client[from].connector->connect(active, to_server(port), now);
        EXPECT_TRUE(id.ok());
        run();
        const auto requested = server[to].event<cm::Requested>();
        if (!requested) {
            return false;
        }
        verbs::Qp& passive = server[to].add_qp();
        EXPECT_TRUE(server[to].connector->accept(requested->id, passive, {}, now).ok());
        run();
        EXPECT_TRUE(client[from].event<cm::Established>().has_value());
        EXPECT_TRUE(server[to].event<cm::Established>().has_value());
        EXPECT_EQ(active.qpn().value % 4, from);
        EXPECT_EQ(passive.qpn().value % 4, to);
        return active.state() == verbs::QpState::Rts && passive.state() == verbs::QpState::Rts;
    }

    Instant now{1'000'000};
    ManySeats client{"10.0.0.1", 5};
    ManySeats server{"10.0.0.2", 6};
};

TEST_F(HomesTest, ConnectionsComeAboutBetweenAnyTwoWorkers) {
    for (std::size_t to = 0; to < kWorkers; ++to) {
        const auto port = static_cast<std::uint16_t>(kPort + to);
        ASSERT_TRUE(server[to].connector->listen(port, 4).ok());
        for (std::size_t from = 0; from < kWorkers; ++from) {
            EXPECT_TRUE(connect(from, to, port)) << from << " to " << to;
        }
    }
}

TEST_F(HomesTest, DataGoesBetweenThemAndTheyEndTogether) {
    ASSERT_TRUE(server[2].connector->listen(kPort, 4).ok());
    ASSERT_TRUE(connect(1, 2));
    std::array<std::uint8_t, 64> memory{};
    auto there = server[2].device->register_memory(*server[2].pd, memory, verbs::Right::LocalWrite).value();
    const std::array<verbs::Sge, 1> place{there->sge(0, 64)};
    ASSERT_EQ(server[2].qps[0]->post_receive({1, place}), verbs::PostVerdict::Posted);
    const std::array<std::uint8_t, 5> said{'c', 'a', 'i', 'r', 'n'};
    verbs::SendRequest request;
    request.is_inline = true;
    request.inline_bytes = said;
    ASSERT_EQ(client[1].qps[0]->post_send(request), verbs::PostVerdict::Posted);
    run();
    EXPECT_TRUE(std::equal(said.begin(), said.end(), memory.begin()));
    // The client's program ends: its peer is notified, on the worker that has the connection.
    client[1].connector.reset();
    run();
    EXPECT_TRUE(server[2].event<cm::DisconnectRequested>().has_value());
    EXPECT_EQ(server[2].qps[0]->state(), verbs::QpState::Err);
}

TEST_F(HomesTest, TwoUsersOfOneServiceAreToldWhoHasIt) {
    ASSERT_TRUE(server[1].connector->listen(kPort, 4).ok());
    const Status taken = server[2].connector->listen(kPort, 4);
    ASSERT_FALSE(taken.ok());
    EXPECT_NE(taken.error().text().find("7471"), std::string::npos) << taken.error().text();
    EXPECT_NE(taken.error().text().find("worker 1"), std::string::npos) << taken.error().text();
    // No half-made connection is left: the worker that has the connection gets the requests, and a user that ends makes
    // room.
    EXPECT_TRUE(connect(0, 1));
    server[1].connector.reset();
    EXPECT_TRUE(server[2].connector->listen(kPort, 4).ok());
    EXPECT_TRUE(connect(1, 2));
}

TEST_F(HomesTest, SeveralWorkersMayShareAService) {
    for (std::size_t i = 0; i < kWorkers; ++i) {
        ASSERT_TRUE(server[i].connector->listen(kPort, 16, Sharing::Shared).ok());
    }
    for (int i = 0; i < 24; ++i) {
        ASSERT_TRUE(client[0].connector->connect(client[0].add_qp(), to_server(), now).ok());
    }
    run();
    std::size_t all = 0;
    for (std::size_t i = 0; i < kWorkers; ++i) {
        std::size_t got = 0;
        while (const auto requested = server[i].event<cm::Requested>()) {
            ++got;
            EXPECT_TRUE(server[i].connector->accept(requested->id, server[i].add_qp(), {}, now).ok());
        }
        EXPECT_GT(got, 0U) << i;
        all += got;
    }
    EXPECT_EQ(all, 24U);
    run();
    std::size_t established = 0;
    while (client[0].event<cm::Established>()) {
        ++established;
    }
    EXPECT_EQ(established, 24U);
}

// Each user of a worker has its own events.
TEST_F(HomesTest, TwoConnectorsLiveOnOneWorker) {
    verbs::Connector other(*server[1].device, *server[1].home);
    ASSERT_TRUE(server[1].connector->listen(kPort, 4).ok());
    ASSERT_TRUE(other.listen(kPort + 1, 4).ok());
    ASSERT_TRUE(client[0].connector->connect(client[0].add_qp(), to_server(kPort + 1), now).ok());
    run();
    EXPECT_FALSE(server[1].connector->poll_event().has_value());
    const std::optional<cm::Event> event = other.poll_event();
    ASSERT_TRUE(event && std::holds_alternative<cm::Requested>(*event));
    EXPECT_TRUE(connect(2, 1));
}

// Worker 0 knows the path to the message's sender. The worker that answers asks no neighbour for it.
TEST_F(HomesTest, WhatAnotherWorkerAnswersGoesBackTheWayThatTheMessageCame) {
    ASSERT_TRUE(server[2].connector->listen(kPort, 4).ok());
    ASSERT_TRUE(connect(1, 2));
    cm::DatagramService service{Qpn{0x1002}, Qkey{77}, {}};
    ASSERT_TRUE(server[2].connector->listen_datagrams(kPort, service).ok());
    ASSERT_TRUE(server[1].connector->listen_datagrams(kPort + 1).ok());
    for (const std::uint16_t port : {kPort, static_cast<std::uint16_t>(kPort + 1)}) {
        ASSERT_TRUE(client[1].connector->resolve(server.shared.wire.local_address(), port, {}, now).ok());
    }
    run();
    ASSERT_TRUE(server[1].connector->answer(server[1].event<cm::DatagramRequested>()->id, service, now).ok());
    run();
    EXPECT_TRUE(client[1].event<cm::Resolved>() && client[1].event<cm::Resolved>());
    EXPECT_EQ(server.queues[1]->asked + server.queues[2]->asked, 0U);
    test::QueueOf& queue = *server.queues[2];
    ASSERT_FALSE(queue.ways_back.empty());
    for (const port::WayBack& way : queue.ways_back) {
        EXPECT_EQ(way.key.remote, client.shared.wire.local_address());
        EXPECT_EQ(way.mac, test::QueueOf::mac_of(way.key.remote));
    }
}

TEST_F(HomesTest, NobodyListensIsSaidByTheWorkerOfQueuePair1) {
    const auto id = client[2].connector->connect(client[2].add_qp(), to_server(), now);
    ASSERT_TRUE(id.ok());
    run();
    const auto rejected = client[2].event<cm::Rejected>();
    ASSERT_TRUE(rejected.has_value());
    EXPECT_EQ(rejected->reason, wire::RejectReason::InvalidServiceId);
}

// A client that gives up before the answer names nothing of the server's: the worker that has its request ends it.
TEST_F(HomesTest, ARequestThatIsTakenBackEndsWhereverItIs) {
    ASSERT_TRUE(server[2].connector->listen(kPort, 4).ok());
    const auto id = client[1].connector->connect(client[1].add_qp(), to_server(), now);
    ASSERT_TRUE(id.ok());
    run();
    ASSERT_TRUE(server[2].event<cm::Requested>().has_value());
    client[1].connector->abandon(id.value(), now);
    run();
    EXPECT_TRUE(server[2].event<cm::Rejected>().has_value());
}

TEST_F(HomesTest, DatagramServicesAreAskedForOnAnyWorker) {
    cm::DatagramService service{Qpn{0x1001}, Qkey{77}, {}};
    ASSERT_TRUE(server[1].connector->listen_datagrams(kPort, service).ok());
    const auto id = client[2].connector->resolve(server.shared.wire.local_address(), kPort, {}, now);
    ASSERT_TRUE(id.ok());
    run();
    const auto resolved = client[2].event<cm::Resolved>();
    ASSERT_TRUE(resolved.has_value());
    EXPECT_EQ(resolved->qpn, Qpn{0x1001});
    EXPECT_EQ(resolved->qkey, Qkey{77});
}

// Messages on their way to a worker that ends are lost, as any message may be, and leave nothing behind.
TEST_F(HomesTest, AWorkerThatEndsLosesItsMailAndTheOthersGoOn) {
    ASSERT_TRUE(server[2].connector->listen(kPort, 4).ok());
    ASSERT_TRUE(server[1].connector->listen(kPort + 1, 4).ok());
    ASSERT_TRUE(client[0].connector->connect(client[0].add_qp(), to_server(), now).ok());
    for (int i = 0; i < 3; ++i) {
        client.turn(now);
        server[0].worker->turn(now);  // hands it over
    }
    EXPECT_LE(server[2].worker->next_deadline(), now);
    server.seats.pop_back();
    EXPECT_TRUE(connect(1, 1, kPort + 1));
    EXPECT_TRUE(server[0].connector->listen(kPort, 4).ok());  // its service is free
}

// The number of messages on their way to another worker is bounded; further ones are counted.
TEST_F(HomesTest, AFloodForAWorkerThatDoesNotTurnIsCountedAndCostsNoMemory) {
    ASSERT_TRUE(server[2].connector->listen(kPort, 4).ok());
    for (std::size_t i = 0; i < Agent::kLetters + 100; ++i) {
        const auto id = client[0].connector->connect(client[0].add_qp(), to_server(), now);
        ASSERT_TRUE(id.ok());
        client[0].worker->turn(now);
        client[0].connector->abandon(id.value(), now);
        client[0].qps.clear();
        client[0].worker->turn(now);
        server[0].worker->turn(now);
    }
    const std::string counted = server[0].worker->counters().text();
    EXPECT_NE(counted.find("cm_handed_over"), std::string::npos) << counted;
    EXPECT_NE(counted.find("cm_mail_full"), std::string::npos) << counted;
    // All workers share the counters, and one of them shows them.
    EXPECT_EQ(server[1].worker->counters().text().find("cm_handed_over"), std::string::npos);
    server[2].worker->turn(now);
    run();
    while (server[2].connector->poll_event()) {
    }
    EXPECT_TRUE(connect(1, 2));
}

TEST_F(HomesTest, AWorkerHasOneHomeAndAllHaveTheSameOwnerBits) {
    const auto second = Home::create(server.agent, *server[1].worker, {});
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.error().text().find("worker 1 of 10.0.0.2"), std::string::npos) << second.error().text();
    test::WirePort port("10.0.0.2", 64);
    roce::EngineConfig config;
    config.owner_bits = 3;
    config.owner = 5;
    const auto worker = worker::Worker::create(port, config, now).value();
    EXPECT_FALSE(Home::create(server.agent, *worker, {}).ok());
    EXPECT_TRUE(Home::create(Agent::create(), *worker, {}).ok());
}

}  // namespace
}  // namespace cairn::connections
