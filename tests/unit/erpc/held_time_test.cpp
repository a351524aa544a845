// The time that packets wait in a slow server is not network time, and causes no pacing.
#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {
namespace {

constexpr Duration kStep = microseconds(50);
constexpr int kRoundTrip = 5;  // steps
constexpr Duration kHeld = kStep * (kRoundTrip - 1);
constexpr int kBurst = 16;  // the datagrams of one turn of a host
constexpr std::uint16_t kCredits = 2 * kBurst;
constexpr std::size_t kBytes = 900'000;

struct HeldTimes : TwoHosts {
    HeldTimes() {
        for (Host* const host : {&client, &server}) {
            host->config.credits = kCredits;
            host->config.congestion.algorithm = CongestionAlgorithm::Timely;
            host->config.congestion.link_bits_per_s = 25e9;
            host->restart(host == &client ? 1U : 2U, std::size_t{8} << 20U);
        }
    }
    void round_trip() {
        for (int step = 0; step < kRoundTrip; ++step, now = now + kStep) {
            client.turn(now);
        }
        for (int bursts = kCredits / kBurst; bursts > 0; --bursts) {
            server.turn(now);
        }
    }
    // Keeps the client's worker away while the answers come.
    void absence() {
        for (int bursts = kCredits / kBurst; bursts > 0; --bursts) {
            client.turn(now);
        }
        for (int bursts = kCredits / kBurst; bursts > 0; --bursts) {
            server.turn(now);
        }
        now = now + milliseconds(3);
    }
    // Measures a large call after others from which congestion control has learned.
    template <class RoundTrip>
    int round_trips_of_a_call(const RoundTrip& round_trip) {
        const SessionId session = connect();
        int count = 0;
        for (std::uint64_t tag = 0; tag < 4; ++tag) {
            EXPECT_EQ(post(session, tag, Instant::never(), kBytes).verdict, PostVerdict::Posted);
            for (count = 0; results.count(tag) == 0 && count < 20'000; ++count) {
                round_trip();
            }
        }
        expect_all(4, CallStatus::Ok);
        return count;
    }
};

// Request and response take one window in each round trip.
constexpr int kAtFullWindow = static_cast<int>(2 * kBytes / (1024 - sizeof(RawHeader)) / kCredits);

TEST_F(HeldTimes, OfAServerIsNoReasonToPace) {
    server.port.waited = kHeld;
    EXPECT_LT(round_trips_of_a_call([this] { round_trip(); }), kAtFullWindow * 3 / 2);
}

TEST_F(HeldTimes, ButTheNetworksIs) {
    EXPECT_GT(round_trips_of_a_call([this] { round_trip(); }), kAtFullWindow * 3 / 2);
}

TEST_F(HeldTimes, NorIsAPauseOfOurOwn) {
    EXPECT_LT(round_trips_of_a_call([this] { absence(); }), kAtFullWindow * 3 / 2);
}

}  // namespace
}  // namespace cairn::erpc
