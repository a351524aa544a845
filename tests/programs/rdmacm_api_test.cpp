// rdma_cm's API: refused calls, and ids without a connection.
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

#include "tests/programs/rdmacm_api.hpp"
#include "tests/support/sleeping_thread.hpp"

namespace rdmacm_test {
namespace {

TEST_F(RdmacmApiTest, WhatIsOutOfOrderIsRefused) {
    const IdPtr id = make();
    Address local(kLeft, 0);
    rdma_conn_param wanted{};
    EXPECT_FAILS(rdma_connect(id.get(), &wanted), EINVAL);
    EXPECT_FAILS(rdma_resolve_route(id.get(), 1000), EINVAL);
    EXPECT_FAILS(rdma_establish(id.get()), EINVAL);
    EXPECT_FAILS(rdma_reject(id.get(), nullptr, 0), EINVAL);
    EXPECT_FAILS(rdma_disconnect(id.get()), EINVAL);
    EXPECT_EQ(rdma_bind_addr(id.get(), local.get()), 0);
    EXPECT_FAILS(rdma_bind_addr(id.get(), local.get()), EINVAL);
    EXPECT_FAILS(rdma_accept(id.get(), &wanted), EINVAL);
    EXPECT_FAILS(rdma_notify(id.get(), IBV_EVENT_COMM_EST), EINVAL);
    EXPECT_FAILS(rdma_ack_cm_event(nullptr), EINVAL);
    rdma_cm_id* other = nullptr;
    EXPECT_FAILS(rdma_create_id(channel_.get(), &other, nullptr, static_cast<rdma_port_space>(7)), EINVAL);
}

TEST_F(RdmacmApiTest, AddressesThatNoDeviceHasAreRefused) {
    const IdPtr id = make();
    Address nobody("192.0.2.77", 0);  // an address for documentation (RFC 5737)
    Address no_device(kNoDevice, 0);
    sockaddr of_no_family{};
    testing::internal::CaptureStderr();
    EXPECT_FAILS(rdma_bind_addr(id.get(), nobody.get()), EADDRNOTAVAIL);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "it is no matter of devices";
    testing::internal::CaptureStderr();
    EXPECT_FAILS(rdma_bind_addr(id.get(), no_device.get()), ENODEV);
    EXPECT_FAILS(rdma_bind_addr(id.get(), no_device.get()), ENODEV);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "librdmacm (cairn): no device has the address " + kNoDevice +
                                                          "; CAIRN_DEVICES=" + getenv("CAIRN_DEVICES") +
                                                          ",cairn0=" + kNoDevice + " gives it one\n");
    EXPECT_FAILS(rdma_bind_addr(id.get(), &of_no_family), EINVAL);
    EXPECT_EQ(id->verbs, nullptr);
}

// Leaves no free descriptor in its scope.
class NoDescriptors {
public:
    NoDescriptors() {
        EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
        const int free = dup(STDIN_FILENO);
        EXPECT_EQ(close(free), 0);
        const rlimit none{static_cast<rlim_t>(free), before_.rlim_max};
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    NoDescriptors(const NoDescriptors&) = delete;
    NoDescriptors& operator=(const NoDescriptors&) = delete;
    ~NoDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

private:
    rlimit before_{};
};

TEST_F(RdmacmApiTest, ALackOfDescriptorsIsToldAsSuch) {
    const IdPtr first = listener(kLeft);
    const IdPtr second = make();
    Address same(kLeft, 0);
    Address remote(kRight, port_of(first));
    {
        const NoDescriptors left;
        EXPECT_FAILS(rdma_bind_addr(second.get(), same.get()), EMFILE);
        EXPECT_FAILS(rdma_resolve_addr(second.get(), same.get(), remote.get(), 1000), EMFILE);
    }
    EXPECT_EQ(rdma_bind_addr(second.get(), same.get()), 0);
}

TEST_F(RdmacmApiTest, APortIsTakenOnce) {
    const IdPtr first = listener(kLeft);
    EXPECT_NE(port_of(first), 0);
    EXPECT_NE(first->verbs, nullptr);
    IdPtr second = make();
    Address taken(kLeft, port_of(first));
    EXPECT_FAILS(rdma_bind_addr(second.get(), taken.get()), EADDRINUSE);
    Address elsewhere(kRight, port_of(first));
    EXPECT_EQ(rdma_bind_addr(second.get(), elsewhere.get()), 0);
}

TEST_F(RdmacmApiTest, OptionsAreJudged) {
    const IdPtr id = make();
    std::uint8_t byte = 32;
    int flag = 1;
    EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1), 0);
    EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &flag, sizeof(flag)), 0);
    EXPECT_FAILS(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &byte, 1), EINVAL);
    EXPECT_FAILS(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), EINVAL);
    byte = 31;
    EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), 0);
    EXPECT_FAILS(rdma_set_option(id.get(), RDMA_OPTION_ID, 99, &byte, 1), ENOSYS);
    EXPECT_FAILS(rdma_set_option(id.get(), 99, 0, &byte, 1), ENOSYS);
    EXPECT_FAILS(rdma_set_option(id.get(), RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &byte, 1), EINVAL);
}

