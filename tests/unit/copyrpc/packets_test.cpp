// How many packets a call takes, acknowledgements of both ends included.
#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

constexpr double kMostPerCall = 2.5;

class CopyrpcPackets : public TwoHosts {
protected:
    [[nodiscard]] std::uint64_t packets() const {
        const auto of = [](const Host& host) {
            return host.worker->engine().counters().of(roce::EngineCounter::PacketsSent);
        };
        return of(client) + of(server);
    }
    // Opens this many sessions, each with one call under way at a time, until there were `calls`. Returns packets per
    // call.
    double packets_per_call(std::size_t session_count, std::uint64_t calls) {
        std::vector<SessionId> sessions(session_count);
        std::vector<std::uint64_t> under_way(session_count, 0);
        for (SessionId& session : sessions) {
            session = connect();
        }
        const std::uint64_t before = packets();
        std::uint64_t last = 0;
        while (last < calls || results.size() < last) {
            for (std::size_t i = 0; i < session_count; ++i) {
                const bool idle = under_way[i] == 0 || results.count(under_way[i]) != 0;
                if (idle && last < calls) {
                    under_way[i] = ++last;
                    EXPECT_EQ(post(sessions[i], last).verdict, PostVerdict::Posted);
                }
            }
            run(microseconds(10), microseconds(10));
            if (testing::Test::HasFailure()) {
                return 0;
            }
        }
        run(milliseconds(2));  // the last acknowledgements
        EXPECT_EQ(count(CallStatus::Ok), calls);
        return static_cast<double>(packets() - before) / static_cast<double>(calls);
    }
};

TEST_F(CopyrpcPackets, ACallByItselfIsTwoAndFewAcknowledgements) {
    EXPECT_LE(packets_per_call(1, 3'000), kMostPerCall);
}

TEST_F(CopyrpcPackets, SoAreThoseOfManySessionsOneEach) {
    EXPECT_LE(packets_per_call(40, 20'000), kMostPerCall);
}

}  // namespace
}  // namespace cairn::copyrpc
