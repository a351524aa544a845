// Two workers' loops on one CPU, and how their ends depend on each other.
#include "pmd_glue/lcores.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <thread>

#include "pmd_glue/control_thread.hpp"
#include "pmd_glue/poll_fence.hpp"

namespace cairn::pmd {
namespace {

constexpr int kTurns = 200;

// Has nothing to do and is finished from the beginning.
class Early final : public worker::Task {
public:
    [[nodiscard]] bool run_turn(Instant) noexcept override {
        turns.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    [[nodiscard]] bool finished(Instant) const noexcept override {
        asked.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    std::atomic<int> turns{0};
    mutable std::atomic<int> asked{0};
};

// Needs turns of the other worker, as a tenant does that sends through its port.
class Late final : public worker::Task {
public:
    explicit Late(const Early& early) : early_(early) {}
    [[nodiscard]] bool run_turn(Instant now) noexcept override {
        began_ = began_ == Instant{} ? now : began_;
        return false;
    }
    [[nodiscard]] bool finished(Instant now) const noexcept override {
        return early_.turns.load(std::memory_order_relaxed) > kTurns || now - began_ > seconds(20);
    }

private:
    const Early& early_;
    Instant began_{};
};

TEST(WorkersTest, AFinishedOneGoesOnTurningUntilAllAre) {
    ASSERT_EQ(worker_count(), 2);
    const Clock clock;
    for (const worker::Polling polling : {worker::Polling::Adaptive, worker::Polling::Spin}) {
        Early early;
        Late late(early);
        const std::array<worker::Task*, 2> tasks{&early, &late};
        (void)run_workers(tasks, clock, polling);
        EXPECT_GT(early.turns.load(), kTurns);
        EXPECT_EQ(early.asked.load(), 1);
    }
}

TEST(WorkersTest, TheControlThreadUnmapsNothingBeforeAllPollersPassed) {
    std::atomic<bool> over{false};
    std::atomic<bool> polling{false};
    std::thread poller([&] {
        PollFence fence(7);
        polling = true;
        while (!over) {
            fence.pass();
        }
    });
    while (!polling) {
        std::this_thread::yield();
    }
    const std::uint64_t before = PollFence::waits();
    run_on_control_thread(
        [](void*) {
            void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            (void)munmap(memory, 4096);
        },
        nullptr);
    EXPECT_EQ(PollFence::waits() > before, PollFence::fences_munmap());
    over = true;
    poller.join();
}

}  // namespace
}  // namespace cairn::pmd
