// The threads that wait for the pollers when memory is unmapped, and the threads that must not.
#include "pmd_glue/poll_fence.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <future>

namespace cairn::pmd {
namespace {

TEST(PollFenceTest, AThreadThatAWorkerWaitsForUnmapsItsOwnMemoryMeanwhile) {
    PollFence worker(0);
    auto handler = std::async(std::launch::async, [] {
        void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return munmap(memory, 4096);
    });
    EXPECT_EQ(handler.wait_for(std::chrono::seconds(10)), std::future_status::ready) << "each waits for the other";
    while (handler.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
        worker.pass();
    }
    EXPECT_EQ(handler.get(), 0);
}

}  // namespace
}  // namespace cairn::pmd
