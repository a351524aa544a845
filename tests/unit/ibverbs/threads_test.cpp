// Threads that use one library at once: over two contexts of a process, and over two processes. The test is for TSan,
// too.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/support/verbs_devices.hpp"
#include "tests/support/verbs_end.hpp"

namespace cairn::test {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 6;
constexpr int kMessages = 40;
constexpr std::uint32_t kMessageBytes = 1500;

using Take = ibv_wc (VerbsEnd::*)();

// Exchanges messages in both directions, each with other bytes. The end that `begins` sends first.
void play(VerbsEnd& end, bool begins, Take take) {
    constexpr std::uint32_t kReceiveAt = kMessageBytes;
    const std::uint8_t ours = begins ? 0 : 100;
    const std::uint8_t theirs = begins ? 100 : 0;
    std::uint8_t posted = 0;
    std::uint8_t received = 0;
    const auto send = [&] {
        std::fill_n(end.memory.begin(), kMessageBytes, static_cast<std::uint8_t>(ours + posted++));
        return end.post_send(1, 0, kMessageBytes);
    };
    ASSERT_EQ(begins ? send() : 0, 0);
    for (int left = 2 * kMessages; left != 0; --left) {
        const ibv_wc completion = (end.*take)();
        ASSERT_EQ(completion.status, IBV_WC_SUCCESS) << ibv_wc_status_str(completion.status);
        if ((completion.opcode & IBV_WC_RECV) != 0) {
            const auto mark = static_cast<std::uint8_t>(theirs + received++);
            ASSERT_EQ(end.memory[kReceiveAt], mark);
            ASSERT_EQ(end.memory[kReceiveAt + kMessageBytes - 1], mark);
            ASSERT_EQ(end.post_receive(2, kReceiveAt, kMessageBytes), 0);
            ASSERT_EQ(posted < kMessages ? send() : 0, 0);
        }
    }
}

// Lives a thread's life: makes, uses and ends queue pairs, again and again.
void live(ibv_context* context, int socket, bool begins) {
    for (int round = 0; round < kRounds; ++round) {
        VerbsEnd end(context);
        ASSERT_NE(end.pair, nullptr);
        const EndName peer = swap_over(socket, end.name());
        ASSERT_NO_FATAL_FAILURE(end.connect(peer));
        ASSERT_EQ(end.post_receive(2, kMessageBytes, kMessageBytes), 0);
        static_cast<void>(swap_over(socket, round));  // both can receive
        ASSERT_NO_FATAL_FAILURE(play(end, begins, round % 2 == 0 ? &VerbsEnd::poll_one : &VerbsEnd::await_one));
        static_cast<void>(swap_over(socket, round));  // both have all messages
    }
}

// Registers, queries and opens again while others work.
void disturb(ibv_context* context, const std::string& name, const std::atomic<bool>& ends) {
    std::vector<std::uint8_t> memory(4096);
    while (!ends.load(std::memory_order_relaxed)) {
        ibv_context* const again = open_device(name);
        ASSERT_NE(again, nullptr);
        ibv_pd* const domain = ibv_alloc_pd(again);
        ibv_mr* const region = ibv_reg_mr(domain, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
        ASSERT_NE(region, nullptr);
        ibv_port_attr port{};
        EXPECT_EQ(ibv_query_port(context, 1, &port), 0);
        EXPECT_EQ(ibv_dereg_mr(region), 0);
        EXPECT_EQ(ibv_dealloc_pd(domain), 0);
        EXPECT_EQ(ibv_close_device(again), 0);
        std::this_thread::yield();
    }
}

TEST(Threads, OfTwoContextsOfAProcessMakeUseAndEndQueuePairsAtOnce) {
    configure_devices();
    ibv_context* const left = open_device("left");
    ibv_context* const right = open_device("right");
    ASSERT_TRUE(left != nullptr && right != nullptr);
    {
        std::array<Sockets, kThreads> sockets;
        std::atomic<bool> ends{false};
        const std::jthread disturber([&] { disturb(left, "left", ends); });
        {
            std::vector<std::jthread> threads;
            for (Sockets& each : sockets) {
                threads.emplace_back([&] { live(left, each.ends[0], true); });
                threads.emplace_back([&] { live(right, each.ends[1], false); });
            }
        }
        ends.store(true);
    }
    EXPECT_EQ(ibv_close_device(left), 0);
    EXPECT_EQ(ibv_close_device(right), 0);
}

// Runs `live` in threads of this process.
void live_here(const std::string& device, std::array<Sockets, kThreads>& sockets, std::size_t side) {
    ibv_context* const context = open_device(device);
    ASSERT_NE(context, nullptr);
    {
        std::atomic<bool> ends{false};
        const std::jthread disturber([&] { disturb(context, device, ends); });
        {
            std::vector<std::jthread> threads;
            for (Sockets& each : sockets) {
                threads.emplace_back([&] { live(context, each.ends[side], side == 0); });
            }
        }
        ends.store(true);
    }
    EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(Threads, OfTwoProcessesMakeUseAndEndQueuePairsAtOnce) {
    configure_devices();
    std::array<Sockets, kThreads> sockets;
    const pid_t child = fork();
    if (child == 0) {
        live_here("right", sockets, 1);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    live_here("left", sockets, 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Several threads post to one queue pair, and several poll its queue: each completion is polled exactly once.
TEST(Threads, ShareAQueuePairAndItsQueue) {
    configure_devices();
    ibv_context* const left = open_device("left");
    ibv_context* const right = open_device("right");
    ASSERT_TRUE(left != nullptr && right != nullptr);
    {
        VerbsEnd from(left);
        VerbsEnd to(right);
        ASSERT_NO_FATAL_FAILURE(from.connect(to.name()));
        ASSERT_NO_FATAL_FAILURE(to.connect(from.name()));
        constexpr std::uint32_t kWrites = 300;
        const EndName peer = to.name();
        std::array<std::atomic<int>, kThreads * kWrites> completed{};
        std::atomic<std::uint32_t> left_to_poll{kThreads * kWrites};
        std::vector<std::jthread> threads;
        for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
            threads.emplace_back([&, thread] {
                for (std::uint32_t i = 0; i < kWrites;) {
                    const int refused = from.post_write(thread * kWrites + i, 8 * thread, 8, peer);
                    ASSERT_TRUE(refused == 0 || refused == ENOMEM) << refused;
                    i += refused == 0 ? 1 : 0;
                }
            });
            threads.emplace_back([&] {
                ibv_wc completion{};
                while (left_to_poll.load() != 0) {
                    if (ibv_poll_cq(from.queue, 1, &completion) == 1) {
                        EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
                        ++completed[completion.wr_id];
                        --left_to_poll;
                    }
                }
            });
        }
        threads.clear();
        for (const std::atomic<int>& each : completed) {
            ASSERT_EQ(each.load(), 1);
        }
    }
    EXPECT_EQ(ibv_close_device(left), 0);
    EXPECT_EQ(ibv_close_device(right), 0);
}

// Its cancellation is pending from the beginning, and takes effect where it waits, or never.
TEST(Threads, ThatIsCancelledOpensAndClosesAsEver) {
    configure_devices();
    std::atomic<bool> done{false};
    std::thread cancelled([&done] {
        pthread_cancel(pthread_self());
        ibv_context* const context = open_device("spare");
        ASSERT_NE(context, nullptr);
        ibv_comp_channel* const channel = ibv_create_comp_channel(context);
        ASSERT_NE(channel, nullptr);
        ibv_pd* const domain = ibv_alloc_pd(context);
        EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
        ibv_context* const again = ibv_import_device(context->cmd_fd);
        EXPECT_NE(again, nullptr);
        EXPECT_EQ(ibv_close_device(again), 0);
        EXPECT_EQ(ibv_close_device(context), 0);
        EXPECT_EQ(ibv_dealloc_pd(domain), 0);  // the context ends with it
        int state = 0;
        EXPECT_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state), 0);
        EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);  // as it was before
        done.store(true);
    });
    cancelled.join();
    EXPECT_TRUE(done.load());
}

}  // namespace
}  // namespace cairn::test