TEST_F(RdmacmApiTest, AnEmptyChannelOfANonBlockingDescriptorIsEmpty) {
    ASSERT_EQ(fcntl(channel_->fd, F_SETFL, O_NONBLOCK), 0);
    rdma_cm_event* event = nullptr;
    EXPECT_FAILS(rdma_get_cm_event(channel_.get(), &event), EAGAIN);
    EXPECT_FAILS(rdma_get_cm_event(channel_.get(), nullptr), EINVAL);
}

TEST_F(RdmacmApiTest, NobodyListens) {
    const IdPtr gone = listener(kRight);
    const IdPtr client = resolved(kRight, port_of(gone) ^ 1);
    make_qp(client.get());
    ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
    expect(RDMA_CM_EVENT_REJECTED, 8);
}

TEST_F(RdmacmApiTest, PrivateDataThatDoNotFitAreRefused) {
    const IdPtr server = listener(kRight);
    const IdPtr client = resolved(kRight, port_of(server));
    make_qp(client.get());
    const std::array<char, 57> data{};
    rdma_conn_param wanted{};
    wanted.private_data = data.data();
    wanted.private_data_len = data.size();
    EXPECT_FAILS(rdma_connect(client.get(), &wanted), EINVAL);
    wanted.private_data_len = 56;
    wanted.initiator_depth = 17;
    EXPECT_FAILS(rdma_connect(client.get(), &wanted), EINVAL);
    wanted.initiator_depth = 1;
    EXPECT_EQ(rdma_connect(client.get(), &wanted), 0);
    const IdPtr asked = request(server);
    EXPECT_FAILS(rdma_reject(asked.get(), std::string(149, 'x').data(), 149), EINVAL);
    EXPECT_EQ(rdma_reject(asked.get(), nullptr, 0), 0);
    expect(RDMA_CM_EVENT_REJECTED, 28);
}

// As a kernel does it: the peer need not wait for an answer that never comes.
TEST_F(RdmacmApiTest, WhatCannotBeAcceptedIsRejected) {
    rdma_conn_param wanted{};
    const std::string data(0xff, 'x');
    wanted.private_data = data.data();
    for (const rdma_port_space space : {RDMA_PS_TCP, RDMA_PS_UDP}) {
        const IdPtr server = listener(kRight, space);
        const IdPtr client = resolved(kRight, port_of(server), space);
        wanted.private_data_len = 1;
        ASSERT_EQ(rdma_connect(client.get(), &wanted), 0);
        const IdPtr asked = request(server);
        const bool connects = space == RDMA_PS_TCP;
        wanted.private_data_len = connects ? 197 : 137;
        EXPECT_FAILS(rdma_accept(asked.get(), &wanted), EINVAL);
        expect(connects ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE, connects ? 28 : 2);
        wanted.private_data_len = 1;
        EXPECT_FAILS(rdma_accept(asked.get(), &wanted), EINVAL);
    }
}

