// Who ends a session, or answers its calls: nobody who only guesses.
#include <gtest/gtest.h>

#include "tests/unit/erpc/host.hpp"
#include "tests/unit/erpc/raw_peer.hpp"

namespace cairn::erpc {
namespace {

// SplitMix64's output and what was its input.
std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31U);
}
std::uint64_t unmix(std::uint64_t value) {
    const auto unshift = [](std::uint64_t of, unsigned bits) {
        for (unsigned done = bits; done < 64; done *= 2) {
            of ^= of >> done;
        }
        return of;
    };
    value = unshift(value, 31) * 0x319642b2d24d8ec3U;
    return unshift(unshift(value, 27) * 0x96de1b173f119089U, 30);
}

TEST(ForgedEnds, ATokenDoesNotFollowFromThoseBeforeIt) {
    ASSERT_EQ(unmix(mix(0x0123456789abcdefU)), 0x0123456789abcdefU);
    Host client("10.0.0.1", 11);
    RawPeer server("10.0.0.2");
    client.port.join(server.port);
    server.port.join(client.port);
    Instant now{1'000'000'000};
    std::vector<std::uint64_t> tokens;
    for (int i = 0; i < 8; ++i) {
        (void)client.endpoint->connect(
            {client.port.open_path({client.port.local_address(), server.port.local_address(), 0xc000, 0}, now),
             Qpn{0x100}, Qkey{0x205}},
            now);
        client.turn(now);
        server.turn(now);
        tokens.push_back(server.last(ControlType::Connect)->control().token);
    }
    for (std::size_t i = 1; i < tokens.size(); ++i) {
        EXPECT_NE(tokens[i], mix(unmix(tokens[i - 1]) + 0x9e3779b97f4a7c15U)) << "SplitMix64";
        EXPECT_NE(tokens[i] - tokens[i - 1], tokens[1] - tokens[0] + (i == 1 ? 1 : 0)) << "a counter";
    }
}

}  // namespace
}  // namespace cairn::erpc
