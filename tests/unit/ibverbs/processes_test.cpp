// Processes that fork, exit or are killed during all kinds of work.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

#include "tests/support/verbs_devices.hpp"
#include "tests/support/verbs_end.hpp"

namespace cairn::test {
namespace {

constexpr std::uint32_t kBytes = 1000;

// A child that exits ends right after the library's own exit handler, which was registered later: further exit handlers
// would give its helper thread time to do the same.
bool is_child = false;
const int kRegistered = std::atexit([] {
    if (is_child) {
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
});

// Runs `live` in a child, for a minute at most. It ends as `live` ends it, or by _exit(): 0 if its expectations were
// met.
pid_t start(const std::function<void()>& live) {
    const pid_t child = fork();
    if (child == 0) {
        is_child = true;
        alarm(60);  // ends a process that hangs
        live();
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    return child;
}

void expect_success(pid_t child) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Both devices of this process, and an end on each, connected.
class Joint {
public:
    Joint() : left_(open_device("left")), right_(open_device("right")), from(left_), to(right_) {
        from.connect(to.name());
        to.connect(from.name());
    }
    Joint(const Joint&) = delete;
    Joint& operator=(const Joint&) = delete;
    ~Joint() = default;

private:
    struct Closed {
        explicit Closed(ibv_context* opened) : context(opened) {}
        Closed(const Closed&) = delete;
        Closed& operator=(const Closed&) = delete;
        ~Closed() { EXPECT_EQ(ibv_close_device(context), 0); }
        operator ibv_context*() const { return context; }
        ibv_context* context;
    };
    Closed left_;
    Closed right_;

public:
    VerbsEnd from;
    VerbsEnd to;

    void expect_that_it_works() {
        ASSERT_EQ(to.post_receive(7, 0, kBytes), 0);
        ASSERT_EQ(from.post_send(8, 0, kBytes), 0);
        EXPECT_EQ(to.poll_one().status, IBV_WC_SUCCESS);
        EXPECT_EQ(from.poll_one().status, IBV_WC_SUCCESS);
    }
};

TEST(Processes, AChildOpensADeviceAnewAndItsParentGoesOn) {
    configure_devices();
    Joint joint;
    std::atomic<bool> ends{false};
    {
        // The child exits during turns, too.
        const std::jthread busy([&] {
            while (!ends.load()) {
                joint.expect_that_it_works();
            }
        });
        for (int i = 0; i < 10; ++i) {
            const pid_t child = start([&joint] {
                ibv_wc any{};
                EXPECT_GE(ibv_poll_cq(joint.from.queue, 1, &any), 0);  // no thread has its lock
                ibv_context* const context = open_device("spare");
                ASSERT_NE(context, nullptr);
                {
                    VerbsEnd one(context);
                    VerbsEnd other(context);
                    one.connect(other.name());
                    other.connect(one.name());
                    ASSERT_EQ(other.post_receive(7, 0, kBytes), 0);
                    ASSERT_EQ(one.post_send(8, 0, kBytes), 0);
                    EXPECT_EQ(other.await_one().status, IBV_WC_SUCCESS);
                    EXPECT_EQ(one.await_one().status, IBV_WC_SUCCESS);
                }
                EXPECT_EQ(ibv_close_device(context), 0);
            });
            expect_success(child);
        }
        ends.store(true);
    }
    joint.expect_that_it_works();
}

// The parent's objects do nothing in the child, whatever the child does with them.
TEST(Processes, AChildMayUseAndEndWhatItsParentMade) {
    configure_devices();
    auto joint = std::make_unique<Joint>();
    for (int i = 0; i < 10; ++i) {  // the child has them, too
        ASSERT_EQ(joint->to.post_receive(7, 0, kBytes), 0);
    }
    Sockets done;
    const pid_t user = start([&] {
        ibv_wc none{};
        char byte = 0;
        EXPECT_EQ(write(done.ends[1], "", 1), 1);  // the child is running
        while (recv(done.ends[1], &byte, 1, MSG_DONTWAIT) != 1) {
            EXPECT_EQ(ibv_poll_cq(joint->from.queue, 1, &none), 0);
            EXPECT_EQ(ibv_poll_cq(joint->to.queue, 1, &none), 0);
        }
    });
    char byte = 0;
    ASSERT_EQ(recv(done.ends[0], &byte, 1, 0), 1);
    for (int i = 0; i < 50; ++i) {
        joint->expect_that_it_works();
    }
    ASSERT_EQ(write(done.ends[0], "", 1), 1);
    expect_success(user);
    ASSERT_EQ(joint->to.post_receive(7, 0, kBytes), 0);
    expect_success(start([&] { joint.reset(); }));
    ASSERT_EQ(joint->from.post_send(8, 0, kBytes), 0);
    EXPECT_EQ(joint->to.poll_one().status, IBV_WC_SUCCESS);
    EXPECT_EQ(joint->from.poll_one().status, IBV_WC_SUCCESS);
}

// The parent's channels are out of the child's reach: it neither takes an event there nor adds one.
TEST(Processes, AChildTakesNoEventOfItsParent) {
    configure_devices();
    auto joint = std::make_unique<Joint>();
    ASSERT_EQ(ibv_req_notify_cq(joint->to.queue, 0), 0);
    ASSERT_EQ(joint->to.post_receive(7, 0, kBytes), 0);
    ASSERT_EQ(joint->from.post_send(8, 0, kBytes), 0);
    EXPECT_EQ(joint->from.poll_one().status, IBV_WC_SUCCESS);
    pollfd event{joint->to.channel->fd, POLLIN, 0};
    ASSERT_EQ(poll(&event, 1, 20'000), 1);
    expect_success(start([&] {
        ibv_cq* fired = nullptr;
        void* context = nullptr;
        EXPECT_EQ(ibv_get_cq_event(joint->to.channel, &fired, &context), -1);
        EXPECT_EQ(errno, EIO);
        joint.reset();  // takes back events that are in no channel
    }));
    EXPECT_EQ(poll(&event, 1, 0), 1);
    EXPECT_EQ(joint->to.await_one().status, IBV_WC_SUCCESS);
}

// A child that does not know the address lives on, and its parent opens the device again.
TEST(Processes, AChildDoesNotKeepItsParentsAddress) {
    configure_devices();
    ibv_context* context = open_device("left");
    ASSERT_NE(context, nullptr);
    Sockets ends;
    const pid_t child = start([&] {
        char byte = 0;
        EXPECT_EQ(recv(ends.ends[1], &byte, 1, 0), 1);
    });
    EXPECT_EQ(ibv_close_device(context), 0);
    context = open_device("left");
    EXPECT_EQ(write(ends.ends[0], "", 1), 1);
    expect_success(child);
    ASSERT_NE(context, nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
}

// Sends to an end that a child makes on the device "right" and runs `live` on. `live` gets a connected end.
struct Peer {
    explicit Peer(const std::function<void(VerbsEnd&)>& live) {
        child = start([&] {
            ibv_context* const context = open_device("right");
            ASSERT_NE(context, nullptr);
            auto* const end = new VerbsEnd(context);  // not ended
            end->connect(swap_over(sockets.ends[1], end->name()));
            ASSERT_EQ(end->post_receive(1, 0, kBytes), 0);
            static_cast<void>(swap_over(sockets.ends[1], 0));
            live(*end);
        });
    }
    EndName meet(VerbsEnd& end, std::uint8_t retries) {
        const EndName peer = swap_over(sockets.ends[0], end.name());
        end.connect(peer, retries);
        static_cast<void>(swap_over(sockets.ends[0], 0));
        return peer;
    }
    Sockets sockets;
    pid_t child = 0;
};

// The peer does this right after its last completion. A program that has polled for some time leaves acknowledgements
// for its next poll, which never comes.
void expect_that_it_is_answered(const std::function<void(VerbsEnd& end)>& then) {
    for (int i = 0; i < 8; ++i) {
        Peer peer([&then, i](VerbsEnd& end) {
            EXPECT_EQ((i % 4 != 0 ? end.poll_one() : end.await_one()).status, IBV_WC_SUCCESS);
            then(end);
        });
        ibv_context* const context = open_device("left");
        ASSERT_NE(context, nullptr);
        {
            VerbsEnd end(context);
            static_cast<void>(peer.meet(end, 7));
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            ASSERT_EQ(end.post_send(8, 0, kBytes), 0);
            EXPECT_EQ(end.poll_one().status, IBV_WC_SUCCESS);
        }
        EXPECT_EQ(ibv_close_device(context), 0);
        expect_success(peer.child);
    }
}

TEST(Processes, WhoExitsAfterItsLastCompletionLeavesNoPeerUnanswered) {
    ASSERT_EQ(kRegistered, 0);
    configure_devices();
    expect_that_it_is_answered([](VerbsEnd&) { exit(0); });
}

TEST(Processes, WhoGoesToErrAfterItsLastCompletionLeavesNoPeerUnanswered) {
    configure_devices();
    expect_that_it_is_answered([](VerbsEnd& end) {
        ibv_qp_attr to{};
        to.qp_state = IBV_QPS_ERR;
        EXPECT_EQ(ibv_modify_qp(end.pair, &to, IBV_QP_STATE), 0);
    });
}

// Mostly a signal ends a program during a turn: the thread that exits holds the lock.
TEST(Processes, WhoExitsInASignalHandlerExits) {
    configure_devices();
    for (int i = 0; i < 4; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        expect_success(start([i] {
            signal(SIGVTALRM, [](int) { exit(0); });
            Joint joint;
            const itimerval soon{{0, 0}, {0, 2000 + 700 * i}};
            ASSERT_EQ(setitimer(ITIMER_VIRTUAL, &soon, nullptr), 0);
            for (;;) {
                joint.expect_that_it_works();
            }
        }));
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
    }
}

TEST(Processes, WhoExitsWhileOthersPollExits) {
    configure_devices();
    for (int i = 0; i < 6; ++i) {
        expect_success(start([] {
            auto* const joint = new Joint;  // not ended
            std::atomic<int> rounds{0};
            std::thread([&] {
                for (;; ++rounds) {
                    joint->expect_that_it_works();
                }
            }).detach();
            std::thread([joint] {
                ibv_wc any{};
                while (ibv_poll_cq(joint->to.queue, 0, &any) >= 0) {
                }
            }).detach();
            while (rounds.load() < 10) {
                std::this_thread::yield();
            }
            exit(0);
        }));
    }
}

// At any time, again and again: the other end gets an error for each request, and the next ones work.
TEST(Processes, WhoIsKilledLeavesErrorsAndNothingInTheWay) {
    configure_devices();
    ibv_context* const context = open_device("left");
    ASSERT_NE(context, nullptr);
    for (int i = 0; i < 6; ++i) {
        Peer peer([](VerbsEnd& end) {
            for (;;) {
                static_cast<void>(end.poll_one());
            }
        });
        VerbsEnd end(context);
        const EndName name = peer.meet(end, 1);
        const std::jthread killer([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(3 * i));
            kill(peer.child, SIGKILL);
        });
        ibv_wc completion{};
        int posted = 0;
        int completed = 0;
        while (completion.status == IBV_WC_SUCCESS) {
            while (posted - completed < 16) {
                ASSERT_EQ(end.post_write(8, 0, kBytes, name), 0);
                ++posted;
            }
            completion = end.poll_one();
            ++completed;
        }
        EXPECT_EQ(completion.status, IBV_WC_RETRY_EXC_ERR) << ibv_wc_status_str(completion.status);
        for (; completed != posted; ++completed) {
            EXPECT_EQ(end.poll_one().status, IBV_WC_WR_FLUSH_ERR);
        }
        int status = 0;
        ASSERT_EQ(waitpid(peer.child, &status, 0), peer.child);
        EXPECT_TRUE(WIFSIGNALED(status)) << status;
    }
    EXPECT_EQ(ibv_close_device(context), 0);
}

}  // namespace
}  // namespace cairn::test
