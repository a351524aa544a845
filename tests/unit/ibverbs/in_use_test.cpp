// A fork() that gets no lock: perhaps a handler forks that interrupted who holds it.
#include <gtest/gtest.h>
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

// What its parent made does nothing, may be ended, and is not in the way of what it makes.
void live_as_child(Parts& inherited) {
    alarm(60);  // whoever hangs ends
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
    EXPECT_EQ(ibv_poll_cq(parts.end->queue, 1, &none), 0);  // its parent goes on, too
    parts.end.reset();
    EXPECT_EQ(ibv_close_device(parts.context), 0);
}

}  // namespace
}  // namespace cairn::test
