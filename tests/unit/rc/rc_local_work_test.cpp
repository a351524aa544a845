// Work requests that send nothing: when they are done, by packets and completions. Recorded traces of Linux cannot have
// them, since they send no packet.
#include <gtest/gtest.h>

#include "tests/unit/rc/rc_requester_fixture.hpp"

namespace cairn::roce::rc {
namespace {

struct RcLocalWork : RcRequester {
    Rkey region{};
    Rkey window{};

    void SetUp() override {
        RcRequester::SetUp();
        region = host->memory.register_region({host->pd, host->span(), RcHost::kBase, kAllRights | Right::BindWindow})
                     .value();
        window = host->memory.create_window(host->pd, WindowType::Type2B).value();
    }
    void post_invalidation(Rkey of, std::uint64_t wr_id) {
        SendRequest one = request(WorkOpcode::LocalInvalidate, wr_id);
        one.invalidate = of;
        ASSERT_EQ(host->qp->post_send(one), PostVerdict::Posted);
    }
    SendRequest request(WorkOpcode opcode, std::uint64_t wr_id, bool fence = false) {
        SendRequest one;
        one.wr_id = wr_id;
        one.opcode = opcode;
        one.fence = fence;
        one.invalidate = window;
        one.bind = {window, Lkey{region.value}, RcHost::kBase, 64, kAllRemote, false};
        return one;
    }
    void post_local(WorkOpcode opcode, std::uint64_t wr_id, bool fence = false) {
        ASSERT_EQ(host->qp->post_send(request(opcode, wr_id, fence)), PostVerdict::Posted);
    }
    bool bound() {
        return host->memory.find_remote(window, {host->pd, RcHost::kQpn}, Right::RemoteRead, RcHost::kBase, 64)
                   .refusal == std::nullopt;
    }
};

TEST_F(RcLocalWork, ABindIsDoneInItsTurnAndCompletesInTheOrderOfAll) {
    post(WorkOpcode::Send, 4, 1);
    post_local(WorkOpcode::BindWindow, 2);
    post(WorkOpcode::Send, 4, 3);
    EXPECT_FALSE(bound());
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 0}, {Operation::SendOnly, 1}}));
    EXPECT_TRUE(bound());
    EXPECT_TRUE(completions().empty());
    acknowledge(0);
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {2, kGood}}));
    acknowledge(1);
    EXPECT_EQ(completions(), (Completions{{3, kGood}}));
}

TEST_F(RcLocalWork, GoingBackDoesNotBindAgain) {
    post(WorkOpcode::Send, 4, 1);
    post_local(WorkOpcode::BindWindow, 2);
    post_local(WorkOpcode::BindWindow, 3);  // a window that is no longer free
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 0}}));
    time_out();
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 0}}));
    EXPECT_TRUE(completions().empty());
    acknowledge(0);
    EXPECT_TRUE(sent().empty());
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {2, kGood}, {3, CompletionStatus::MemoryManagement}}));
    EXPECT_EQ(host->qp->state(), QpState::Err);
}

TEST_F(RcLocalWork, AFencedBindWaitsForReads) {
    post(WorkOpcode::RdmaRead, 4, 1);
    post_local(WorkOpcode::BindWindow, 2, true);
    post(WorkOpcode::Send, 4, 3);
    EXPECT_EQ(sent(), (Packets{{Operation::ReadRequest, 0}}));
    EXPECT_FALSE(bound());
    respond(Operation::ReadResponseOnly, 0, {1, 2, 3, 4});
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 1}}));
    EXPECT_TRUE(bound());
}

// The peer uses the window; requests that were sent before do not need it.
TEST_F(RcLocalWork, AWindowIsFreedInItsTurnAndThatCompletesInTheOrderOfAll) {
    post_local(WorkOpcode::BindWindow, 1);
    post(WorkOpcode::Send, 4, 2);
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 0}}));
    EXPECT_EQ(completions(), (Completions{{1, kGood}}));
    EXPECT_TRUE(bound());
    post_invalidation(window, 3);
    post(WorkOpcode::Send, 4, 4);
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 1}}));
    EXPECT_FALSE(bound());
    EXPECT_TRUE(completions().empty());
    acknowledge(0);
    EXPECT_EQ(completions(), (Completions{{2, kGood}, {3, kGood}}));
}

