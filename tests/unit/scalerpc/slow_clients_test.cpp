// Clients that answer READs slowly: they are served, and others hardly notice.
#include "tests/unit/scalerpc/many_clients.hpp"

namespace cairn::scalerpc {
namespace {

constexpr Duration kMeasured = milliseconds(60);

class ScalerpcSlowClients : public ManyClients {
protected:
    // A host that reads its messages and asks again only from time to time.
    struct Slow {
        Slow(const char* address, std::uint64_t seed, const EndpointConfig& config) : host(address, seed, config) {}
        void ask(Instant now) {
            Call call;
            call.type = kEcho;
            call.request = request;
            call.context = this;
            call.completion = [](void* context, const rpc::CallResult& result) {
                auto& self = *static_cast<Slow*>(context);
                EXPECT_EQ(result.status, CallStatus::Ok);
                ++self.done;
                self.waits = false;
            };
            waits = host.endpoint->post(session, call, now).verdict == PostVerdict::Posted;
        }
        std::array<std::uint8_t, 32> request{};
        Host host;
        SessionId session{};
        std::uint64_t done = 0;
        bool asks = false;   // again and again
        bool waits = false;  // for an answer
    };

    void begin_with_slow(std::uint32_t fast, std::uint32_t slow_ones) {
        const EndpointConfig config = small(32);
        begin(config, fast);
        server->endpoint->set_handler(
            kEcho,
            [](void*, const RequestOf& request) {
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            nullptr);
        for (std::uint32_t i = 0; i < slow_ones; ++i) {
            slow.push_back(std::make_unique<Slow>(addresses[i], 33 + i, config));
            Host& host = slow.back()->host;
            host.port.join(server->port);
            server->port.join(host.port);
            slow.back()->session =
                host.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).value();
        }
        run_all(milliseconds(5), Duration{});
        again = true;
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            post(i);
        }
        run_all(milliseconds(20), Duration{});
    }
    // Runs all. Each slow client looks once in `pause`, at times of its own.
    void run_all(Duration span, Duration pause) {
        for (const Instant end = now + span; now < end; now = now + microseconds(5)) {
            client->turn(now);
            server->turn(now);
            for (std::size_t i = 0; i < slow.size(); ++i) {
                const std::int64_t shifted = now.ns + static_cast<std::int64_t>(i) * 700'000;
                if (pause.ns != 0 && shifted % pause.ns >= 5000) {
                    continue;
                }
                slow[i]->host.turn(now);
                if (slow[i]->asks && !slow[i]->waits) {
                    slow[i]->ask(now);
                    slow[i]->host.turn(now);
                }
            }
        }
    }
    std::uint64_t calls_of_others(Duration pause) {
        const std::uint64_t before = results.size();
        run_all(kMeasured, pause);
        return results.size() - before;
    }
    void expect_others_to_be_as_fast() {
        const std::uint64_t alone = calls_of_others(milliseconds(5));
        for (const auto& each : slow) {
            each->asks = true;
        }
        run_all(milliseconds(50), milliseconds(5));  // until the server knows the slow clients
        const std::uint64_t beside = calls_of_others(milliseconds(5));
        EXPECT_GE(beside, alone * 9 / 10) << alone;
        for (const auto& each : slow) {
            EXPECT_GE(each->done, 6U) << "it is served";
        }
        again = false;
        for (const auto& each : slow) {
            each->asks = false;
        }
        run_all(milliseconds(60), milliseconds(5));
        EXPECT_EQ(client->endpoint->calls_pending(), 0U);
        EXPECT_EQ(count(CallStatus::Ok), results.size());
        EXPECT_EQ(counted().keys_ended, 0U);
        for (const auto& each : slow) {
            EXPECT_EQ(each->host.endpoint->calls_pending(), 0U);
        }
    }

