// Selective retransmission between Cairn peers, at the requester, and both ends over a link: only missing packets are
// sent again. Linux lacks this feature, so there is no golden trace of it.
#include <gtest/gtest.h>

#include <queue>

#include "lib/sim/random.hpp"
#include "tests/unit/rc/rc_requester_fixture.hpp"

namespace cairn::roce::rc {
namespace {

using Map = std::vector<std::uint8_t>;

struct RcPatching : RcRequester {
    void SetUp() override { begin(7); }

    void begin(std::uint8_t retry_count, std::uint32_t window = 256) {
        QpCapacity capacity;
        capacity.window_packets = window;
        host = std::make_unique<RcHost>(capacity);
        QpAttributes values = RcHost::usual_attributes();
        values.send_psn = psn;
        values.selective = true;
        values.retry_count = retry_count;
        host->bring_to(QpState::Rts, values);
    }
    void writes(std::uint32_t count, std::uint64_t wr_id = 0) {
        for (std::uint32_t i = 0; i < count; ++i) {
            post(WorkOpcode::RdmaWrite, 4, wr_id, false);
        }
    }
    void nak(std::uint32_t at, Map map) {
        map.resize(4 * ((map.size() + 3) / 4));
        wire::Packet packet(wire::Service::Rc, Operation::ReadResponseOnly);
        packet.set(wire::Aeth{NakCode::PsnSequence, Msn{}});
        packet.set_payload(map);
        take(packet, at);
    }
    std::vector<std::uint32_t> numbers() {
        std::vector<std::uint32_t> all;
        for (const auto& [operation, at] : sent()) {
            all.push_back(at);
        }
        return all;
    }
    using Numbers = std::vector<std::uint32_t>;
};

TEST_F(RcPatching, OnlyWhatIsMissingIsSentAgainThenWhatIsNew) {
    writes(10);
    EXPECT_EQ(numbers().size(), 10U);
    writes(2);
    nak(1, {0b0010'1110});  // 1, 2 and 6 are missing; 3, 4, 5, 7 held; 8 and 9 may be on their way
    EXPECT_EQ(numbers(), (Numbers{1, 2, 6, 10, 11}));
    nak(1, {0b0010'1110});  // reports nothing new
    EXPECT_TRUE(numbers().empty());
    acknowledge(11);
    EXPECT_EQ(host->qp->next_deadline(), Instant::never());
}

TEST_F(RcPatching, ANewGapIsAddedAndTheOldOnesAreNotSentOnceMore) {
    writes(10);
    EXPECT_EQ(numbers().size(), 10U);
    nak(1, {0b10});
    EXPECT_EQ(numbers(), (Numbers{1, 2}));
    nak(1, {0b1000'0010});  // 3 still held, now 9: 4 to 8 are missing, too
    EXPECT_EQ(numbers(), (Numbers{4, 5, 6, 7, 8}));
    acknowledge(9);
    EXPECT_EQ(host->qp->next_deadline(), Instant::never());
}

TEST_F(RcPatching, WhatIsLostAgainIsSeenByWhatWasSentBehindIt) {
    writes(4);
    EXPECT_EQ(numbers().size(), 4U);
    nak(0, {1});
    EXPECT_EQ(numbers(), (Numbers{0}));
    writes(1);
    EXPECT_EQ(numbers(), (Numbers{4}));
    nak(0, {0b0111});  // 3 came: it was sent before 0 was sent again
    EXPECT_TRUE(numbers().empty());
    nak(0, {0b1111});  // but 4 was not
    EXPECT_EQ(numbers(), (Numbers{0}));
}

TEST_F(RcPatching, PassesCostNoRetriesAndTheWindowEndsThem) {
    begin(0, 4);
    writes(9);
    EXPECT_EQ(numbers(), (Numbers{0, 1, 2, 3}));
    nak(0, {0b1});
    nak(0, {0b111});
    EXPECT_EQ(numbers(), (Numbers{0}));
    nak(0, {0b111});
    EXPECT_TRUE(numbers().empty());
    time_out();
    EXPECT_EQ(host->qp->state(), QpState::Err);
    EXPECT_EQ(completions().at(0).second, CompletionStatus::RetryExceeded);
}

TEST_F(RcPatching, ATimeoutSendsAllThatIsNotKnownToBeHeld) {
    writes(6);
    EXPECT_EQ(numbers().size(), 6U);
    nak(0, {0b0110});
    EXPECT_EQ(numbers(), (Numbers{0, 1}));
    time_out();
    EXPECT_EQ(numbers(), (Numbers{0, 1, 4, 5}));
    nak(2 + 2, {});  // without a map it is a plain NAK: all before 4 came
    EXPECT_EQ(numbers(), (Numbers{4}));
    answer(4, NakCode::PsnSequence);
    EXPECT_EQ(numbers(), (Numbers{4, 5}));
}

TEST_F(RcPatching, AMessageOfManyPacketsIsPatchedInside) {
    post(WorkOpcode::RdmaWrite, 256 * 10, 1);
    EXPECT_EQ(numbers().size(), 10U);
    post(WorkOpcode::RdmaWrite, 4, 2);
    nak(2, {0b0101'0110});
    EXPECT_EQ(sent(), (Packets{{Operation::WriteMiddle, 2},
                               {Operation::WriteMiddle, 3},
                               {Operation::WriteMiddle, 6},
                               {Operation::WriteMiddle, 8},
                               {Operation::WriteOnly, 10}}));
    acknowledge(10);
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {2, kGood}}));
}

TEST_F(RcPatching, AReadWhoseAnswerWasLostIsAskedForAloneAndOnce) {
    post(WorkOpcode::RdmaRead, 600, 1);  // PSNs 0 to 2
    writes(3);
    post(WorkOpcode::RdmaRead, 4, 2);  // 6
    writes(1);
    EXPECT_EQ(numbers(), (Numbers{0, 3, 4, 5, 6, 7}));
    const std::vector<std::uint8_t> full(256, 1);
    respond(Operation::ReadResponseFirst, 0, full);
    respond(Operation::ReadResponseLast, 2, std::vector<std::uint8_t>(88, 1));  // 1 was lost
    EXPECT_EQ(numbers(), (Numbers{1}));
    acknowledge(5);  // not again when the READ is complete
    EXPECT_TRUE(numbers().empty());
    respond(Operation::ReadResponseOnly, 6, {1, 2, 3, 4});  // out of order
    EXPECT_EQ(numbers(), (Numbers{6}));
    respond(Operation::ReadResponseFirst, 1, full);
    respond(Operation::ReadResponseLast, 2, std::vector<std::uint8_t>(88, 1));
    respond(Operation::ReadResponseOnly, 6, {1, 2, 3, 4});
    acknowledge(7);
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {2, kGood}}));
    EXPECT_EQ(host->qp->next_deadline(), Instant::never());
}

TEST_F(RcPatching, WhatWasAcknowledgedBehindAReadCompletesWithItAndNeedsNoSecondWord) {
    post(WorkOpcode::RdmaRead, 4, 1);
    post(WorkOpcode::Send, 4, 2);
    EXPECT_EQ(numbers(), (Numbers{0, 1}));
    acknowledge(1);  // the answer of the READ was lost
    EXPECT_EQ(numbers(), (Numbers{0}));
    EXPECT_TRUE(completions().empty());
    respond(Operation::ReadResponseOnly, 0, {1, 2, 3, 4});
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {2, kGood}}));
    EXPECT_EQ(host->qp->next_deadline(), Instant::never());
}

TEST_F(RcPatching, TheNotReadyPeersPacketIsSentThoughItWasHeld) {
    writes(1);
    post(WorkOpcode::Send, 4, 1);
    writes(2);
    EXPECT_EQ(numbers().size(), 4U);
    nak(0, {0b111});
    EXPECT_EQ(numbers(), (Numbers{0}));
    answer(1, wire::RnrTimer{14});
    now = host->qp->next_deadline();
    host->qp->on_timeout(now);
    EXPECT_EQ(numbers(), (Numbers{1}));  // 2 and 3 are still held
    acknowledge(3);
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
}

TEST_F(RcPatching, ANotReadyPeerBehindAReadWithoutAnswerHasNotTakenItsPacket) {
    post(WorkOpcode::RdmaRead, 4, 1);
    post(WorkOpcode::Send, 4, 2);
    EXPECT_EQ(numbers(), (Numbers{0, 1}));
    answer(1, wire::RnrTimer{14});
    EXPECT_EQ(numbers(), (Numbers{0}));
    respond(Operation::ReadResponseOnly, 0, {1, 2, 3, 4});
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
    time_out();
    EXPECT_EQ(numbers(), (Numbers{1}));
}

// Otherwise a packet of the next round of PSNs would never be sent again.
TEST(RcResendPlan, AMapIsForgottenLongBeforeItsNumbersComeAgain) {
    const Psn base{0xfffff0};
    ResendPlan plan(base);
    EXPECT_EQ(plan.take_map(base, Map{0b101, 0, 0, 0, 1, 0, 0, 0}), base.plus(33));
    EXPECT_TRUE(plan.spares(base.plus(1), base, false));
    EXPECT_FALSE(plan.spares(base.plus(2), base, false));
    EXPECT_TRUE(plan.spares(base.plus(33), base, false));
    EXPECT_FALSE(plan.spares(base.plus(33), base.plus(33), false));  // the oldest: released
    Psn at = base;
    for (std::uint32_t turn = 0; turn < 1U << 24U; turn += 1U << 20U) {
        at = base.plus(turn + (1U << 20U));
        plan.on_progress(at);
        EXPECT_FALSE(plan.knows());
        EXPECT_FALSE(plan.spares(at, at, false));
        EXPECT_FALSE(plan.spares(at.plus(1), at, false));
        EXPECT_FALSE(plan.spares(at.plus(33), at, false));
    }
}

// A pipe of fixed length with random losses. One queue pair sends as fast as its window permits.
struct Pipe {
    static constexpr int kTurns = 6000;
    static constexpr std::size_t kPerTurn = 8;
    static constexpr int kLatencyTurns = 4;