// Requests that were sent before may have to be read again.
TEST_F(RcLocalWork, ARegionEndsOnceAllThatWasSentBeforeIsAcknowledged) {
    const Rkey other =
        host->memory.register_region({host->pd, host->span(), RcHost::kBase, kAllRights | Right::RemoteInvalidate})
            .value();
    post(WorkOpcode::Send, 4, 1);
    post_invalidation(other, 2);
    post(WorkOpcode::Send, 4, 3);
    const auto is_there = [this, other] {
        return host->memory.find(other, host->pd, {}, RcHost::kBase, 1).refusal == std::nullopt;
    };
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 0}}));
    EXPECT_TRUE(is_there());
    acknowledge(0);
    EXPECT_EQ(sent(), (Packets{{Operation::SendOnly, 1}}));
    EXPECT_FALSE(is_there());
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {2, kGood}}));
}

TEST_F(RcLocalWork, LocalWorkAloneNeedsNoPacketAndHeedsTheDrain) {
    post_local(WorkOpcode::BindWindow, 1);
    ASSERT_EQ(host->qp->modify(QpState::Sqd, {}, {}), std::nullopt);
    EXPECT_TRUE(sent().empty());
    EXPECT_FALSE(bound());
    ASSERT_EQ(host->qp->modify(QpState::Rts, {}, {}), std::nullopt);
    post_local(WorkOpcode::LocalInvalidate, 2);
    EXPECT_TRUE(sent().empty());
    EXPECT_EQ(completions(), (Completions{{1, kGood}, {2, kGood}}));
    post_local(WorkOpcode::LocalInvalidate, 3);  // no window is bound
    post(WorkOpcode::Send, 4, 4);
    EXPECT_TRUE(sent().empty());
    EXPECT_EQ(completions(), (Completions{{3, CompletionStatus::MemoryManagement}, {4, kFlushed}}));
    SendRequest inlined = request(WorkOpcode::BindWindow, 5);
    inlined.is_inline = true;
    EXPECT_EQ(host->qp->post_send(inlined), PostVerdict::BadInline);
}

TEST_F(RcLocalWork, ResetAndDestructionFreeTheWindows) {
    post_local(WorkOpcode::BindWindow, 1);
    EXPECT_TRUE(sent().empty());
    EXPECT_TRUE(bound());
    EXPECT_FALSE(host->memory.destroy_region(region));
    ASSERT_EQ(host->qp->modify(QpState::Reset, {}, {}), std::nullopt);
    EXPECT_FALSE(bound());
    host->bring_to(QpState::Rts);
    post_local(WorkOpcode::BindWindow, 2);
    EXPECT_TRUE(sent().empty());
    EXPECT_TRUE(bound());
    host->qp.reset();
    EXPECT_FALSE(bound());
    EXPECT_TRUE(host->memory.destroy_region(region));
}

// A SEND with Invalidate frees a window of the queue pair that receives it.
TEST_F(RcLocalWork, APeerUsesTheWindowAndFreesIt) {
    post_local(WorkOpcode::BindWindow, 1);
    EXPECT_TRUE(sent().empty());
    ASSERT_EQ(host->post_receive(9, RcHost::kBase + 1024, 100), PostVerdict::Posted);
    ASSERT_EQ(host->post_receive(10, RcHost::kBase + 1024, 100), PostVerdict::Posted);
    Psn at = RcHost::usual_attributes().receive_psn;
    const auto send = [&](Operation operation) {
        const std::vector<std::uint8_t> four{1, 2, 3, 4};
        wire::Packet packet(wire::Service::Rc, operation);
        if (packet.traits().headers.has<wire::Reth>()) {
            packet.set(wire::Reth{RcHost::kBase + 60, window, 4});
        } else {
            packet.set(wire::Ieth{window});
        }
        packet.set_payload(four);
        wire::Bth bth;
        bth.psn = at;
        packet.set_bth(bth);
        host->take(packet, now);
        at = at.next();
    };
    send(Operation::WriteOnly);
    EXPECT_EQ(*host->at(RcHost::kBase + 63), 4);
    send(Operation::SendOnlyInvalidate);
    EXPECT_EQ(host->receive_completions.size(), 1U);
    EXPECT_FALSE(bound());
    EXPECT_EQ(host->qp->state(), QpState::Rts);
    send(Operation::WriteOnly);
    EXPECT_EQ(host->qp->state(), QpState::Err);
}

}  // namespace
}  // namespace cairn::roce::rc
