// The memory of regions as the port sees it: when it is attached, and that nothing is sent from it after its end.
#include <optional>

#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using enum WorkOpcode;
using Memory = std::vector<std::uint8_t>;

struct EngineAttach : EnginePair {
    void SetUp() override { start({}, true); }
    void TearDown() override {
        for (const auto* host : {a.get(), b.get()}) {
            EXPECT_TRUE(host == nullptr || host->port.detached_wrongly == 0);
        }
    }
    [[nodiscard]] Result<Rkey> add(Memory& what, Rights rights = rc::kAllRights) const {
        return a->engine.register_region({a->pd, what, EngineHost::kBase, rights});
    }
    // Returns how often the memory is attached.
    [[nodiscard]] long attached(const Memory& what) const {
        const auto is_it = [&what](const auto& range) {
            return range.data() == what.data() && range.size() == what.size();
        };
        return std::count_if(a->port.attached.begin(), a->port.attached.end(), is_it);
    }
    [[nodiscard]] static RegionChange to(Memory& what) {
        return {{}, {}, RegionChange::Translation{what, EngineHost::kBase}};
    }

    Memory memory = Memory(2 * 4096);
    Memory other = Memory(4096);
};

TEST_F(EngineAttach, MemoryIsAttachedAsLongAsItsRegionsAreThere) {
    const Rkey first = add(memory).value();
    const Rkey second = add(memory).value();
    EXPECT_EQ(attached(memory), 2);
    EXPECT_TRUE(a->engine.destroy_region(first));
    EXPECT_EQ(attached(memory), 1);
    EXPECT_FALSE(a->engine.destroy_region(first));
    EXPECT_EQ(attached(memory), 1);
    EXPECT_TRUE(a->engine.destroy_region(second));
    EXPECT_EQ(attached(memory), 0);
}

TEST_F(EngineAttach, ARegionThatIsRefusedLeavesNothingAttached) {
    EXPECT_FALSE(a->engine.register_region({Pd{77}, memory, EngineHost::kBase, rc::kAllRights}).ok());
    EXPECT_FALSE(add(memory, Right::RemoteWrite).ok());
    EXPECT_EQ(attached(memory), 0);
}

TEST_F(EngineAttach, ARegionWithoutMemoryIsNotAttached) {
    Memory none;
    const std::size_t before = a->port.attached.size();
    const Rkey key = add(none).value();
    EXPECT_EQ(a->port.attached.size(), before);
    EXPECT_TRUE(a->engine.destroy_region(key));
}

TEST_F(EngineAttach, ARegionRegisteredAnewTakesItsNewMemoryAlong) {
    const Rkey old = add(memory).value();
    const Rkey key = a->engine.reregister_region(old, to(other)).value();
    EXPECT_EQ(attached(memory), 0);
    EXPECT_EQ(attached(other), 1);
    RegionChange rights;
    rights.rights = Right::LocalWrite;
    EXPECT_EQ(a->engine.reregister_region(key, rights).value(), key);
    EXPECT_EQ(attached(other), 1);
    EXPECT_TRUE(a->engine.destroy_region(key));
    EXPECT_EQ(attached(other), 0);
}

TEST_F(EngineAttach, ARefusedChangeLeavesTheMemoryAsItWas) {
    const Rkey key = add(memory).value();
    RegionChange change = to(other);
    change.pd = Pd{77};
    EXPECT_FALSE(a->engine.reregister_region(key, change).ok());
    EXPECT_FALSE(a->engine.reregister_region(Rkey{~key.value}, to(other)).ok());
    EXPECT_EQ(attached(other), 0);
    EXPECT_EQ(attached(memory), 1);
}

// When its owner destroys it, its key is no longer in a table.
TEST_F(EngineAttach, AnInvalidatedRegionIsDetachedWhenItsOwnerDestroysIt) {
    const auto [at_a, at_b] = connect();
    (void)at_b;
    const Rkey key = add(memory, rc::kAllRights | Right::RemoteInvalidate).value();
    SendRequest ending = request(LocalInvalidate, 9);
    ending.invalidate = key;
    ASSERT_EQ(a->post(*at_a, ending, 0, 0), PostVerdict::Posted);
    run();
    EXPECT_EQ(attached(memory), 1);
    EXPECT_FALSE(a->engine.destroy_region(key));
    EXPECT_EQ(attached(memory), 0);
}

