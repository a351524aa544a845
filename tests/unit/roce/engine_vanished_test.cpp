// Registered memory that the user unmapped: access errors at both ends, and no signal.
#include "tests/support/fault_handler.hpp"
#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using enum WorkOpcode;

struct EngineVanished : EnginePair {
    static constexpr std::uint32_t kBytes = 64 << 10U;

    void SetUp() override {
        cairn::test::catch_faults();
        EnginePair::SetUp();
        std::tie(at_a, at_b) = connect();
        key_at_a = a->engine.register_region({a->pd, pages_at_a.all(), EngineHost::kBase, rc::kAllRights}).value();
        key_at_b = b->engine.register_region({b->pd, pages_at_b.all(), EngineHost::kBase, rc::kAllRights}).value();
    }
    // Posts a request of `bytes` from or to the pages of a; a peer's memory is the pages of b.
    void post(WorkOpcode opcode, std::uint32_t bytes) {
        const std::array<Sge, 1> sges{EngineHost::sge(key_at_a, 0, bytes)};
        SendRequest one = request(opcode, 1);
        one.sges = sges;
        one.remote_address = EngineHost::kBase;
        one.rkey = key_at_b;
        ASSERT_EQ(at_a->pair.post_send(one), PostVerdict::Posted);
        a->engine.wake(*at_a);
    }
    // Returns how the request ended, timers included.
    CompletionStatus end() {
        for (int i = 0; i < 2000 && a->sends.size() == 0; ++i) {
            run();
            now = now + milliseconds(1);
        }
        const std::vector<Completion> all = rc::RcHost::drain(a->sends);
        EXPECT_EQ(all.size(), 1U);
        return all.empty() ? CompletionStatus::Success : all.front().status;
    }

    cairn::test::Pages pages_at_a{kBytes};
    cairn::test::Pages pages_at_b{kBytes};
    Engine::RcQp* at_a = nullptr;
    Engine::RcQp* at_b = nullptr;
    Rkey key_at_a;
    Rkey key_at_b;
};

TEST_F(EngineVanished, WhatIsThereIsMoved) {
    pages_at_a.all()[kBytes - 1] = 9;
    post(RdmaWrite, kBytes);
    EXPECT_EQ(end(), CompletionStatus::Success);
    EXPECT_EQ(pages_at_b.all()[kBytes - 1], 9);
}

TEST_F(EngineVanished, AWriteOfItIsALocalError) {
    pages_at_a.vanish(8192, 4096);
    post(RdmaWrite, kBytes);
    EXPECT_EQ(end(), CompletionStatus::LocalProtection);
    EXPECT_EQ(a->engine.counters().of(EngineCounter::MemoryVanished), 1U);
    EXPECT_EQ(at_a->pair.state(), QpState::Err);
}

TEST_F(EngineVanished, AWriteToItIsAnAccessErrorAtBothEnds) {
    pages_at_b.vanish(8192, 4096);
    post(RdmaWrite, kBytes);
    EXPECT_EQ(end(), CompletionStatus::RemoteAccess);
    EXPECT_EQ(at_b->pair.state(), QpState::Err);
    EXPECT_EQ(at_b->pair.poll_event(), QpEvent::AccessViolation);
}

TEST_F(EngineVanished, AReadOfItIsAnAccessErrorAtBothEnds) {
    pages_at_b.vanish(8192, 4096);
    post(RdmaRead, kBytes);
    EXPECT_EQ(end(), CompletionStatus::RemoteAccess);
    EXPECT_EQ(at_b->pair.state(), QpState::Err);
}

TEST_F(EngineVanished, AReadIntoItIsALocalError) {
    pages_at_a.vanish(8192, 4096);
    post(RdmaRead, kBytes);
    EXPECT_EQ(end(), CompletionStatus::LocalProtection);
}

TEST_F(EngineVanished, AtomicsOnItAreAccessErrors) {
    pages_at_b.vanish();
    post(FetchAdd, 8);
    EXPECT_EQ(end(), CompletionStatus::RemoteAccess);
}

TEST_F(EngineVanished, ASendIntoItEndsInErrorAtBothEnds) {
    const std::array<Sge, 1> sges{EngineHost::sge(key_at_b, 0, kBytes)};
    ASSERT_EQ(at_b->pair.post_receive({5, sges}), PostVerdict::Posted);
    pages_at_b.vanish(8192, 4096);
    post(Send, kBytes);
    EXPECT_EQ(end(), CompletionStatus::RemoteOperation);
    const std::vector<Completion> received = rc::RcHost::drain(b->receives);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received.front().status, CompletionStatus::LocalProtection);
}

// A region that is registered again at other memory works again.
TEST_F(EngineVanished, OtherMemoryOfTheSameRegionIsThere) {
    pages_at_a.vanish();
    post(RdmaWrite, 64);
    EXPECT_EQ(end(), CompletionStatus::LocalProtection);
    cairn::test::Pages other{kBytes};
    RegionChange change;
    change.translation = {other.all(), EngineHost::kBase, false};
    key_at_a = a->engine.reregister_region(key_at_a, change).value();
    std::tie(at_a, at_b) = connect();
    post(RdmaWrite, 64);
    EXPECT_EQ(end(), CompletionStatus::Success);
}

}  // namespace
}  // namespace cairn::roce
