// The order of two events as a program sees it: a message of its own completes before the peer's reaction to it
// arrives.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using Ids = std::vector<std::uint64_t>;

struct EngineOrder : EnginePair {
    static constexpr QpCapacity kSome{};
    static constexpr std::uint64_t kReceived = 0;  // the id that post_receive() uses

    void SetUp() override {
        a = std::make_unique<EngineHost>("10.0.0.1", EngineConfig{}, false, true);
        b = std::make_unique<EngineHost>("10.0.0.2", EngineConfig{}, false, true);
        a->port.join(b->port);
        b->port.join(a->port);
        b->port.tap = [this](std::span<const std::uint8_t> packet, const net::IpAddress&) {
            const std::uint8_t opcode = packet.data()[0];
            sent += wire::is_answer(opcode) ? 'a' : 'r';
        };
    }
    // Makes a connection with one completion queue at `a`, which receives at both ends.
    Ends connect() {
        Engine::RcQp& at_a = *a->engine.create_rc(a->pd, kSome, {a->sends, a->sends, nullptr}).value();
        Engine::RcQp& at_b = b->make_qp(kSome);
        bring_up(*a, at_a, *b, at_b);
        bring_up(*b, at_b, *a, at_a);
        for (int i = 0; i < 32; ++i) {
            EXPECT_EQ(a->post_receive(at_a, 0, 16'000), PostVerdict::Posted);
            EXPECT_EQ(b->post_receive(at_b, 0, 16'000), PostVerdict::Posted);
        }
        return {&at_a, &at_b};
    }
    // Lets a message arrive, and its receiver send these messages before its turn.
    void answer(const Ends& ends, const std::vector<std::uint32_t>& lengths) {
        ASSERT_EQ(a->post(*ends.first, request(WorkOpcode::Send, 1), 0, 8), PostVerdict::Posted);
        a->worker->give_out(now);
        ASSERT_TRUE(b->worker->take_in(now));
        for (const std::uint32_t length : lengths) {
            ASSERT_EQ(b->post(*ends.second, request(WorkOpcode::Send), 0, length), PostVerdict::Posted);
        }
        b->worker->give_out(now);
    }

    std::string sent{};  // by `b`: requests and answers
};

TEST_F(EngineOrder, AMessageCompletesBeforeTheAnswersToIt) {
    const Ends one = connect();
    const Ends other = connect();
    answer(one, {8, 8});
    answer(other, {8});
    ASSERT_TRUE(a->turn(now));
    EXPECT_EQ(done(a->sends), (Ids{1, kReceived, kReceived, 1, kReceived}));
}

// A batch ends with a packet that is shorter than the others.
TEST_F(EngineOrder, AnAcknowledgementLeavesInOneBatchWithTheFirstRequests) {
    const std::vector<std::pair<std::vector<std::uint32_t>, std::string>> cases{
        {{8}, "ra"}, {{8, 8, 8}, "rrra"}, {{8, 8, 64}, "rrar"}, {{64, 8, 8}, "rarr"}, {{9000}, "rrar"}, {{}, "a"}};
    for (const auto& [lengths, expected] : cases) {
        sent.clear();
        answer(connect(), lengths);
        EXPECT_EQ(sent, expected);
        run();
    }
}

TEST_F(EngineOrder, AnAcknowledgementLeavesFirstWhereBatchesAreRefused) {
    const Ends ends = connect();
    ends.second->path->refuse_batches_until(now + seconds(1));
    answer(ends, {8, 8});
    EXPECT_EQ(sent, "arr");
    now = now + seconds(1);
    sent.clear();
    answer(ends, {8, 8});
    EXPECT_EQ(sent, "rra");
}

}  // namespace
}  // namespace cairn::roce