TEST_F(EngineAttach, ARegionThatLivesOnForItsWindowsStaysAttached) {
    const auto [at_a, at_b] = connect();
    (void)at_b;
    const Rkey key = add(memory, rc::kAllRights | Right::BindWindow).value();
    const Rkey window = a->engine.create_window(a->pd, WindowType::Type2B).value();
    SendRequest bind = request(BindWindow, 5);
    bind.bind = {window, Lkey{key.value}, EngineHost::kBase, 64, Right::RemoteRead, false};
    ASSERT_EQ(a->post(*at_a, bind, 0, 0), PostVerdict::Posted);
    run();
    ASSERT_TRUE(a->engine.memory().has_windows(key));
    EXPECT_FALSE(a->engine.destroy_region(key));
    EXPECT_EQ(attached(memory), 1);
}

// TearDown() would find a packet that still had to be sent from there.
TEST_F(EngineAttach, MemoryIsDetachedAfterWhatWasSentFromItIsSettled) {
    const auto [at_a, at_b] = connect();
    (void)at_b;
    const Rkey key = add(memory).value();
    SendRequest write = request(RdmaWrite, 1);
    const std::array<Sge, 1> sges{{{EngineHost::kBase, 8192, Lkey{key.value}}}};
    write.sges = sges;
    ASSERT_EQ(at_a->pair.post_send(write), PostVerdict::Posted);
    a->engine.wake(*at_a);
    a->turn(now);
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PayloadsInPlace), 2U);
    ASSERT_TRUE(a->port.holds_back());
    EXPECT_TRUE(a->engine.destroy_region(key));
    EXPECT_EQ(attached(memory), 0);
}

TEST_F(EngineAttach, WithoutAttachingPayloadsAreCopied) {
    start({}, false);
    const auto [at_a, at_b] = connect();
    (void)at_b;
    EXPECT_TRUE(a->port.attached.empty());
    fill_a();
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, 8192), PostVerdict::Posted);
    run();
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PayloadsInPlace), 0U);
    EXPECT_TRUE(same(*a, 0, *b, kHalf, 8192));
}

TEST(EngineAttachEnd, WhatIsLeftIsDetachedWithTheEngine) {
    cairn::test::WirePort port("10.0.0.1", 64);
    port.sends_in_place = true;
    Memory memory(4096);
    Memory other(4096);
    {
        EngineConfig config;
        config.seed = {7, 11};
        const auto worker = worker::Worker::create(port, config, Instant{}).value();
        Engine& engine = worker->engine();
        const Pd pd = engine.create_pd();
        (void)engine.register_region({pd, memory, EngineHost::kBase, rc::kAllRights}).value();
        (void)engine.register_region({pd, other, EngineHost::kBase, rc::kAllRights}).value();
        EXPECT_EQ(port.attached.size(), 2U);
    }
    EXPECT_TRUE(port.attached.empty());
    EXPECT_EQ(port.detached_wrongly, 0);
}

// This happens if a region was invalidated but not destroyed, and another region gets its key.
TEST(AttachedRegionsOfAPort, AKeyThatComesAgainEndsTheOneBefore) {
    cairn::test::WirePort port("10.0.0.1", 64);
    port.sends_in_place = true;
    const Memory memory(4096);
    const Memory other(100);
    AttachedRegions regions(port);
    for (const Memory* each : {&memory, &other}) {
        ASSERT_TRUE(regions.begin(*each));
        regions.conclude(Rkey{5}, *each);
    }
    ASSERT_EQ(port.attached.size(), 1U);
    EXPECT_EQ(port.attached[0].data(), other.data());
    regions.end(Rkey{6});
    EXPECT_EQ(port.attached.size(), 1U);
    regions.end(Rkey{5});
    EXPECT_TRUE(port.attached.empty());
    EXPECT_EQ(port.detached_wrongly, 0);
}

}  // namespace
}  // namespace cairn::roce
