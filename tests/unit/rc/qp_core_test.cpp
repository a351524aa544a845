// The core of queue pairs: the rights of each state, the effects of a reset, and receive requests of its own.
#include "lib/roce/qp/qp_core.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace cairn::roce {
namespace {

using enum QpState;
using enum wire::Service;

constexpr std::array kAllStates{Reset, Init, Rtr, Rts, Sqd, Sqe, Err};
constexpr Qpn kQpn{7};

struct QpCoreOf : testing::Test {
    void make(QpKind kind, bool shared = false) {
        QpCapacity capacity;
        capacity.receive_slots = 4;
        core = std::make_unique<QpCore>(kQpn, pd, kind, capacity,
                                        QpResources{memory, sends, receives, shared ? &shared_queue : nullptr});
    }
    void bring_to(QpState state) {
        for (const QpState step : {Init, Rtr, Rts, Sqd}) {
            if (step <= state) {
                const Transition change = find_transition(core->state(), step, core->kind()).value();
                ASSERT_EQ(core->accept(step, change.required, values), std::nullopt);
                core->enter(step);
            }
        }
    }
    [[nodiscard]] std::vector<Completion> polled() {
        std::vector<Completion> found(8);
        found.resize(receives.poll(found));
        return found;
    }

    MemoryTable memory{4, {}};
    Pd pd = memory.create_pd();
    CompletionQueue sends{8};
    CompletionQueue receives{8};
    ReceiveQueue shared_queue{4, 1};
    QpAttributes values{};
    std::unique_ptr<QpCore> core;
};

// (10.3.1)
TEST(QpAbilities, EachStateAllowsWhatTheSpecificationSays) {
    for (const QpState state : kAllStates) {
        const bool runs = state == Rts || state == Sqd;
        const bool flushes = state == Sqe || state == Err;
        const bool takes = runs || state == Rtr || state == Sqe;
        for (const QpKind kind : {QpKind{Rc}, QpKind{Uc}, QpKind{Ud}}) {
            EXPECT_EQ(abilities_of(state, kind), (Abilities{runs, takes, flushes})) << static_cast<int>(state);
        }
        EXPECT_EQ(abilities_of(state, {Xrc, false}), (Abilities{runs, false, flushes})) << static_cast<int>(state);
        EXPECT_EQ(abilities_of(state, {Xrc, true}), (Abilities{false, takes, false})) << static_cast<int>(state);
    }
}

TEST(QpAbilities, NoStateBeyondTheLastLeadsAnywhere) {
    for (const QpState state : kAllStates) {
        EXPECT_FALSE(find_transition(state, QpState::Count, Rc));
        EXPECT_FALSE(find_transition(QpState::Count, state, Rc));
    }
}

TEST_F(QpCoreOf, ARefusedChangeLeavesEverythingAsItWas) {
    make(Rc);
    bring_to(Init);
    values.dest_qpn = Qpn{99};
    values.pkey = Pkey{0x1234};
    EXPECT_EQ(core->accept(Rts, {}, values), ModifyRefusal::NoTransition);
    EXPECT_EQ(core->accept(Rtr, AttributeSet::of(Attribute::DestQpn, Attribute::Pkey), values), ModifyRefusal::Missing);
    EXPECT_EQ(core->state(), Init);
    EXPECT_EQ(core->attributes().dest_qpn, Qpn{});
    EXPECT_EQ(core->attributes().pkey, Pkey{0xffff});
}

TEST_F(QpCoreOf, ADomainIsHeldAsLongAsItsQueuePairLives) {
    make(Ud);
    EXPECT_FALSE(memory.destroy_pd(pd));
    core.reset();
    EXPECT_TRUE(memory.destroy_pd(pd));
}

TEST_F(QpCoreOf, ReceiveRequestsWaitForInitAndAreFlushedInErr) {
    make(Ud);
    EXPECT_EQ(core->post_receive({1, {}}), PostVerdict::WrongState);
    bring_to(Init);
    EXPECT_EQ(core->post_receive({2, {}}), PostVerdict::Posted);
    EXPECT_EQ(core->post_receive({3, {}}), PostVerdict::Posted);
    core->enter(Err);
    core->flush_receives();
    EXPECT_EQ(core->post_receive({4, {}}), PostVerdict::Posted);
    core->check_invariants();
    const std::vector<Completion> flushed = polled();
    ASSERT_EQ(flushed.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(flushed[i].wr_id, i + 2);
        EXPECT_EQ(flushed[i].status, CompletionStatus::Flushed);
        EXPECT_EQ(flushed[i].qpn, kQpn);
    }
    EXPECT_EQ(core->poll_event(), std::nullopt);  // no other queue pair takes from its queue
}

TEST_F(QpCoreOf, OfASharedQueueTheLastRequestIsAnEventNotACompletion) {
    make(Rc, true);
    bring_to(Init);
    EXPECT_EQ(core->post_receive({1, {}}), PostVerdict::WrongState);
    ASSERT_EQ(shared_queue.post({2, {}}), PostVerdict::Posted);
    EXPECT_EQ(&core->receives(), &shared_queue);
    core->enter(Err);
    core->flush_receives();
    EXPECT_TRUE(polled().empty());
    EXPECT_EQ(shared_queue.size(), 1U);
    EXPECT_EQ(core->poll_event(), QpEvent::LastWqeReached);
}

TEST_F(QpCoreOf, NeitherEndOfXrcTakesReceiveRequests) {
    for (const bool target : {false, true}) {
        make({Xrc, target});
        EXPECT_EQ(core->post_receive({1, {}}), PostVerdict::WrongSide);
        bring_to(Init);
        EXPECT_EQ(core->post_receive({1, {}}), PostVerdict::WrongSide);
        core->enter(Err);
        core->flush_receives();
        EXPECT_EQ(core->poll_event().has_value(), target);
    }
}

TEST_F(QpCoreOf, ADrainedSendQueueIsReportedOnceForEachTimeInSqd) {
    make(Rc);
    bring_to(Sqd);
    for (int round = 0; round < 2; ++round) {
        EXPECT_TRUE(core->awaits_drain());
        core->report_drained();
        EXPECT_FALSE(core->awaits_drain());
        core->enter(Sqd);  // its attributes may change
        EXPECT_FALSE(core->awaits_drain());
        EXPECT_EQ(core->poll_event(), QpEvent::SendQueueDrained);
        EXPECT_EQ(core->poll_event(), std::nullopt);
        core->enter(Rts);
        EXPECT_FALSE(core->awaits_drain());
        core->enter(Sqd);
    }
}

TEST_F(QpCoreOf, AResetLeavesNothingBehind) {
    make(Uc);
    values.pkey = Pkey{0x1234};
    bring_to(Rtr);
    ASSERT_EQ(core->post_receive({1, {}}), PostVerdict::Posted);
    core->complete_receive(2, CompletionStatus::LocalLength);
    Completion sent{3};
    sent.qpn = kQpn;
    Completion foreign{4};
    foreign.qpn = Qpn{8};
    ASSERT_TRUE(sends.push(sent) && receives.push(foreign));
    core->raise(QpEvent::Fatal);
    core->reset();
    EXPECT_EQ(core->state(), Reset);
    EXPECT_EQ(core->may(), Abilities{});
    EXPECT_EQ(core->attributes().pkey, Pkey{0xffff});
    EXPECT_EQ(core->poll_event(), std::nullopt);
    EXPECT_TRUE(core->receives().empty());
    EXPECT_EQ(sends.size(), 0U);
    const std::vector<Completion> left = polled();
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0].wr_id, 4U);
}

}  // namespace
}  // namespace cairn::roce