    struct Result {
        std::uint64_t sent = 0;
        std::uint64_t completed = 0;
        std::uint64_t timeouts = 0;
    };
    static Result run(bool selective, std::uint32_t loss_per_million, std::uint64_t seed) {
        QpCapacity capacity;
        capacity.send_slots = 256;
        capacity.window_packets = 192;
        RcHost from(capacity);
        RcHost to(capacity);
        QpAttributes values = RcHost::usual_attributes();
        values.selective = selective;
        values.send_psn = values.receive_psn;
        from.bring_to(QpState::Rts, values);
        to.bring_to(QpState::Rts, values);
        sim::Random random(seed);
        std::deque<std::vector<Datagram>> there(kLatencyTurns);
        std::deque<std::vector<Datagram>> back(kLatencyTurns);
        Result result;
        Instant now{1};
        const auto cross = [&](RcHost& one, std::deque<std::vector<Datagram>>& link, std::size_t most) {
            std::array<OutPacket, kPerTurn> burst;
            const std::size_t count = one.qp->poll_transmit(std::span(burst).first(most), now);
            link.emplace_back();
            for (const OutPacket& packet : std::span(burst).first(count)) {
                if (!random.chance(loss_per_million)) {
                    link.back().push_back(datagram_of(packet));
                }
            }
            return count;
        };
        for (int turn = 0; turn < kTurns; ++turn, now = now + microseconds(1)) {
            SendRequest request;
            request.opcode = WorkOpcode::RdmaWrite;
            request.remote_address = RcHost::kBase;
            request.rkey = to.key;
            while (from.post(request, RcHost::kBase, 256 * 4) == PostVerdict::Posted) {
            }
            from.qp->on_timeout(now);
            result.sent += cross(from, there, kPerTurn);
            for (const Datagram& datagram : there.front()) {
                to.take(datagram, now);
            }
            there.pop_front();
            (void)cross(to, back, kPerTurn);
            for (const Datagram& datagram : back.front()) {
                from.take(datagram, now);
            }
            back.pop_front();
            result.completed += RcHost::drain(from.send_completions).size();
        }
        EXPECT_EQ(from.qp->state(), QpState::Rts);
        result.timeouts = from.counters.of(RcCounter::Timeout) + from.counters.of(RcCounter::EarlyTimeout);
        return result;
    }
};

TEST(RcSelectiveLink, FewerPacketsAreSentAgainAndMoreArrives) {
    const Pipe::Result lossless = Pipe::run(false, 0, 1);
    ASSERT_GT(lossless.completed, 10'000U);
    struct Case {
        std::uint32_t loss_per_million;
        double least_of_lossless;
    };
    for (const Case& one : {Case{1'000, 0.9}, Case{10'000, 0.7}}) {
        const Pipe::Result plain = Pipe::run(false, one.loss_per_million, 7);
        const Pipe::Result selective = Pipe::run(true, one.loss_per_million, 7);
        const auto again = [](const Pipe::Result& result) {
            return static_cast<double>(result.sent) / static_cast<double>(result.completed * 4) - 1;
        };
        const auto share = [&](const Pipe::Result& result) {
            return static_cast<double>(result.completed) / static_cast<double>(lossless.completed);
        };
        std::printf("loss %.1f %%: sent again %.1f %% going back, %.1f %% selective; done %.2f, %.2f of lossless\n",
                    one.loss_per_million / 10'000.0, again(plain) * 100, again(selective) * 100, share(plain),
                    share(selective));
        EXPECT_LT(again(selective) * 4, again(plain));
        EXPECT_GT(share(selective), share(plain));
        EXPECT_GT(share(selective), one.least_of_lossless);
    }
}

}  // namespace
}  // namespace cairn::roce::rc
