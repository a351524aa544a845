// The load and the service of cairn-rpcbench over copyrpc, in virtual time.
#include "apps/rpcbench/load.hpp"

#include <vector>

#include "apps/rpcbench/service.hpp"
#include "rpc/copyrpc/ring_choice.hpp"
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::rpcbench {
namespace {

class BenchLoadOverCopyrpc : public copyrpc::TwoHosts {
protected:
    BenchLoadOverCopyrpc() : TwoHosts(config()) {}
    static copyrpc::EndpointConfig config() {
        copyrpc::EndpointConfig config;
        config.message_bytes_max = 9000;  // the rings take 8 KB
        return config;
    }
    void begin() {
        service.emplace(options);
        ASSERT_TRUE(service->open(*server.endpoint).ok());
        for (std::uint32_t i = 0; i < options.sessions; ++i) {
            sessions.push_back(connect());
        }
        load = std::make_unique<LoadOf<copyrpc::Endpoint>>(options, *client.endpoint, client.pool, 1.0);
        ASSERT_TRUE(load->prepare().ok());
        load->start(sessions, now, now);
    }
    void go(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(20)) {
            (void)load->on_turn(now);
            client.turn(now);
            server.turn(now);
        }
    }
    void finish() {
        load->stop(now);
        go(milliseconds(20));
        load->give_up(client.endpoint->calls_pending());
    }

    Options options;
    std::optional<Service<copyrpc::Endpoint>> service;
    std::vector<SessionId> sessions;
    std::unique_ptr<LoadOf<copyrpc::Endpoint>> load;
};

TEST_F(BenchLoadOverCopyrpc, AClosedLoopEndsAllItsCalls) {
    begin();
    go(milliseconds(20));
    EXPECT_EQ(client.endpoint->calls_pending(), options.window);
    finish();
    EXPECT_GT(load->figures().completed(), 1000U);
    EXPECT_EQ(load->figures().failed() + load->figures().unfinished(), 0U);
    EXPECT_EQ(server.endpoint->statistics().requests_handled, load->figures().completed());
}

TEST_F(BenchLoadOverCopyrpc, EveryByteIsVerifiedWhateverTheSizes) {
    for (const std::uint32_t request : {0U, 1U, 500U, 5000U, 9000U}) {
        for (const std::uint32_t response : {1U, 900U}) {
            options.request_bytes = request;
            options.response_bytes = response;
            options.check = true;
            options.sessions = 1;
            begin();
            go(milliseconds(5));
            finish();
            EXPECT_GT(load->figures().checked(), 100U) << request << " " << response;
            EXPECT_EQ(load->figures().failure(), "");
        }
    }
}

TEST_F(BenchLoadOverCopyrpc, AnOpenLoadBeginsAsManyCallsAsAreDue) {
    options.rate_per_s = 10000;
    begin();
    go(milliseconds(100));
    finish();
    EXPECT_NEAR(static_cast<double>(load->figures().completed()), 1000, 2);
}

TEST_F(BenchLoadOverCopyrpc, CallsThatAreTooLongNameTheRing) {
    options.request_bytes = 10000;
    begin();
    EXPECT_NE(load->figures().failure().find("--ring"), std::string::npos) << load->figures().failure();
}

// The shape that the ends use says which lengths a chosen ring carries.
TEST(RingChoice, TheRingTakesWhatItWasChosenFor) {
    for (const std::uint32_t bytes : {0U, 32U, 1000U, 4096U, 8000U, copyrpc::kLongestInRing}) {
        for (const std::uint32_t calls : {1U, 8U, 64U}) {
            const std::uint32_t ring_bytes = copyrpc::ring_bytes_for({1, calls, bytes, bytes / 2});
            ASSERT_TRUE(copyrpc::Hello::is_valid_ring(ring_bytes));
            const copyrpc::RingShape ring(ring_bytes / copyrpc::kBlockBytes);
            const std::uint32_t charge = copyrpc::Message::charge_for(bytes / 2);
            EXPECT_LE(copyrpc::Message::blocks_of(bytes, true), ring.message_max()) << bytes;
            EXPECT_LE(charge, ring.charge_max()) << bytes;
            if (ring_bytes < copyrpc::RingShape::kMostBytes) {
                EXPECT_LE(charge * calls, ring.promise_max()) << bytes << ", " << calls << " calls";
            }
        }
    }
}

TEST(RingChoice, ManySessionsHaveShortRings) {
    EXPECT_EQ(copyrpc::ring_bytes_for({8, 8, 32, 32}), 64U << 10U);
    EXPECT_EQ(copyrpc::ring_bytes_for({800, 1, 32, 32}), 4096U);
    EXPECT_EQ(copyrpc::ring_bytes_for({800, 256, 32, 32}), 128U << 10U);
    EXPECT_EQ(copyrpc::ring_bytes_for({4096, 1, 0, 0}), 4096U);
    EXPECT_EQ(copyrpc::ring_bytes_for({8, 8, copyrpc::kLongestInRing + 1, 1U << 20U}), 64U << 10U);
}

}  // namespace
}  // namespace cairn::rpcbench
