// A responder that stops sends only the NAK with the reason.
#include "tests/unit/rc/rc_responder_fixture.hpp"

namespace cairn::roce::rc {
namespace {

TEST_F(RcResponder, AReadWhoseRightIsTakenAwayIsRefusedWhereItStands) {
    ASSERT_EQ(host.qp->modify(QpState::Rts, kToRts, RcHost::usual_attributes()), std::nullopt);
    send(read(psn, RcHost::kBase, 1024));
    ASSERT_TRUE(host.poll().has_value());
    QpAttributes values;
    values.access = Right::RemoteWrite;
    ASSERT_EQ(host.qp->modify(QpState::Rts, AttributeSet::of(Attribute::Access), values), std::nullopt);
    expect_answer(psn.plus(1), NakCode::RemoteAccess, 1);
    EXPECT_EQ(host.qp->state(), QpState::Err);
}

TEST_F(RcResponder, StoppedByItsOwnerItAnswersNothingAnyMore) {
    send(read(psn, RcHost::kBase, 64 * 256));
    send(write(Operation::WriteOnly, psn.plus(64), RcHost::kBase, 1, 1));
    ASSERT_TRUE(host.poll().has_value());
    ASSERT_EQ(host.qp->modify(QpState::Err, {}, {}), std::nullopt);
    EXPECT_TRUE(answers().empty());
}

TEST_F(RcResponder, ARequestThatIsRefusedIsToldOfBehindTheAnswersBeforeIt) {
    for (const bool owner_stops : {false, true}) {
        if (owner_stops) {
            ASSERT_EQ(host.qp->modify(QpState::Reset, {}, {}), std::nullopt);
            host.bring_to(QpState::Rtr);
        }
        send(read(psn, RcHost::kBase, 4 * 256));
        send(make(Operation::SendLast, psn.plus(4), 4));
        EXPECT_EQ(host.qp->state(), QpState::Err);
        ASSERT_TRUE(host.poll().has_value());
        if (owner_stops) {
            ASSERT_EQ(host.qp->modify(QpState::Err, {}, {}), std::nullopt);
        }
        const Answers all = answers();
        ASSERT_EQ(all.size(), owner_stops ? 1U : 4U);
        EXPECT_EQ(all.back().first, Operation::Acknowledge);
    }
}

TEST_F(RcResponder, AMessageWhoseCompletionIsLostIsNotAcknowledged) {
    RcHost small({}, 1);
    small.bring_to(QpState::Rtr);
    for (std::uint32_t i = 0; i < 2; ++i) {
        ASSERT_EQ(small.post_receive(i, RcHost::kBase, 8), PostVerdict::Posted);
    }
    small.take(make(Operation::SendOnly, psn, 4));
    EXPECT_EQ(small.poll_all().size(), 1U);
    small.take(make(Operation::SendOnly, psn.plus(1), 4));
    EXPECT_EQ(small.qp->state(), QpState::Err);
    EXPECT_TRUE(small.poll_all().empty());
}

}  // namespace
}  // namespace cairn::roce::rc
