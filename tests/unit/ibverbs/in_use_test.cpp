// A fork() that gets no lock, perhaps in a handler that interrupted the lock's holder. And a fork() while other threads
// use an object with a lock of its own.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>

#include "lib/ibverbs/adapter.hpp"
#include "lib/ibverbs/in_use.hpp"
#include "tests/support/verbs_devices.hpp"
#include "tests/support/verbs_end.hpp"

namespace cairn::test {
namespace {

struct Parts {
    ibv_context* context = open_device("left");
    std::unique_ptr<VerbsEnd> end = std::make_unique<VerbsEnd>(context);
};

// Checks that the parent's objects do nothing, may be ended, and do not disturb new objects.
void live_as_child(Parts& inherited) {
    alarm(60);  // ends a process that hangs
    ibv_wc none{};
    EXPECT_EQ(ibv_poll_cq(inherited.end->queue, 1, &none), 0);
    inherited.end.reset();
    EXPECT_EQ(ibv_close_device(inherited.context), 0);
    ibv_context* const context = open_device("spare");
    ASSERT_NE(context, nullptr);
    EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(InUse, AChildOfWhoHoldsTheLocksIsAnOrphanAndGoesOn) {
    configure_devices();
    Parts parts;
    ASSERT_NE(parts.context, nullptr);
    pid_t child = -1;
    ibverbs::InUse::visit([&](const std::string&, ibverbs::Adapter& adapter) {
        const std::lock_guard hold(adapter.lock());
        child = fork();
        if (child == 0) {
            live_as_child(parts);
            _exit(testing::Test::HasFailure() ? 1 : 0);
        }
    });
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    ibv_wc none{};
    EXPECT_EQ(ibv_poll_cq(parts.end->queue, 1, &none), 0);  // its parent also goes on
    parts.end.reset();
    EXPECT_EQ(ibv_close_device(parts.context), 0);
}

// The child may end a queue with an event that its parent has not acknowledged yet, or acknowledges at that moment.
TEST(InUse, AChildEndsAQueueWhoseEventItsParentHas) {
    configure_devices();
    Parts parts;
    {
        VerbsEnd from(parts.context);
        parts.end->connect(from.name());
        from.connect(parts.end->name());
        ASSERT_EQ(parts.end->post_receive(1, 0, 8), 0);
        ASSERT_EQ(ibv_req_notify_cq(parts.end->queue, 0), 0);
        ASSERT_EQ(from.post_send(2, 0, 8), 0);
        ibv_cq* fired = nullptr;
        void* context = nullptr;
        ASSERT_EQ(ibv_get_cq_event(parts.end->channel, &fired, &context), 0);
        pthread_mutex_lock(&fired->mutex);
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);  // ends a process that hangs
            const bool ended = ibv_destroy_qp(parts.end->pair) == 0 && ibv_destroy_cq(parts.end->queue) == 0;
            _exit(ended ? 0 : 1);
        }
        pthread_mutex_unlock(&fired->mutex);
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
        ibv_ack_cq_events(fired, 1);
    }
    parts.end.reset();
    EXPECT_EQ(ibv_close_device(parts.context), 0);
}

}  // namespace
}  // namespace cairn::test
