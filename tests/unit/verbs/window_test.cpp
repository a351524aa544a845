// Memory windows as objects: the rights that they give, and the begin and end of their keys.
#include <array>
#include <cstring>

#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::verbs {
namespace {

struct Windows : VerbsPair {
    static constexpr std::uint64_t kOffset = 4096;
    static constexpr std::uint32_t kWindowBytes = 512;

    Windows() { renew(); }
    // Connects new queue pairs: an error ends a connection.
    void renew() { connect(); }
    Qp& owner() { return *b.qps.back(); }
    std::unique_ptr<Mw> make(WindowType type) { return b.device.create_window(*b.pd, type).value(); }
    static WindowBind part(Rights rights, bool zero_based = false) {
        return {.wr_id = 1, .offset = kOffset, .bytes = kWindowBytes, .rights = rights, .zero_based = zero_based};
    }
    CompletionStatus bind(Mw& window, const Mr& mr, const WindowBind& wanted) {
        EXPECT_EQ(window.bind(owner(), mr, wanted), PostVerdict::Posted);
        return status_of(*b.sends);
    }
    CompletionStatus bind(Mw& window, const WindowBind& wanted) { return bind(window, *region, wanted); }
    CompletionStatus invalidate(const Mw& window) {
        EXPECT_EQ(window.invalidate(owner(), 2), PostVerdict::Posted);
        return status_of(*b.sends);
    }
    CompletionStatus status_of(Cq& cq) {
        run();
        const std::vector<Completion> done = drain(cq);
        EXPECT_FALSE(done.empty());
        return done.empty() ? CompletionStatus::BadResponse : done[0].status;
    }
    // Returns the status of a peer's request that uses the key.
    CompletionStatus use(WorkOpcode opcode, Rkey key, std::uint64_t address, std::uint32_t bytes) {
        const std::array<Sge, 1> sges{a.mr->sge(0, bytes)};
        SendRequest request;
        request.opcode = opcode;
        request.sges = sges;
        request.remote_address = address;
        request.rkey = key;
        EXPECT_EQ(a.qps.back()->post_send(request), PostVerdict::Posted);
        return status_of(*a.sends);
    }
    CompletionStatus write(Rkey key, std::uint64_t address, std::uint32_t bytes = 8) {
        return use(WorkOpcode::RdmaWrite, key, address, bytes);
    }

