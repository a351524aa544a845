// The integration tests of copyrpc's authors, by their names: their expectations of two contexts hold here.
#include <algorithm>

#include "tests/unit/copyrpc/two_hosts.hpp"

namespace cairn::copyrpc {
namespace {

// Echoed calls of one session, with a number of them under way.
struct PingPong {
    Host& host;
    SessionId session{};
    std::uint32_t depth = 1;
    std::vector<std::size_t> sizes{32};  // of the calls, in turn
    std::uint64_t posted = 0;
    std::uint64_t answered = 0;
    std::uint64_t failed = 0;
    std::map<std::uint64_t, std::vector<std::uint8_t>> requests{};

    void go_on(std::uint64_t calls, Instant now) {
        while (posted < calls && posted - answered - failed < depth) {
            std::vector<std::uint8_t>& bytes = requests[posted];
            bytes.assign(sizes[posted % sizes.size()], static_cast<std::uint8_t>(posted * 7 + 1));
            Call call;
            call.type = kEcho;
            call.request = bytes;
            call.context = this;
            call.tag = posted;
            call.completion = [](void* context, const rpc::CallResult& result) {
                auto& self = *static_cast<PingPong*>(context);
                const std::vector<std::uint8_t>& sent = self.requests.at(result.tag);
                const bool good = result.status == CallStatus::Ok &&
                                  std::equal(sent.begin(), sent.end(), result.response.begin(), result.response.end());
                ++(good ? self.answered : self.failed);
                self.requests.erase(result.tag);
            };
            if (host.endpoint->post(session, call, now).verdict != PostVerdict::Posted) {
                requests.erase(posted);
                return;
            }
            ++posted;
        }
    }
};

EndpointConfig tiny(std::uint32_t ring_bytes, std::uint32_t answer_bytes) {
    EndpointConfig config = small_config(answer_bytes);
    config.ring_bytes = ring_bytes;
    return config;
}

// As in the authors' contexts, an end has rings of 64 KiB, or the smallest ones.
class Usual : public TwoHosts {
protected:
    explicit Usual(const EndpointConfig& config = {}) : TwoHosts(config) {}

    // Runs until this many calls of each have ended. All answers were correct (expected).
    void play(std::vector<PingPong*> all, std::uint64_t calls) {
        const auto is_done = [&] {
            return std::all_of(all.begin(), all.end(),
                               [&](const PingPong* each) { return each->answered + each->failed == calls; });
        };
        for (int turns = 0; !is_done() && turns < 200'000; ++turns) {
            for (PingPong* each : all) {
                each->go_on(calls, now);
            }
            run(microseconds(10), microseconds(10));
        }
        for (const PingPong* each : all) {
            EXPECT_EQ(each->answered, calls);
            EXPECT_EQ(each->failed, 0U);
        }
    }
    // Runs calls over eight sessions.
    void play_eight(std::uint32_t depth, std::uint64_t calls) {
        std::vector<PingPong> all;
        std::vector<PingPong*> each;
        all.reserve(8);
        for (int i = 0; i < 8; ++i) {
            each.push_back(&all.emplace_back(PingPong{client, connect(), depth}));
        }
        play(each, calls);
    }
    void play(std::uint32_t depth, std::uint64_t calls, std::vector<std::size_t> sizes) {
        PingPong one{client, connect(), depth, std::move(sizes)};
        play({&one}, calls);
    }
};
class Tiny : public Usual {
protected:
    Tiny() : Usual(tiny(RingShape::kLeastBytes, 500)) {}
};
class TinyOf8K : public Usual {
protected:
    TinyOf8K() : Usual(tiny(8192, 100)) {}
};

using CopyrpcUpstream = Usual;
using CopyrpcUpstreamCredit = Tiny;
using CopyrpcUpstreamDc = TinyOf8K;

TEST_F(CopyrpcUpstream, ContextCreation) {
    EXPECT_EQ(client.endpoint->sessions_open(), 0U);
    EXPECT_EQ(client.endpoint->calls_pending(), 0U);
}

TEST_F(CopyrpcUpstream, EndpointCreation) {
    (void)connect();
    EXPECT_EQ(client.endpoint->sessions_open(), 1U);
    EXPECT_EQ(server.endpoint->sessions_open(), 1U);
}

TEST_F(CopyrpcUpstream, SimplePingpong) {
    play(1, 100, {32});
}

TEST_F(CopyrpcUpstream, MultiEndpointPingpong) {
    play_eight(1, 100);
}

TEST_F(CopyrpcUpstream, BenchmarkStylePingpong) {
    play(256, 5000, {32});
}

TEST_F(CopyrpcUpstream, RingWraparound) {
    play(8, 3000, {200});  // ten rings of 64 KiB
}

TEST_F(CopyrpcUpstream, HighThroughputSustained) {
    play(64, 20'000, {32});
}

TEST_F(CopyrpcUpstream, DebugSmallIterations) {
    play(2, 3, {8});
}

TEST_F(CopyrpcUpstream, BenchmarkPattern) {
    play_eight(32, 500);
}

// In their implementation as many batches as receive requests stopped a connection.
TEST_F(CopyrpcUpstreamCredit, SrqExhaustionPingpong) {
    play(1, 100 * std::uint64_t{Hello::kLeastReceives}, {32});
}

// Eight messages are longer than the rest of the ring.
TEST_F(CopyrpcUpstreamCredit, EmitWqeBoundarySplit) {
    play(8, 400, {96});
}

TEST_F(CopyrpcUpstreamCredit, SmallRingLargeResponse) {
    play(1, 200, {440});
}

TEST_F(CopyrpcUpstreamCredit, MixedSizes) {
    play(6, 2000, {0, 8, 440, 32, 100, 1, 300});
}

// Both ends call over one connection.
TEST_F(CopyrpcUpstreamCredit, BidirectionalStress) {
    PingPong ours{client, connect(), 16, {32, 200, 8}};
    PingPong theirs{server, SessionId{0}, 16, {100, 8, 400}};
    play({&ours, &theirs}, 3000);
}

TEST_F(CopyrpcUpstreamCredit, DeepQueueTinyRing) {
    play(512, 4000, {32});
}

// For some time there is no room for anything, and then all of it arrives.
TEST_F(CopyrpcUpstreamCredit, ExhaustionRecovery) {
    PingPong one{client, connect(), 1000, {64}};
    one.go_on(1000, now);
    EXPECT_EQ(one.posted, 1000U);
    play({&one}, 1000);
    play({&one}, 1100);
}

TEST_F(CopyrpcUpstreamDc, BidirectionalStress) {
    PingPong ours{client, connect(), 64};
    PingPong theirs{server, SessionId{0}, 64};
    play({&ours, &theirs}, 5000);
}

TEST_F(CopyrpcUpstreamDc, TinyRing) {
    play(128, 5000, {32, 64});
}

}  // namespace
}  // namespace cairn::copyrpc
