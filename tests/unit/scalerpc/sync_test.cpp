// Servers whose slices begin at the same times, although their clocks differ and drift.
#include <algorithm>
#include <map>

#include "rpc/scalerpc/time_sync.hpp"
#include "tests/unit/scalerpc/host.hpp"

namespace cairn::scalerpc {
namespace {

constexpr std::uint16_t kTime = 7474;
constexpr std::uint8_t kAsk = 3;
constexpr SliceClockConfig kClock{microseconds(200), 2, milliseconds(10)};

// A server, and the endpoint without slices by which it asks for or gives the time.
struct TimedHost : Host {
    TimedHost(const char* address, std::uint64_t seed, const EndpointConfig& config) : Host(address, seed, config) {
        EndpointConfig plain;
        plain.shape = {256, 4};
        plain.sessions_max = 4;
        plain.features = {false, false, false, false, false, false};
        time_endpoint = Endpoint::create(plain, *device, *home, pool).value();
    }
    std::unique_ptr<Endpoint> time_endpoint;
};

class ScalerpcSync : public testing::Test {
protected:
    static EndpointConfig config() {
        EndpointConfig config;
        config.shape = {256, 4};
        config.groups.size = 8;
        config.sessions_max = 16;
        return config;
    }
    // Returns the second server's time: its clock is ahead, and fast.
    static Instant theirs(Instant now) { return now + milliseconds(37) + Duration{now.ns / 1'000'000 * 80}; }

    void begin() {
        EndpointConfig served = config();
        clocks.emplace_back(kClock, now);
        clocks.emplace_back(kClock, theirs(now) + microseconds(130));
        for (std::size_t i = 0; i < 2; ++i) {
            served.slice_clock = &clocks[i];
            servers.push_back(std::make_unique<TimedHost>(i == 0 ? "10.0.0.1" : "10.0.0.2", 10 + i, served));
            ASSERT_TRUE(servers[i]->endpoint->listen(kService).ok());
            ASSERT_TRUE(servers[i]->time_endpoint->listen(kTime).ok());
            servers[i]->endpoint->set_handler(
                kAsk,
                [](void*, const RequestOf& asked) {
                    (void)asked.endpoint.answer(asked.handle, asked.payload, asked.now);
                },
                nullptr);
            EXPECT_TRUE(serve_time(*servers[i]->time_endpoint, kAsk, clocks[i]).ok());
        }
        for (std::size_t i = 0; i < 4; ++i) {
            EndpointConfig one = config();
            one.cohort = static_cast<std::uint8_t>(i);
            one.watches_stalls = true;
            clients.push_back(std::make_unique<Host>(kAddresses[i], 20 + i, one));
        }
        for (const auto& server : servers) {
            for (const auto& client : clients) {
                server->port.join(client->port);
                client->port.join(server->port);
            }
        }
        servers[0]->port.join(servers[1]->port);
        servers[1]->port.join(servers[0]->port);
        for (const auto& client : clients) {
            for (const char* const address : {"10.0.0.1", "10.0.0.2"}) {
                ASSERT_TRUE(client->endpoint->connect(net::IpAddress::parse(address).value(), kService, now).ok());
            }
        }
        run(milliseconds(5));
    }
    void follow() {
        const auto session =
            servers[1]->time_endpoint->connect(net::IpAddress::parse("10.0.0.1").value(), kTime, theirs(now));
        follower = std::make_unique<TimeFollower<Endpoint>>(*servers[1]->worker, *servers[1]->time_endpoint,
                                                            session.value(), kAsk, clocks[1]);
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(5)) {
            servers[0]->turn(now);
            servers[1]->turn(theirs(now));
            for (const auto& client : clients) {
                client->turn(now);
            }
            look();
        }
    }
    void look() {
        for (std::size_t i = 0; i < servers.size(); ++i) {
            const Slice& slice = servers[i]->endpoint->slices().slice();
            if (slice.number != numbers[i]) {
                numbers[i] = slice.number;
                began[i][slice.slot] = now;
            }
        }
    }
    // Lets each client ask both servers, and again once it has both answers.
    void ask_all() {
        for (const auto& client : clients) {
            asks[client.get()] = {this, client.get(), 0};
            ask(asks[client.get()]);
        }
    }
    struct Asked {
        ScalerpcSync* test = nullptr;
        Host* client = nullptr;
        int open = 0;
    };
    void ask(Asked& asked) {
        for (std::uint16_t i = 0; i < 2; ++i) {
            Call call;
            call.type = kAsk;
            call.request = request;
            call.context = &asked;
            call.completion = [](void* context, const rpc::CallResult& result) {
                Asked& self = *static_cast<Asked*>(context);
                self.test->failed += result.status == CallStatus::Ok ? 0U : 1U;
                ++self.test->answered;
                if (--self.open == 0 && self.test->goes_on) {
                    self.test->ask(self);
                }
            };
            ++asked.open;
            ASSERT_EQ(asked.client->endpoint->post(SessionId{i}, call, now).verdict, PostVerdict::Posted);
        }
    }
    // Returns the part of the clients' slices in which they stall, within the next period.
    double stall_fraction() {
        std::int64_t stalled = 0;
        std::int64_t served = 0;
        for (const int sign : {-1, 1}) {
            for (const auto& client : clients) {
                stalled += sign * static_cast<std::int64_t>(std::uint64_t{client->endpoint->statistics().stalled_ns});
                served += sign * static_cast<std::int64_t>(std::uint64_t{client->endpoint->statistics().in_slice_ns});
            }
            if (sign < 0) {
                run(milliseconds(30));
            }
        }
        EXPECT_GT(served, 0);
        return static_cast<double>(stalled) / static_cast<double>(std::max<std::int64_t>(served, 1));
    }
    // Returns the greatest distance of the servers' switches to the same slot, for slots from `first` on. Counts them.
    Duration most_apart(std::uint64_t first, std::size_t& slots) const {
        Duration most{};
        for (const auto& [slot, at] : began[0]) {
            const auto other = began[1].find(slot);
            if (slot >= first && other != began[1].end()) {
                ++slots;
                most = std::max({most, at - other->second, other->second - at});
            }
        }
        return most;
    }

