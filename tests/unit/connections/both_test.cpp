// Calls and connections at one worker, whose queue pair 1 is another worker's; over queues in memory and over the
// kernel's sockets.
#include <gtest/gtest.h>

#include <chrono>

#include "lib/port/uring_port.hpp"
#include "tests/support/both.hpp"
#include "tests/support/queue_of.hpp"

namespace cairn::connections {
namespace {

TEST(Both, OneWorkerServesCallsAndConnectionsWhoseQueuePair1IsAnothers) {
    Instant now{1'000'000};
    test::SharedWire here("10.0.0.1", 1024, 1);
    test::SharedWire there("10.0.0.2", 1024, 1);
    here.wire.join(there.wire);
    there.wire.join(here.wire);
    test::QueueOf here_0(here, 0);
    test::QueueOf here_1(here, 1);
    test::QueueOf there_0(there, 0);
    test::QueueOf there_1(there, 1);
    const auto here_agent = Agent::create();
    const auto there_agent = Agent::create();
    Tenants first(here_0, here_agent, 1, 0, 1);
    Tenants client(here_1, here_agent, 1, 1, 1);
    Tenants second(there_0, there_agent, 1, 0, 2);
    Tenants server(there_1, there_agent, 1, 1, 2);
    exchange_both(client, server, now, [&] {
        for (Tenants* const each : {&first, &client, &second, &server}) {
            each->worker->turn(now);
        }
        now = now + microseconds(20);
    });
}

TEST(Both, OverSocketsToo) {
    const auto begin = std::chrono::steady_clock::now();
    Instant now{1'000'000};
    const auto open = [](const char* address) {
        port::UringPortConfig config;
        config.local = net::IpAddress::parse(address).value();
        return port::UringPort::open(config).value();
    };
    const auto here = open("127.71.212.1");
    const auto there = open("127.71.212.2");
    Tenants client(*here, Agent::create(), 0, 0, 1);
    Tenants server(*there, Agent::create(), 0, 0, 2);
    exchange_both(client, server, now, [&] {
        client.worker->turn(now);
        server.worker->turn(now);
        now =
            Instant{1'000'000} +
            Duration{
                std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count()};
    });
}

}  // namespace
}  // namespace cairn::connections
