// A worker on a DPDK device, which has no descriptor to sleep on: a doorbell of another process ends its naps.
#include <array>

#include "lib/worker/loop.hpp"
#include "pmd_glue/eal.hpp"
#include "pmd_glue/lcores.hpp"
#include "tests/eal/net_ring.hpp"
#include "tests/support/shard.hpp"

namespace cairn::pmd {
namespace {

constexpr std::uint32_t kRings = 500;

// Turns the worker until all requests are answered.
class ShardTask final : public worker::Task {
public:
    ShardTask(worker::Worker& worker, const test::Channel& channel) : worker_(worker), channel_(channel) {}
    [[nodiscard]] bool run_turn(Instant now) noexcept override { return worker_.turn(now); }
    [[nodiscard]] bool finished(Instant) const noexcept override { return channel_.answered == kRings; }
    [[nodiscard]] bool can_wait() const noexcept override { return worker_.can_wait(); }
    void wait(Instant now) noexcept override { worker_.wait(now, now + kLongestWait); }

private:
    worker::Worker& worker_;
    const test::Channel& channel_;
};

using NetRingDoorbell = NetRing;

TEST_F(NetRingDoorbell, AnotherProcessEndsTheNapsOfAWorkersLoop) {
    open(1);
    const auto channel = test::map_channel();
    ASSERT_NE(channel, nullptr);
    const Clock clock;
    {
        worker::Worker& worker = *sides[0][0]->worker;
        test::Shard shard(worker, *channel);
        test::Process client([&] {
            for (std::uint32_t i = 1; i <= kRings; ++i) {
                test::await_sleep(*channel);
                (void)test::ask(*channel, shard.bell->fd());
                while (channel->answered.load(std::memory_order_acquire) != i) {
                    sched_yield();
                }
            }
        });
        ShardTask task(worker, *channel);
        const std::array<worker::Task*, 1> tasks{&task};
        (void)run_workers(tasks, clock, worker::Polling::Adaptive);
        EXPECT_TRUE(client.wait());
        now = clock.now();
        worker.wait(now, now);
        worker.turn(now);
        EXPECT_EQ(channel->answered, kRings);
        EXPECT_GT(shard.bell->wakes(), channel->woke / 2);
        EXPECT_LE(shard.bell->wakes(), channel->woke);
        EXPECT_GT(channel->woke, kRings / 4);
    }
}

}  // namespace
}  // namespace cairn::pmd