    static constexpr const char* kAddresses[] = {"10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"};
    Instant now{1'000'000'000};
    std::array<std::uint8_t, 32> request{};
    std::vector<SliceClock> clocks = reserved();
    static std::vector<SliceClock> reserved() {
        std::vector<SliceClock> clocks;
        clocks.reserve(2);  // endpoints point to the elements
        return clocks;
    }
    std::array<std::uint64_t, 2> numbers{};
    std::array<std::map<std::uint64_t, Instant>, 2> began;
    std::map<Host*, Asked> asks;
    bool goes_on = true;
    std::uint64_t answered = 0;
    std::uint64_t failed = 0;
    std::vector<std::unique_ptr<TimedHost>> servers;
    std::vector<std::unique_ptr<Host>> clients;
    std::unique_ptr<TimeFollower<Endpoint>> follower;  // calls end before it, by stop()
    void TearDown() override {
        goes_on = false;
        clients.clear();
        for (const auto& server : servers) {
            server->time_endpoint.reset();
        }
        follower.reset();
    }
};

TEST_F(ScalerpcSync, ServersSwitchToTheSameGroupAtTheSameTime) {
    begin();
    follow();
    ask_all();
    run(milliseconds(30));
    const std::uint64_t first = servers[0]->endpoint->slices().slice().slot;
    run(milliseconds(60));
    EXPECT_GT(follower->taken(), 5U);
    EXPECT_EQ(follower->failed(), 0U);
    std::size_t slots = 0;
    const Duration apart = most_apart(first + 1, slots);
    EXPECT_GT(slots, 200U);
    EXPECT_LE(apart, microseconds(40)) << "a few turns";
    EXPECT_EQ(failed, 0U);
    EXPECT_GT(answered, 1000U);
    for (const auto& server : servers) {
        server->endpoint->slices().groups().check();
        EXPECT_EQ(telemetry::text_of(server->endpoint->statistics().breaches.snapshot()), "");
    }
}

// A server that does not ask differs. Its clients have a slice here while they wait there.
TEST_F(ScalerpcSync, ClientsOfServersThatAreApartStallMore) {
    begin();
    ask_all();
    run(milliseconds(10));
    const double apart = stall_fraction();
    std::size_t slots = 0;
    EXPECT_GT(most_apart(0, slots), microseconds(100));
    follow();
    run(milliseconds(30));
    const double together = stall_fraction();
    EXPECT_GT(apart, 0.2);
    EXPECT_LT(together, apart / 2);
}

TEST_F(ScalerpcSync, IdleServersDoNothing) {
    begin();
    follow();
    run(milliseconds(30));
    const std::uint64_t before = servers[0]->endpoint->statistics().switches;
    run(milliseconds(30));
    EXPECT_EQ(servers[0]->endpoint->statistics().switches, before);
    goes_on = false;
    ask_all();
    run(milliseconds(2));
    EXPECT_EQ(answered, 8U);
    EXPECT_EQ(failed, 0U);
}

// A client learns that it waits at one server while another one serves it.
TEST(ScalerpcServers, SlicesThatNobodyKeepsInStepAreCounted) {
    for (const bool grouping : {true, false}) {
        EndpointConfig config;
        config.shape = {256, 4};
        config.sessions_max = 4;
        config.features = grouping ? Features{} : kRawWrite;
        Host client("10.0.0.3", 3, config);
        std::vector<std::unique_ptr<Host>> servers;
        Instant now{1'000'000'000};
        for (const char* const address : {"10.0.0.1", "10.0.0.2"}) {
            servers.push_back(std::make_unique<Host>(address, 7, config));
            Host& server = *servers.back();
            server.port.join(client.port);
            client.port.join(server.port);
            ASSERT_TRUE(server.endpoint->listen(kService).ok());
            server.endpoint->set_handler(
                kAsk, [](void*, const RequestOf&) {}, nullptr);
            for (int i = 0; i < 2; ++i) {
                ASSERT_TRUE(client.endpoint->connect(net::IpAddress::parse(address).value(), kService, now).ok());
            }
            for (const Instant end = now + milliseconds(5); now < end; now = now + microseconds(5)) {
                client.turn(now);
                server.turn(now);
            }
        }
        EXPECT_EQ(client.events.size(), 4U);
        EXPECT_EQ(client.endpoint->statistics().sessions_out_of_step, grouping ? 2U : 0U);
    }
}

}  // namespace
}  // namespace cairn::scalerpc
