// The adapter and its threads: which of them get its lock, and when.
#include "lib/ibverbs/adapter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "lib/ibverbs/in_use.hpp"
#include "tests/support/verbs_devices.hpp"

namespace cairn::test {
namespace {

// Has work in each turn, as with peers that send without end, and takes its time.
class Busy final : public worker::Tenant {
public:
    bool on_turn(Instant /*now*/) noexcept override {
        ++turns;
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        return true;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant{}; }

    std::atomic<int> turns{0};
};

TEST(Adapter, WhoWaitsForItsLockDoesNotWaitForAllThatPeersSend) {
    configure_devices();
    ibv_context* const context = open_device("spare");
    ASSERT_NE(context, nullptr);
    ibverbs::Adapter* adapter = nullptr;
    ibverbs::InUse::visit([&adapter](const std::string& device, ibverbs::Adapter& each) {
        adapter = device == "spare" ? &each : adapter;
    });
    ASSERT_NE(adapter, nullptr);
    Busy busy;
    worker::Tenancy tenancy;
    {
        const std::lock_guard hold(adapter->lock());
        tenancy = adapter->worker().add(busy);
        adapter->settle();
    }
    constexpr int kTimes = 12;
    constexpr int kLong = 10;  // turns of the 64 that the helper takes in a row
    const auto long_waits = [&] {
        int waited = 0;
        for (int i = 0; i < kTimes; ++i) {
            const int begin = busy.turns.load();
            while (busy.turns.load() < begin + 3) {  // the helper is running
                std::this_thread::yield();
            }
            const int before = busy.turns.load();
            const std::lock_guard hold(adapter->lock());
            waited += busy.turns.load() - before > kLong ? 1 : 0;
        }
        return waited;
    };
    // A thread without a CPU waits, too. Other programs may have the CPU for some of the tries.
    constexpr int kTries = 10;
    int waited = kTimes;
    for (int i = 0; i < kTries && waited > kTimes / 3; ++i) {
        waited = long_waits();
    }
    EXPECT_LE(waited, kTimes / 3);
    {
        const std::lock_guard hold(adapter->lock());
        tenancy.leave();
    }
    EXPECT_EQ(ibv_close_device(context), 0);
}

}  // namespace
}  // namespace cairn::test