    std::unique_ptr<Mr> region =
        b.device.register_memory(*b.pd, b.memory(), Rights{Right::LocalWrite} | Right::BindWindow).value();
    const std::uint64_t first = region->address() + kOffset;
};

TEST_F(Windows, PeersReachItsPartAsItsRightsSayAndNothingElse) {
    constexpr Rights kWrite = Right::RemoteWrite;
    constexpr Rights kRead = Right::RemoteRead;
    constexpr auto kOk = CompletionStatus::Success;
    constexpr auto kNo = CompletionStatus::RemoteAccess;
    struct Case {
        const char* what;
        Rights rights;
        WorkOpcode opcode;
        std::uint64_t at;
        std::uint32_t bytes;
        CompletionStatus status;
    };
    for (const WindowType type : {WindowType::Type1, WindowType::Type2B}) {
        for (const Case& one : {
                 Case{"all of it", kWrite, WorkOpcode::RdmaWrite, first, kWindowBytes, kOk},
                 Case{"its last byte", kWrite, WorkOpcode::RdmaWrite, first + kWindowBytes - 1, 1, kOk},
                 Case{"one beyond", kWrite, WorkOpcode::RdmaWrite, first + kWindowBytes, 1, kNo},
                 Case{"one before", kWrite, WorkOpcode::RdmaWrite, first - 1, 1, kNo},
                 Case{"one too many", kWrite, WorkOpcode::RdmaWrite, first, kWindowBytes + 1, kNo},
                 Case{"read what is to be written", kWrite, WorkOpcode::RdmaRead, first, 8, kNo},
                 Case{"read", kRead, WorkOpcode::RdmaRead, first, 8, kOk},
                 Case{"write what is to be read", kRead, WorkOpcode::RdmaWrite, first, 8, kNo},
                 Case{"both", kRead | kWrite, WorkOpcode::RdmaRead, first, 8, kOk},
             }) {
            const auto window = make(type);
            ASSERT_EQ(bind(*window, part(one.rights)), CompletionStatus::Success) << one.what;
            EXPECT_EQ(use(one.opcode, window->rkey(), one.at, one.bytes), one.status) << one.what;
            renew();
        }
    }
    EXPECT_EQ(write(region->rkey(), first), CompletionStatus::RemoteAccess);  // the region itself grants nothing
}

TEST_F(Windows, WhatMayNotBeBoundCompletesInErrorAndGivesNothing) {
    const auto foreign_pd = b.device.create_pd();
    const auto foreign = b.device.create_window(*foreign_pd, WindowType::Type2B).value();
    const auto own = make(WindowType::Type2B);
    const auto plain = b.device.register_memory(*b.pd, b.memory(), Right::LocalWrite).value();
    const auto of_foreign_pd =
        b.device.register_memory(*foreign_pd, b.memory(), Rights{Right::LocalWrite} | Right::BindWindow).value();
    const auto read_only = b.device.register_memory(*b.pd, b.memory(), Right::BindWindow).value();
    WindowBind beyond = part(Right::RemoteWrite);
    beyond.offset = VerbsHost::kBytes - kWindowBytes + 1;
    struct Case {
        const char* what;
        Mw& window;
        const Mr& mr;
        WindowBind wanted;
    };
    for (const Case& one : {Case{"a window of another domain", *foreign, *region, part(Right::RemoteWrite)},
                            Case{"a region of another domain", *own, *of_foreign_pd, part(Right::RemoteWrite)},
                            Case{"a region without the right", *own, *plain, part(Right::RemoteWrite)},
                            Case{"writing what is only read", *own, *read_only, part(Right::RemoteWrite)},
                            Case{"local rights", *own, *region, part(Right::LocalWrite)},
                            Case{"beyond the region", *own, *region, beyond},
                            Case{"nothing, of type 2B", *own, *region, {.rights = Right::RemoteWrite}}}) {
        EXPECT_EQ(bind(one.window, one.mr, one.wanted), CompletionStatus::MemoryManagement) << one.what;
        EXPECT_EQ(owner().state(), QpState::Err);
        renew();
        EXPECT_EQ(write(one.window.rkey(), first), CompletionStatus::RemoteAccess) << one.what;
        renew();
    }
}

TEST_F(Windows, AnInvalidatedKeyIsDeadAndTheNextBindingHasAnother) {
    const auto window = make(WindowType::Type2B);
    ASSERT_EQ(bind(*window, part(Right::RemoteWrite, true)), CompletionStatus::Success);
    const Rkey old = window->rkey();
    EXPECT_EQ(write(old, 0), CompletionStatus::Success);
    ASSERT_EQ(invalidate(*window), CompletionStatus::Success);
    ASSERT_EQ(bind(*window, part(Right::RemoteWrite, true)), CompletionStatus::Success);
    EXPECT_NE(window->rkey(), old);
    EXPECT_EQ(write(window->rkey(), 0), CompletionStatus::Success);
    EXPECT_EQ(write(old, 0), CompletionStatus::RemoteAccess);
    EXPECT_EQ(b.memory()[kOffset], a.memory()[0]);
}

TEST_F(Windows, ThePeerMayInvalidateIt) {
    const auto window = make(WindowType::Type2B);
    ASSERT_EQ(bind(*window, part(Right::RemoteWrite)), CompletionStatus::Success);
    const std::array<Sge, 1> sges{b.mr->sge(0, 8)};
    ASSERT_EQ(owner().post_receive({7, sges}), PostVerdict::Posted);
    SendRequest request;
    request.opcode = WorkOpcode::SendWithInvalidate;
    request.invalidate = window->rkey();
    ASSERT_EQ(a.qps.back()->post_send(request), PostVerdict::Posted);
    EXPECT_EQ(status_of(*a.sends), CompletionStatus::Success);
    const std::vector<Completion> got = drain(*b.receives);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_TRUE(got[0].has_invalidate);
    EXPECT_EQ(got[0].invalidated, window->rkey());
    EXPECT_TRUE(destroy(region).ok());
    EXPECT_EQ(write(window->rkey(), first), CompletionStatus::RemoteAccess);
}

TEST_F(Windows, ARegionUnderABoundWindowStaysAndEndsAfterIt) {
    auto window = make(WindowType::Type2B);
    ASSERT_EQ(bind(*window, part(Right::RemoteWrite)), CompletionStatus::Success);
    EXPECT_TRUE(region->in_use());
    EXPECT_FALSE(destroy(region).ok());
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(write(window->rkey(), first), CompletionStatus::Success);
    ASSERT_EQ(invalidate(*window), CompletionStatus::Success);
    EXPECT_FALSE(region->in_use());
    ASSERT_EQ(bind(*window, part(Right::RemoteWrite)), CompletionStatus::Success);
    EXPECT_FALSE(destroy(region).ok());
    const Rkey old = window->rkey();
    EXPECT_TRUE(destroy(window).ok());  // while it is bound
    EXPECT_EQ(write(old, first), CompletionStatus::RemoteAccess);
    EXPECT_TRUE(destroy(region).ok());
}

TEST_F(Windows, AType2BWindowIsFreeWhenItsQueuePairEnds) {
    const auto window = make(WindowType::Type2B);
    ASSERT_EQ(bind(*window, part(Right::RemoteWrite)), CompletionStatus::Success);
    b.connector.reset();
    b.qps.clear();
    EXPECT_FALSE(region->in_use());
    EXPECT_TRUE(destroy(region).ok());
}

TEST_F(Windows, AType1WindowIsBoundAnewAtAnyTimeAndToNothing) {
    const auto window = make(WindowType::Type1);
    ASSERT_EQ(bind(*window, part(Right::RemoteWrite)), CompletionStatus::Success);
    const Rkey old = window->rkey();
    WindowBind behind = part(Right::RemoteWrite);
    behind.offset += kWindowBytes;
    ASSERT_EQ(bind(*window, behind), CompletionStatus::Success);
    EXPECT_EQ(write(window->rkey(), first + kWindowBytes), CompletionStatus::Success);
    ASSERT_EQ(bind(*window, {}), CompletionStatus::Success);
    EXPECT_FALSE(region->in_use());
    EXPECT_EQ(write(window->rkey(), first + kWindowBytes), CompletionStatus::RemoteAccess);
    renew();
    EXPECT_EQ(write(old, first), CompletionStatus::RemoteAccess);
}

TEST_F(Windows, ABindingThatIsNotPostedChangesNothing) {
    const auto window = make(WindowType::Type1);
    ASSERT_EQ(bind(*window, part(Right::RemoteWrite)), CompletionStatus::Success);
    const Rkey key = window->rkey();
    const auto idle = b.make_qp();
    EXPECT_EQ(window->bind(*idle, *region, part(Right::RemoteWrite)), PostVerdict::WrongState);
    EXPECT_EQ(window->rkey(), key);
    EXPECT_EQ(write(key, first), CompletionStatus::Success);
}

TEST_F(Windows, TheyAreAsManyAsTheTableHasRoomForAndHoldTheirDomain) {
    auto pd = b.device.create_pd();
    std::vector<std::unique_ptr<Mw>> all;
    for (;;) {
        auto made = b.device.create_window(*pd, WindowType::Type2B);
        if (!made.ok()) {
            break;
        }
        all.push_back(std::move(made).value());
    }
    EXPECT_GT(all.size(), 100U);
    EXPECT_LT(all.size(), b.device.limits().regions);
    EXPECT_FALSE(destroy(pd).ok());
    all.clear();
    EXPECT_TRUE(destroy(pd).ok());
}

}  // namespace
}  // namespace cairn::verbs
