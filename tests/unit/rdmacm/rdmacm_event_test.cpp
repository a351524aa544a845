// Events and the lock that guards them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "lib/rdmacm/endpoint.hpp"
#include "lib/rdmacm/event.hpp"

namespace cairn::rdmacm {
namespace {

// As exit() does in a handler that interrupted who has the lock.
TEST(RdmacmEventTest, WhoHasTheLockTellsNobodyAndDoesNotWait) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(10);  // ends whoever hangs
        Channel channel;
        Endpoint endpoint(RDMA_PS_TCP, IBV_QPT_RC, channel);
        const auto say = [&endpoint] { tell(std::make_unique<Event>(endpoint, RDMA_CM_EVENT_ADDR_RESOLVED, 0)); };
        {
            const EventLock hold;
            say();
        }
        const bool told_nobody = channel.waiting.empty();
        say();
        _exit(told_nobody && channel.waiting.size() == 1 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace cairn::rdmacm
