// Memory windows: the bindings that are allowed, the peers that may use them, and their end.
#include <gtest/gtest.h>

#include "tests/unit/rc/rc_requester_fixture.hpp"

namespace cairn::roce::rc {
namespace {

constexpr KeyUser kNobody{};
constexpr std::uint64_t kWindowBase = 0x1000;

struct RcWindow : testing::Test {
    MemoryTable table{8, {3, 4}};
    Pd pd = table.create_pd();
    std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(100);
    Rkey region = add(Rights{Right::BindWindow} | Right::LocalWrite);
    KeyUser user{pd, Qpn{7}};

    Rkey add(Rights rights) { return table.register_region({pd, bytes, kWindowBase, rights}).value(); }
    WindowBinding binding(Rkey window, Rights rights = Right::RemoteWrite) const {
        return {window, Lkey{region.value}, kWindowBase + 10, 20, rights, false};
    }
    std::optional<MemoryRefusal> find(Rkey key, const KeyUser& who, std::uint64_t address, std::uint64_t count,
                                      Rights wanted = Right::RemoteWrite) const {
        return table.find_remote(key, who, wanted, address, count).refusal;
    }
};

TEST_F(RcWindow, AWindowReachesItsPartOfTheRegionAndNothingElse) {
    for (const WindowType type : {WindowType::Type1, WindowType::Type2B}) {
        const Rkey key = table.create_window(pd, type).value();
        EXPECT_NE(find(key, user, 0, 0), std::nullopt);
        EXPECT_NE(find(key, user, kWindowBase + 10, 1), std::nullopt);
        ASSERT_EQ(table.bind_window(binding(key), user), std::nullopt);
        EXPECT_EQ(table.find_remote(key, user, Right::RemoteWrite, kWindowBase + 10, 20).data, bytes.data() + 10);
        EXPECT_EQ(find(key, user, kWindowBase + 29, 1), std::nullopt);
        EXPECT_EQ(find(key, user, kWindowBase + 30, 1), MemoryRefusal::OutOfRange);
        EXPECT_EQ(find(key, user, kWindowBase + 9, 1), MemoryRefusal::OutOfRange);
        EXPECT_EQ(find(key, user, kWindowBase + 10, 21), MemoryRefusal::OutOfRange);
        EXPECT_EQ(find(key, user, kWindowBase + 10, 1, Right::RemoteRead), MemoryRefusal::NoRight);
        EXPECT_EQ(find(key, {Pd{9}, user.qpn}, kWindowBase + 10, 1), MemoryRefusal::WrongPd);
        // Another queue pair of the domain: type 1 only.
        EXPECT_EQ(find(key, {pd, Qpn{8}}, kWindowBase + 10, 1),
                  type == WindowType::Type1 ? std::nullopt : std::optional(MemoryRefusal::WrongPd));
        EXPECT_EQ(table.find(key, pd, {}, kWindowBase + 10, 1).refusal, MemoryRefusal::UnknownKey);  // it is no lkey
        EXPECT_EQ(find(region, user, kWindowBase + 10, 1), MemoryRefusal::NoRight);
        EXPECT_TRUE(table.destroy_window(key));
        EXPECT_FALSE(table.destroy_window(key));
        EXPECT_EQ(find(key, user, kWindowBase + 10, 1), MemoryRefusal::UnknownKey);
    }
    EXPECT_TRUE(table.destroy_region(region));
}

// (C10-72 to C10-75, o10-36.2.2, o10-37.2.30, o10-37.2.40)
TEST_F(RcWindow, BindingsThatAreNotAllowedDoNothing) {
    const Rkey one = table.create_window(pd, WindowType::Type1).value();
    const Rkey two = table.create_window(pd, WindowType::Type2B).value();
    const Rkey plain = add(Right::LocalWrite);
    const Rkey read_only = add(Right::BindWindow);
    const Pd elsewhere = table.create_pd();
    struct Case {
        const char* what;
        WindowBinding binding;
        KeyUser user;
        std::optional<MemoryRefusal> refusal;
    };
    const auto with = [this](Rkey window, auto&& change) {
        WindowBinding all = binding(window);
        change(all);
        return all;
    };
    for (const Case& one_case : {
             Case{"unknown window", binding(Rkey{two.value ^ 0x100U}), user, MemoryRefusal::UnknownKey},
             Case{"a region as the window", binding(plain), user, MemoryRefusal::UnknownKey},
             Case{"another domain", binding(two), {elsewhere, user.qpn}, MemoryRefusal::WrongPd},
             Case{"unknown region", with(two, [](auto& b) { b.region = Lkey{5}; }), user, MemoryRefusal::UnknownKey},
             Case{"a window as the region", with(two, [&](auto& b) { b.region = Lkey{one.value}; }), user,
                  MemoryRefusal::UnknownKey},
             Case{"no bind right", with(two, [&](auto& b) { b.region = Lkey{plain.value}; }), user,
                  MemoryRefusal::NoRight},
             Case{"writes to what is not written locally",
                  with(two, [&](auto& b) { b.region = Lkey{read_only.value}; }), user, MemoryRefusal::NoRight},
             Case{"atomics likewise",
                  with(two,
                       [&](auto& b) {
                           b.region = Lkey{read_only.value};
                           b.rights = Right::RemoteAtomic;
                       }),
                  user, MemoryRefusal::NoRight},
             Case{"local rights", with(two, [](auto& b) { b.rights = Right::LocalWrite; }), user,
                  MemoryRefusal::NoRight},
             Case{"flushes of what is not persistent", with(two, [](auto& b) { b.rights = Right::FlushPersistent; }),
                  user, MemoryRefusal::NoRight},
             Case{"beyond the region", with(two, [](auto& b) { b.bytes = 91; }), user, MemoryRefusal::OutOfRange},
             Case{"before the region", with(two, [](auto& b) { b.address = kWindowBase - 1; }), user,
                  MemoryRefusal::OutOfRange},
             Case{"type 2B to nothing", with(two, [](auto& b) { b.bytes = 0; }), user, MemoryRefusal::NoRight},
             Case{"type 1 zero-based", with(one, [](auto& b) { b.zero_based = true; }), user, MemoryRefusal::NoRight},
         }) {
        EXPECT_EQ(table.bind_window(one_case.binding, one_case.user), one_case.refusal) << one_case.what;
        EXPECT_NE(find(two, user, kWindowBase + 10, 1), std::nullopt);
    }
    EXPECT_FALSE(table.create_window(Pd{9}, WindowType::Type1).ok());
    ASSERT_EQ(table.bind_window(with(two,
                                     [&](auto& b) {
                                         b.region = Lkey{read_only.value};
                                         b.rights = Right::RemoteRead;
                                     }),
                                user),
              std::nullopt);
    EXPECT_EQ(table.bind_window(binding(two), user), MemoryRefusal::InUse);
    EXPECT_EQ(find(two, user, kWindowBase + 10, 1, Right::RemoteRead), std::nullopt);
}

TEST_F(RcWindow, TheBindersBitsMakeANewKeyAndTheOldOneDies) {
    const Rkey first = table.create_window(pd, WindowType::Type1).value();
    const Rkey next{first.value ^ 0x5aU};
    ASSERT_EQ(table.bind_window(binding(next), user), std::nullopt);
    EXPECT_EQ(find(first, user, kWindowBase + 10, 1), MemoryRefusal::UnknownKey);
    EXPECT_EQ(find(next, user, kWindowBase + 10, 1), std::nullopt);
    WindowBinding nothing;  // type 1: bound to no region, with a third key
    nothing.window = Rkey{first.value ^ 1U};
    ASSERT_EQ(table.bind_window(nothing, user), std::nullopt);
    EXPECT_EQ(find(next, user, kWindowBase + 10, 1), MemoryRefusal::UnknownKey);
    EXPECT_NE(find(nothing.window, user, kWindowBase + 10, 1), std::nullopt);
    EXPECT_TRUE(table.destroy_region(region));
}

TEST_F(RcWindow, AZeroBasedWindowBeginsAtZero) {
    const Rkey key = table.create_window(pd, WindowType::Type2B).value();
    WindowBinding zero = binding(key);
    zero.zero_based = true;
    ASSERT_EQ(table.bind_window(zero, user), std::nullopt);
    EXPECT_EQ(table.find_remote(key, user, Right::RemoteWrite, 0, 20).data, bytes.data() + 10);
    EXPECT_EQ(find(key, user, 0, 21), MemoryRefusal::OutOfRange);
    EXPECT_EQ(find(key, user, kWindowBase + 10, 1), MemoryRefusal::OutOfRange);
    EXPECT_EQ(table.find_whole(key, user, Right::RemoteWrite).value().data(), bytes.data() + 10);
    EXPECT_EQ(table.find_whole(key, user, Right::RemoteWrite).value().size(), 20U);
    EXPECT_FALSE(table.find_whole(key, user, Right::RemoteRead).has_value());
    EXPECT_FALSE(table.find_whole(key, {pd, Qpn{8}}, Right::RemoteWrite).has_value());
}

TEST_F(RcWindow, ARegionStaysWhileWindowsAreBoundToIt) {
    const Rkey open = add(Rights{Right::BindWindow} | Right::LocalWrite | Right::RemoteInvalidate);
    const Rkey key = table.create_window(pd, WindowType::Type2B).value();
    WindowBinding all = binding(key);
    all.region = Lkey{open.value};
    ASSERT_EQ(table.bind_window(all, user), std::nullopt);
    EXPECT_FALSE(table.destroy_region(open));
    EXPECT_EQ(table.judge_invalidate(open, user), MemoryRefusal::InUse);
    EXPECT_FALSE(table.reregister_region(open, {}).ok());
    ASSERT_EQ(table.judge_invalidate(key, user), std::nullopt);
    table.invalidate(key);
    EXPECT_NE(find(key, user, kWindowBase + 10, 1), std::nullopt);
    EXPECT_TRUE(table.destroy_region(open));
    EXPECT_TRUE(table.destroy_window(key));
    EXPECT_TRUE(table.destroy_region(region));
    EXPECT_TRUE(table.destroy_pd(pd));
}

TEST_F(RcWindow, OnlyBoundTypeTwoWindowsAreInvalidatedThroughTheirQueuePair) {
    const Rkey one = table.create_window(pd, WindowType::Type1).value();
    const Rkey two = table.create_window(pd, WindowType::Type2B).value();
    EXPECT_EQ(table.judge_invalidate(two, user), MemoryRefusal::UnknownKey);
    ASSERT_EQ(table.bind_window(binding(one), user), std::nullopt);
    ASSERT_EQ(table.bind_window(binding(two), user), std::nullopt);
    EXPECT_EQ(table.judge_invalidate(one, user), MemoryRefusal::NoRight);
    EXPECT_EQ(table.judge_invalidate(two, {pd, Qpn{8}}), MemoryRefusal::WrongPd);
    EXPECT_EQ(table.judge_invalidate(two, kNobody), MemoryRefusal::WrongPd);
    EXPECT_EQ(table.judge_invalidate(Rkey{two.value ^ 1U}, user), MemoryRefusal::UnknownKey);
    EXPECT_EQ(table.judge_invalidate(two, user), std::nullopt);
}

TEST_F(RcWindow, ARegionIsRegisteredAnewInParts) {
    std::vector<std::uint8_t> more(50);
    const Pd other = table.create_pd();
    EXPECT_EQ(table.reregister_region(region, {{}, Rights{Right::RemoteRead}, {}}).value(), region);
    EXPECT_EQ(find(region, user, kWindowBase, 1, Right::RemoteRead), std::nullopt);
    EXPECT_EQ(table.find(region, pd, Right::LocalWrite, kWindowBase, 1).refusal, MemoryRefusal::NoRight);
    EXPECT_EQ(table.reregister_region(region, {other, {}, {}}).value(), region);
    EXPECT_EQ(table.find(region, pd, {}, kWindowBase, 1).refusal, MemoryRefusal::WrongPd);
    EXPECT_TRUE(table.destroy_pd(pd));  // no object uses it any more
    EXPECT_FALSE(table.destroy_pd(other));
    const Rkey moved = table.reregister_region(region, {{}, {}, RegionChange::Translation{more, 7}}).value();
    EXPECT_NE(moved, region);
    EXPECT_EQ(table.find(region, other, {}, kWindowBase, 1).refusal, MemoryRefusal::UnknownKey);
    EXPECT_EQ(table.find(moved, other, {}, 7 + 49, 1).data, more.data() + 49);
    EXPECT_EQ(table.find(moved, other, {}, 7 + 50, 1).refusal, MemoryRefusal::OutOfRange);
    // A refused call leaves the region as it is.
    EXPECT_FALSE(table.reregister_region(moved, {Pd{9}, {}, {}}).ok());
    EXPECT_FALSE(table.reregister_region(moved, {{}, Rights{Right::RemoteWrite}, {}}).ok());
    EXPECT_FALSE(table.reregister_region(moved, {{}, {}, RegionChange::Translation{more, ~std::uint64_t{0}}}).ok());
    EXPECT_FALSE(table.reregister_region(region, {}).ok());
    EXPECT_EQ(table.find(moved, other, {}, 7, 50).refusal, std::nullopt);
    EXPECT_EQ(table.regions_in_use(), 1U);
}

}  // namespace
}  // namespace cairn::roce::rc
