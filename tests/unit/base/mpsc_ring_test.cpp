// The ring from many threads to one: order, a full ring, values that stay, wrap-around.
#include "lib/base/mpsc_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <thread>
#include <vector>

namespace cairn {
namespace {

using Ring = MpscRing<std::uint64_t>;

bool push(Ring& ring, std::uint64_t value) {
    return ring.push([value](std::uint64_t& slot) noexcept { slot = value; });
}

std::optional<std::uint64_t> pop(Ring& ring) {
    std::optional<std::uint64_t> found;
    (void)ring.pop([&found](std::uint64_t& slot) noexcept {
        found = slot;
        return true;
    });
    return found;
}

TEST(MpscRing, GivesBackWhatItTookInOrderAndSaysWhenItIsFull) {
    Ring ring(4);
    EXPECT_EQ(pop(ring), std::nullopt);
    std::uint64_t next_in = 0;
    std::uint64_t next_out = 0;
    for (int round = 0; round < 10; ++round) {
        while (push(ring, next_in)) {
            ++next_in;
        }
        EXPECT_EQ(next_in - next_out, 4U);
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(pop(ring), next_out++);
        }
    }
}

TEST(MpscRing, WhatIsNotTakenStays) {
    Ring ring(2);
    EXPECT_TRUE(push(ring, 7));
    EXPECT_FALSE(ring.pop([](std::uint64_t&) noexcept { return false; }));
    EXPECT_EQ(pop(ring), 7U);
    EXPECT_EQ(pop(ring), std::nullopt);
}

TEST(MpscRing, ThreadsLoseNothingAndEachKeepsItsOrder) {
    constexpr std::uint64_t kThreads = 3;
    constexpr std::uint64_t kEach = 20'000;
    Ring ring(64);
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&ring, thread] {
            for (std::uint64_t i = 0; i < kEach;) {
                if (push(ring, thread << 32U | i)) {
                    ++i;
                } else {
                    std::this_thread::yield();
                }
            }
        });
    }
    std::array<std::uint64_t, kThreads> next{};
    for (std::uint64_t got = 0; got < kThreads * kEach;) {
        const std::optional<std::uint64_t> value = pop(ring);
        if (!value) {
            std::this_thread::yield();
            continue;
        }
        ASSERT_EQ(*value & 0xffffffffU, next[*value >> 32U]++);
        ++got;
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(pop(ring), std::nullopt);
}

}  // namespace
}  // namespace cairn