TEST_F(RdmacmApiTest, AListenerOfAllAddressesIsReachedByEach) {
    const IdPtr server = make();
    ASSERT_EQ(rdma_listen(server.get(), 4), 0);
    EXPECT_EQ(server->verbs, nullptr);
    for (const std::string& to : {kLeft, kRight}) {
        const IdPtr client = resolved(to, port_of(server));
        make_qp(client.get());
        ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
        const IdPtr asked = request(server);
        EXPECT_EQ(inet_ntoa(asked->route.addr.src_sin.sin_addr), to);
        EXPECT_NE(asked->verbs, nullptr);
        EXPECT_EQ(rdma_reject(asked.get(), nullptr, 0), 0);
        expect(RDMA_CM_EVENT_REJECTED, 28);
    }
}

TEST_F(RdmacmApiTest, TheEndOfAnIdWaitsForItsEvents) {
    IdPtr id = make();
    Address destination(kRight, 1);
    ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, destination.get(), 1000), 0);
    rdma_cm_event* event = nullptr;
    ASSERT_EQ(rdma_get_cm_event(channel_.get(), &event), 0);
    std::atomic<bool> acknowledged{false};
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        acknowledged = true;
        rdma_ack_cm_event(event);
    });
    id.reset();
    EXPECT_TRUE(acknowledged);
    later.join();
}

TEST_F(RdmacmApiTest, AnIdMovesWithWhatItWasNotToldYet) {
    const IdPtr id = make();
    Address destination(kRight, 1);
    ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, destination.get(), 1000), 0);
    const ChannelPtr other(rdma_create_event_channel());
    ASSERT_EQ(rdma_migrate_id(id.get(), other.get()), 0);
    EXPECT_EQ(id->channel, other.get());
    {
        const Told told(other.get());
        EXPECT_EQ(told->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    }
    ASSERT_EQ(rdma_migrate_id(id.get(), channel_.get()), 0);
}

TEST_F(RdmacmApiTest, GroupsAreJoinedAndLeft) {
    const IdPtr id = make(RDMA_PS_UDP);
    Address local(kLeft, 0);
    Address group("239.7.7.7", 0);
    EXPECT_FAILS(rdma_join_multicast(id.get(), group.get(), nullptr), EINVAL);
    ASSERT_EQ(rdma_bind_addr(id.get(), local.get()), 0);
    EXPECT_FAILS(rdma_join_multicast(id.get(), local.get(), nullptr), EINVAL);
    make_qp(id.get(), IBV_QPT_UD);
    int context = 0;
    ASSERT_EQ(rdma_join_multicast(id.get(), group.get(), &context), 0);
    {
        const Told told(channel_.get());
        EXPECT_EQ(told->event, RDMA_CM_EVENT_MULTICAST_JOIN);
        EXPECT_EQ(told->param.ud.private_data, &context);
        EXPECT_EQ(told->param.ud.qp_num, 0xffffffU);
    }
    EXPECT_EQ(rdma_leave_multicast(id.get(), group.get()), 0);
    EXPECT_FAILS(rdma_leave_multicast(id.get(), group.get()), EADDRNOTAVAIL);
    rdma_cm_join_mc_attr_ex wanted{};
    EXPECT_FAILS(rdma_join_multicast_ex(id.get(), &wanted, nullptr), EINVAL);
    wanted.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
    EXPECT_FAILS(rdma_join_multicast_ex(id.get(), &wanted, nullptr), ENOTSUP);
}

TEST_F(RdmacmApiTest, AThreadThatWaitsForAnEventCanBeCancelled) {
    std::thread waits([this] {
        rdma_cm_event* event = nullptr;
        rdma_get_cm_event(channel_.get(), &event);
    });
    ASSERT_EQ(pthread_cancel(waits.native_handle()), 0);
    waits.join();
    const IdPtr id = make();
    Address destination(kRight, 1);
    ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, destination.get(), 1000), 0);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
}

