// Events and the lock that guards them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "lib/rdmacm/endpoint.hpp"
#include "lib/rdmacm/event.hpp"

namespace cairn::rdmacm {
namespace {

// exit() does this in a handler that interrupted the lock's holder.
TEST(RdmacmEventLockTest, WhoHasTheLockTellsNobodyAndDoesNotWait) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(10);  // ends a process that hangs
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

class RdmacmEventTest : public testing::Test {
protected:
    RdmacmEventTest() {
        for (Channel* const each : {&here_, &there_}) {
            EXPECT_TRUE(each->count.open());
        }
    }
    ~RdmacmEventTest() override {
        const std::vector<std::unique_ptr<Event>> dropped = forget_events(listener_);
        for (Channel* const each : {&here_, &there_}) {
            each->count.close();
        }
    }
    // Makes a request. Returns its endpoint.
    Endpoint& ask() {
        auto event = std::make_unique<Event>(listener_, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
        event->asked = OwnedEndpoint(new Endpoint(RDMA_PS_TCP, IBV_QPT_RC, here_));
        Endpoint& asked = *event->asked;
        tell(std::move(event));
        return asked;
    }

    Channel here_;
    Channel there_;
    Endpoint listener_{RDMA_PS_TCP, IBV_QPT_RC, here_};
    Endpoint other_{RDMA_PS_TCP, IBV_QPT_RC, here_};
};

TEST_F(RdmacmEventTest, AListenerHasRoomForAsManyRequestsAsItWants) {
    limit_requests(listener_, 2);
    EXPECT_EQ(find_room(listener_), &here_);
    (void)ask();
    EXPECT_EQ(find_room(listener_), &here_);
    (void)ask();
    EXPECT_EQ(find_room(listener_), nullptr);
    EXPECT_EQ(find_room(other_), &here_);
    migrate(listener_, there_);
    EXPECT_EQ(find_room(listener_), nullptr);
    EXPECT_NE(take_unseen(there_), nullptr);
    EXPECT_EQ(find_room(listener_), &there_);
    EXPECT_EQ(forget_events(other_).size(), 0U);
    EXPECT_EQ(forget_events(listener_).size(), 1U);
    EXPECT_EQ(listener_.events.waiting, 0U);
}

// Events of a request that the program has not taken move with it.
TEST_F(RdmacmEventTest, WhatIsToldOfARequestGoesWhereItsListenerGoes) {
    Endpoint& asked = ask();
    tell(std::make_unique<Event>(asked, RDMA_CM_EVENT_REJECTED, 0));
    tell(std::make_unique<Event>(other_, RDMA_CM_EVENT_ADDR_RESOLVED, 0));
    migrate(listener_, there_);
    EXPECT_EQ(asked.channel, &there_);
    ASSERT_EQ(there_.waiting.size(), 2U);
    EXPECT_EQ(there_.waiting.front()->to, &listener_);
    EXPECT_EQ(there_.waiting.back()->to, &asked);
    ASSERT_EQ(here_.waiting.size(), 1U);
    EXPECT_EQ(here_.waiting.front()->to, &other_);
    EXPECT_EQ(forget_events(asked).size(), 1U);
    EXPECT_EQ(forget_events(other_).size(), 1U);
}

// It was made before its listener moved, and is reported now.
TEST_F(RdmacmEventTest, ARequestIsToldWhereItsListenerIs) {
    migrate(listener_, there_);
    EXPECT_EQ(ask().channel, &there_);
    EXPECT_EQ(there_.waiting.size(), 1U);
}

}  // namespace
}  // namespace cairn::rdmacm
