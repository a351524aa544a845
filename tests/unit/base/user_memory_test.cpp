// Access to memory that may have vanished fails, without any other effect.
#include "lib/base/user_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/fault_handler.hpp"

namespace cairn {
namespace {

constexpr std::size_t kPage = 4096;

bool copy(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
    return UserMemory::run([=]() noexcept { std::memcpy(to, from, bytes); });
}

class UserMemoryTest : public testing::Test {
protected:
    void SetUp() override { test::catch_faults(); }

    test::Pages pages{4 * kPage};
    std::array<std::uint8_t, 2 * kPage> own{};
};

TEST_F(UserMemoryTest, WhatIsThereIsCopied) {
    own.fill(7);
    EXPECT_TRUE(copy(pages.all().data(), own.data(), own.size()));
    EXPECT_EQ(pages.all()[own.size() - 1], 7);
    EXPECT_EQ(pages.all()[own.size()], 0);
}

TEST_F(UserMemoryTest, WhatHasVanishedIsNeitherReadNorWrittenAndItsAddressIsKnown) {
    pages.vanish(kPage, kPage);
    std::uint8_t* const edge = pages.all().data() + kPage;
    for (int again = 0; again < 3; ++again) {
        EXPECT_FALSE(copy(own.data(), edge - 100, 200));
        EXPECT_EQ(UserMemory::last_fault(), edge);
        EXPECT_FALSE(copy(edge + 8, own.data(), 8));
        EXPECT_EQ(UserMemory::last_fault(), edge + 8);
        EXPECT_TRUE(copy(own.data(), edge - 100, 100));
    }
}

// As in threads that leave all signals to another thread.
TEST_F(UserMemoryTest, AThreadThatBlocksSignalsFailsToo) {
    pages.vanish();
    std::thread([this] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
        EXPECT_FALSE(copy(own.data(), pages.all().data(), 1));
        EXPECT_FALSE(copy(own.data(), pages.all().data(), 1));
        sigset_t now;
        pthread_sigmask(SIG_SETMASK, nullptr, &now);
        EXPECT_EQ(sigismember(&now, SIGTERM), 1) << "what is sent is another's, as ever";
    }).join();
}

TEST_F(UserMemoryTest, ThreadsFailEachForItself) {
    pages.vanish(0, kPage);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i) {
        threads.emplace_back([this, i] {
            std::array<std::uint8_t, 64> bytes{};
            for (int again = 0; again < 1000; ++again) {
                const std::uint8_t* const from = pages.all().data() + i * kPage;
                ASSERT_EQ(copy(bytes.data(), from, bytes.size()), i != 0);
                ASSERT_EQ(UserMemory::last_fault(), i == 0 ? from : nullptr);
            }
        });
    }
    for (std::thread& each : threads) {
        each.join();
    }
}

}  // namespace
}  // namespace cairn
