// The time that packets wait in a slow server is not the network's: nobody paces for that.
#include <gtest/gtest.h>

#include "tests/unit/erpc/host.hpp"

namespace cairn::erpc {
namespace {

constexpr std::uint8_t kType = 3;
constexpr Duration kStep = microseconds(50);
constexpr Duration kHeld = kStep * 4;  // in the server, of a round trip of five steps
constexpr std::uint16_t kCredits = 32;
constexpr std::size_t kBytes = 900'000;

struct HeldTime : testing::Test {
    HeldTime() {
        for (Host* const host : {&client, &server}) {
            host->config.credits = kCredits;
            host->config.congestion.algorithm = CongestionAlgorithm::Timely;
            host->config.congestion.link_bits_per_s = 25e9;
            host->restart(host == &client ? 1U : 2U, std::size_t{8} << 20U);
        }
        client.port.join(server.port);
        server.port.join(client.port);
        server.endpoint->set_handler(
            kType,
            [](void*, const Request& asked) {
                (void)asked.endpoint.reserve(asked.handle, 4);
                asked.endpoint.respond(asked.handle, asked.now);
            },
            nullptr);
    }
    void step() {
        client.turn(now);
        for (int bursts = steps % 5 == 4 ? kCredits / 16 : 0; bursts > 0; --bursts) {  // all that is under way
            server.turn(now);
        }
        ++steps;
        now = now + kStep;
    }
    // In steps, of a large call after others by which congestion control has learned what it learns.
    int time_of_a_call() {
        const SessionId session = client.connect(server, now);
        int took = 0;
        for (int calls = 0; calls < 4; ++calls) {
            bool done = false;
            Call call;
            call.type = kType;
            call.request = request;
            call.context = &done;
            call.completion = [](void* context, const CallResult& result) {
                EXPECT_EQ(result.status, CallStatus::Ok);
                *static_cast<bool*>(context) = true;
            };
            EXPECT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
            const int from = steps;
            while (!done && steps < from + 100'000) {
                step();
            }
            took = steps - from;
        }
        return took;
    }

    Host client{"10.0.0.1", 1};
    Host server{"10.0.0.2", 2};
    std::vector<std::uint8_t> request = std::vector<std::uint8_t>(kBytes);
    Instant now{1'000'000};
    int steps = 0;
};

constexpr int kAtFullWindow = static_cast<int>(kBytes / (1024 - sizeof(RawHeader)) / kCredits) * 5;

TEST_F(HeldTime, OfAServerIsNoReasonToPace) {
    server.port.waited = kHeld;
    EXPECT_LT(time_of_a_call(), kAtFullWindow * 3 / 2);
}

TEST_F(HeldTime, ButTheNetworksIs) {
    EXPECT_GT(time_of_a_call(), kAtFullWindow * 3 / 2);
}

}  // namespace
}  // namespace cairn::erpc
