// Messages between shards of one process: rings that are full or wrap around, and that two threads use.
#include "fs/daemon/shard_mail.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include "fs/daemon/no_port.hpp"
#include "tests/unit/fs_daemon/clock.hpp"

namespace cairn::fs {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes message_of(std::uint32_t number, std::size_t bytes) {
    Bytes message(bytes);
    for (std::size_t i = 0; i != bytes; ++i) {
        message[i] = static_cast<std::uint8_t>(number * 31 + i);
    }
    return message;
}

std::vector<Bytes> all_of(ShardRing& ring) {
    std::vector<Bytes> all;
    ring.take([&](std::span<const std::uint8_t> message) { all.emplace_back(message.begin(), message.end()); });
    return all;
}

TEST(ShardRingTest, MessagesOfAllLengthsArriveWholeAndInOrderWhereverTheyLie) {
    const auto ring = std::make_unique<ShardRing>();
    std::mt19937 chance(7);
    std::uint32_t put = 0;
    std::uint32_t taken = 0;
    std::deque<Bytes> there;
    for (int round = 0; round != 2000; ++round) {
        for (Bytes next = message_of(put, chance() % 4097); ring->put(next); next = message_of(put, chance() % 4097)) {
            there.push_back(next);
            ++put;
        }
        for (const Bytes& each : all_of(*ring)) {
            ASSERT_EQ(each, there.front()) << taken;
            there.pop_front();
            ++taken;
        }
        ASSERT_TRUE(ring->empty());
    }
    EXPECT_EQ(put, taken);
    EXPECT_GT(put, 10'000U);
}

TEST(ShardRingTest, AFullRingTakesNothingUntilSomethingIsTaken) {
    const auto ring = std::make_unique<ShardRing>();
    const Bytes message = message_of(1, 4096);
    std::size_t put = 0;
    for (; ring->put(message); ++put) {
        EXPECT_FALSE(ring->empty());
    }
    EXPECT_EQ(put, 7U);  // of 32 KiB, each message taking 4104 bytes
    EXPECT_FALSE(ring->has_room(4096));
    EXPECT_FALSE(ring->must_wake());
    ring->begin_wait();
    EXPECT_EQ(all_of(*ring), std::vector<Bytes>(7, message));
    EXPECT_TRUE(ring->must_wake());
    EXPECT_FALSE(ring->must_wake());  // once
    EXPECT_TRUE(ring->put(message));
}

// Each message is put as soon as there is room, and arrives unchanged.
TEST(ShardRingTest, TwoThreadsLoseNothing) {
    constexpr std::uint32_t kMessages = 100'000;
    const auto ring = std::make_unique<ShardRing>();
    std::thread sender([&] {
        for (std::uint32_t i = 0; i != kMessages;) {
            if (ring->put(message_of(i, i % 300))) {
                ++i;
            } else {
                std::this_thread::yield();
            }
        }
    });
    std::uint32_t next = 0;
    std::uint32_t wrong = 0;
    while (next != kMessages) {
        ring->take([&](std::span<const std::uint8_t> message) {
            wrong += std::ranges::equal(message, message_of(next, next % 300)) ? 0U : 1U;
            ++next;
        });
        std::this_thread::yield();
    }
    sender.join();
    EXPECT_EQ(wrong, 0U);
}

// A shard that only sends messages and counts the ones it gets.
struct Shardlike final : worker::Tenant {
    Shardlike() : tenancy(worker->add(*this)) {}
    bool on_turn(Instant) noexcept override {
        if (!mail.has_work()) {
            return false;
        }
        receive();
        mail.flush();
        return true;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override {
        return mail.has_work() ? Instant{} : Instant::never();
    }
    void receive() {
        mail.take([this](ShardNumber from, std::span<const std::uint8_t> message) {
            std::uint32_t number = 0;
            ASSERT_EQ(message.size(), kBytes);
            std::memcpy(&number, message.data(), sizeof(number));
            in_order = in_order && number == got[from];
            ++got[from];
        });
    }
    void send(ShardNumber to) {
        Bytes message(kBytes);
        std::memcpy(message.data(), &sent[to], sizeof(std::uint32_t));
        ++sent[to];
        mail.send(to, message);
    }
    // Takes a turn without other work.
    void turn() {
        receive();
        mail.flush();
    }

    static constexpr std::size_t kBytes = 1000;
    NoPort port;
    std::unique_ptr<worker::Worker> worker =
        worker::Worker::create(port, {.max_queue_pairs = 1, .max_regions = 1}, test::clock_now()).value();
    ShardMail mail;
    std::array<std::uint32_t, 4> sent{};
    std::array<std::atomic<std::uint32_t>, 4> got{};
    std::atomic<bool> in_order = true;
    worker::Tenancy tenancy;
};

class ShardMailTest : public testing::Test {
protected:
    ShardMailTest() {
        // Shard 2 belongs to another process.
        const std::vector<ShardMail*> all{&zero.mail, &one.mail, nullptr, &three.mail};
        EXPECT_TRUE(zero.mail.open(*zero.worker, 0, all).ok());
        EXPECT_TRUE(one.mail.open(*one.worker, 1, all).ok());
        EXPECT_TRUE(three.mail.open(*three.worker, 3, all).ok());
    }

    Shardlike zero;
    Shardlike one;
    Shardlike three;
};

TEST_F(ShardMailTest, MessagesGoToWhomTheyAreFor) {
    zero.send(1);
    zero.send(3);
    zero.send(3);
    three.send(1);
    EXPECT_TRUE(one.mail.has_work() && three.mail.has_work());
    EXPECT_FALSE(zero.mail.has_work());
    one.turn();
    three.turn();
    EXPECT_EQ(one.got[0], 1U);
    EXPECT_EQ(one.got[3], 1U);
    EXPECT_EQ(three.got[0], 2U);
    EXPECT_FALSE(one.mail.has_work() || three.mail.has_work());
}

TEST_F(ShardMailTest, WhatHasNoRoomWaitsInOrderAndIsNoReasonToTurn) {
    for (int i = 0; i != 100; ++i) {
        zero.send(1);
    }
    zero.mail.flush();
    EXPECT_TRUE(zero.mail.is_held_up());
    EXPECT_FALSE(zero.mail.has_work());
    zero.send(3);  // no other shard waits
    three.turn();
    EXPECT_EQ(three.got[0], 1U);
    for (int i = 0; i != 10; ++i) {
        one.turn();
        EXPECT_EQ(zero.mail.has_work(), zero.mail.is_held_up());
        zero.turn();
    }
    EXPECT_EQ(one.got[0], 100U);
    EXPECT_TRUE(one.in_order);
    EXPECT_FALSE(zero.mail.is_held_up() || zero.mail.has_work());
}

TEST_F(ShardMailTest, AMessageDoesNotOvertakeThoseThatWait) {
    for (int i = 0; i != 100; ++i) {
        zero.send(1);
    }
    one.turn();  // there is room again, which the waiting shards do not know yet
    zero.send(1);
    for (int i = 0; i != 10; ++i) {
        zero.turn();
        one.turn();
    }
    EXPECT_EQ(one.got[0], 101U);
    EXPECT_TRUE(one.in_order);
}

TEST_F(ShardMailTest, TwoShardsWhoseRingsAreFullBothGoOn) {
    for (int i = 0; i != 1000; ++i) {
        zero.send(1);
        one.send(0);
    }
    for (int i = 0; i != 100; ++i) {
        zero.turn();
        one.turn();
    }
    EXPECT_EQ(zero.got[1], 1000U);
    EXPECT_EQ(one.got[0], 1000U);
    EXPECT_TRUE(zero.in_order && one.in_order);
}

// A shard that takes messages wakes one that waits for room. A shard that sends wakes an idle one. Neither sleep ends
// by itself.
TEST_F(ShardMailTest, SleepersAreWokenByMessagesAndByRoom) {
    constexpr std::uint32_t kRounds = 200;
    constexpr std::uint32_t kEach = 100;  // more than a ring has room for
    std::atomic<bool> stop = false;
    std::thread receiver([&] {
        while (one.got[0] != kRounds * kEach) {
            if (!one.worker->turn(test::clock_now())) {
                one.worker->wait(test::clock_now(), test::clock_now() + seconds(20));
            }
        }
        stop = true;
    });
    for (std::uint32_t round = 0; round != kRounds; ++round) {
        for (std::uint32_t i = 0; i != kEach; ++i) {
            zero.send(1);
        }
        zero.mail.flush();
        while (zero.mail.is_held_up()) {
            if (!zero.worker->turn(test::clock_now())) {
                zero.worker->wait(test::clock_now(), test::clock_now() + seconds(20));
            }
        }
    }
    receiver.join();
    EXPECT_TRUE(stop);
    EXPECT_TRUE(one.in_order);
}

}  // namespace
}  // namespace cairn::fs