// A program that has cancelled its thread may have destroyed the channel, too.
TEST_F(RdmacmApiTest, ACancelledThreadDoesNotLookAtItsChannel) {
    std::thread waits([] {
        rdma_cm_event* event = nullptr;
        pthread_cancel(pthread_self());
        rdma_get_cm_event(nullptr, &event);
    });
    waits.join();
}

// A thread that sleeps in the call is cancelled, and its program goes on.
TEST_F(RdmacmApiTest, AThreadThatSleepsForAnEventCanBeCancelled) {
    for (int i = 0; i < 20; ++i) {
        std::atomic<pid_t> thread{0};
        std::thread waits([this, &thread] {
            rdma_cm_event* event = nullptr;
            thread = gettid();
            rdma_get_cm_event(channel_.get(), &event);
        });
        cairn::test::await_sleep(thread);
        ASSERT_EQ(pthread_cancel(waits.native_handle()), 0);
        waits.join();
    }
}

// The event wakes the thread, and the thread that cancels it runs first: both share one CPU, which the woken thread
// gets last.
TEST_F(RdmacmApiTest, AThreadThatIsCancelledLeavesTheEventToOthers) {
    for (int i = 0; i < 10; ++i) {
        const IdPtr id = make();
        std::atomic<pid_t> thread{0};
        std::atomic<bool> has_one{false};
        std::thread waits([this, &thread, &has_one, cpu = sched_getcpu()] {
            cairn::test::be_last_on(cpu);
            rdma_cm_event* event = nullptr;
            thread = gettid();
            if (rdma_get_cm_event(channel_.get(), &event) == 0) {
                has_one = true;
                rdma_ack_cm_event(event);
            }
        });
        cairn::test::await_sleep(thread);
        Address destination(kRight, 1);
        ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, destination.get(), 1000), 0);
        ASSERT_EQ(pthread_cancel(waits.native_handle()), 0);
        waits.join();
        if (!has_one) {
            pollfd left{channel_->fd, POLLIN, 0};
            ASSERT_EQ(poll(&left, 1, 20'000), 1) << "round " << i;
            expect(RDMA_CM_EVENT_ADDR_RESOLVED);
        }
    }
}

// A thread with a pending cancellation takes turns of the engine, sends and reports events; it ends where it waits.
TEST_F(RdmacmApiTest, ACancelledThreadEndsInNoOtherCall) {
    const IdPtr server = listener(kRight);
    const IdPtr client = resolved(kRight, port_of(server));
    make_qp(client.get());
    std::atomic<bool> is_through{false};
    std::thread cancelled([&] {
        pthread_cancel(pthread_self());
        rdma_connect(client.get(), nullptr);
        ibv_wc done{};
        for (int polls = 0; polls < 100; ++polls) {
            ibv_poll_cq(client->send_cq, 1, &done);
        }
        is_through = true;
        rdma_cm_event* event = nullptr;
        rdma_get_cm_event(channel_.get(), &event);
    });
    cancelled.join();
    EXPECT_TRUE(is_through);
    const IdPtr asked = request(server);
    EXPECT_EQ(rdma_reject(asked.get(), nullptr, 0), 0);
    expect(RDMA_CM_EVENT_REJECTED, 28);
}

TEST_F(RdmacmApiTest, DevicesAreListed) {
    int count = 0;
    ibv_context** const devices = rdma_get_devices(&count);
    ASSERT_NE(devices, nullptr);
    ASSERT_EQ(count, 2);
    EXPECT_STREQ(ibv_get_device_name(devices[0]->device), "left");
    EXPECT_EQ(devices[2], nullptr);
    const IdPtr id = make();
    Address local(kRight, 0);
    ASSERT_EQ(rdma_bind_addr(id.get(), local.get()), 0);
    EXPECT_EQ(id->verbs, devices[1]);
    rdma_free_devices(devices);
}

}  // namespace
}  // namespace rdmacm_test