    static constexpr std::array<const char*, 6> addresses{"10.0.0.11", "10.0.0.12", "10.0.0.13",
                                                          "10.0.0.14", "10.0.0.15", "10.0.0.16"};
    std::vector<std::unique_ptr<Slow>> slow;
};

TEST_F(ScalerpcSlowClients, OneOfThemCostsOthersLittle) {
    begin_with_slow(23, 1);
    expect_others_to_be_as_fast();
}

TEST_F(ScalerpcSlowClients, SomeOfThemCostOthersLittle) {
    begin_with_slow(18, 6);
    expect_others_to_be_as_fast();
}

// A host with more clients than there are places. It stops, while all of them have work.
class ScalerpcStoppedHost : public ManyClients {
protected:
    void begin_with_other(const EndpointConfig& config, std::uint32_t clients, std::uint32_t of_other) {
        begin(config, clients);
        server->endpoint->set_handler(
            kEcho,
            [](void*, const RequestOf& request) {
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            nullptr);
        other = std::make_unique<Host>("10.0.0.3", 33, config);
        other->port.join(server->port);
        server->port.join(other->port);
        for (std::uint32_t i = 0; i < of_other; ++i) {
            others.push_back(
                other->endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now).value());
            run_all(microseconds(100), true);
        }
        run_all(milliseconds(5), true);
        again = true;
        for (std::size_t i = 0; i < sessions.size(); ++i) {
            post(i);
        }
        for (const SessionId session : others) {
            ask(session);
        }
    }
    void ask(SessionId session) {
        Call call;
        call.type = kEcho;
        call.request = bytes;
        call.context = this;
        call.tag = session.value;
        call.completion = [](void* context, const rpc::CallResult& result) {
            auto& self = *static_cast<ScalerpcStoppedHost*>(context);
            EXPECT_EQ(result.status, self.leaves ? CallStatus::Disconnected : CallStatus::Ok);
            if (self.again && !self.leaves) {
                self.ask(SessionId{static_cast<std::uint32_t>(result.tag)});
            }
        };
        EXPECT_EQ(other->endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    void run_all(Duration span, bool other_runs) {
        for (const Instant end = now + span; now < end; now = now + microseconds(5)) {
            client->turn(now);
            server->turn(now);
            if (other_runs) {
                other->turn(now);
            }
        }
    }
    std::size_t calls_of_clients(Duration span, bool other_runs) {
        const std::size_t before = results.size();
        run_all(span, other_runs);
        return results.size() - before;
    }

    std::array<std::uint8_t, 32> bytes{};
    std::vector<SessionId> others;
    bool leaves = false;  // sessions of the other host end
    std::unique_ptr<Host> other;
};

TEST_F(ScalerpcStoppedHost, OthersAreServedAsBefore) {
    begin_with_other(small(64), 8, 48);
    run_all(milliseconds(10), true);
    const std::size_t before = calls_of_clients(milliseconds(20), true);
    run_all(milliseconds(5), false);  // until the server knows which one has stopped
    const std::size_t meanwhile = calls_of_clients(milliseconds(20), false);
    EXPECT_GE(meanwhile, before);
    run_all(milliseconds(30), true);
    again = false;
    run_all(milliseconds(30), true);
    EXPECT_EQ(client->endpoint->calls_pending() + other->endpoint->calls_pending(), 0U);
    EXPECT_EQ(count(CallStatus::Ok), results.size());
    EXPECT_EQ(counted().keys_ended + counted().links.peers_lost, 0U) << "it was away for a short time";
    check_clean_pools();
}

// In one group no client leaves its place, so that most places are never free again.
TEST_F(ScalerpcStoppedHost, ItGoesOnInAGroupThatNobodyLeaves) {
    begin_with_other(small(64), 4, 16);
    run_all(milliseconds(10), true);
    run_all(milliseconds(5), false);
    leaves = true;
    for (std::size_t i = 3; i < others.size(); ++i) {
        other->endpoint->disconnect(others[i], now);
    }
    leaves = false;
    run_all(milliseconds(20), true);
    EXPECT_EQ(server->endpoint->slices().groups().size(), 1U);
    again = false;
    run_all(milliseconds(20), true);
    EXPECT_EQ(client->endpoint->calls_pending() + other->endpoint->calls_pending(), 0U);
}

}  // namespace
}  // namespace cairn::scalerpc
