// rdma_cm's API: requests that the program has not taken or accepted yet, and their early ends.
#include "tests/programs/rdmacm_api.hpp"

namespace rdmacm_test {
namespace {

// Requests arrive on a channel of the listener's own.
class RdmacmRequestsTest : public RdmacmApiTest {
protected:
    RdmacmRequestsTest() : asked_(rdma_create_event_channel()) { EXPECT_EQ(fcntl(asked_->fd, F_SETFL, O_NONBLOCK), 0); }

    [[nodiscard]] IdPtr serve(rdma_port_space space, int backlog) const {
        rdma_cm_id* id = nullptr;
        EXPECT_EQ(rdma_create_id(asked_.get(), &id, nullptr, space), 0);
        Address address(kRight, 0);
        EXPECT_EQ(rdma_bind_addr(id, address.get()), 0);
        EXPECT_EQ(rdma_listen(id, backlog), 0);
        return IdPtr(id);
    }
    [[nodiscard]] IdPtr ask(const IdPtr& server, rdma_port_space space = RDMA_PS_TCP) const {
        IdPtr id = resolved(kRight, port_of(server), space);
        rdma_conn_param wanted{};
        EXPECT_EQ(rdma_connect(id.get(), &wanted), 0);
        return id;
    }
    void await_request() const {
        pollfd shown{asked_->fd, POLLIN, 0};
        ASSERT_EQ(poll(&shown, 1, -1), 1);
    }
    // Waits until earlier messages have come: messages of a peer come in order.
    void await_what_was_sent() const {
        const IdPtr server = listener(kRight);
        const IdPtr client = ask(server);
        const IdPtr last = request(server);
        ASSERT_EQ(rdma_reject(last.get(), nullptr, 0), 0);
        expect(RDMA_CM_EVENT_REJECTED, 28);
    }
    // Returns the id of the next request, or nullptr if none waits.
    [[nodiscard]] IdPtr take_request() const {
        rdma_cm_event* event = nullptr;
        if (rdma_get_cm_event(asked_.get(), &event) != 0) {
            EXPECT_EQ(errno, EAGAIN);
            return nullptr;
        }
        EXPECT_EQ(event->event, RDMA_CM_EVENT_CONNECT_REQUEST) << rdma_event_str(event->event);
        IdPtr id(event->id);
        EXPECT_EQ(rdma_ack_cm_event(event), 0);
        return id;
    }

    // Refuses the next request. Its peer, an id of `channel_`, gets the event.
    void refuse_next(rdma_port_space space) const {
        await_request();
        const IdPtr asked = take_request();
        ASSERT_EQ(rdma_reject(asked.get(), nullptr, 0), 0);
        const bool connects = space == RDMA_PS_TCP;
        expect(connects ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE, connects ? 28 : 2);
    }

    const ChannelPtr asked_;
};

TEST_F(RdmacmRequestsTest, NoMoreRequestsWaitForAProgramThanItsBacklog) {
    constexpr int kBacklog = 3;
    for (const rdma_port_space space : {RDMA_PS_TCP, RDMA_PS_UDP}) {
        const IdPtr server = serve(space, kBacklog);
        for (int i = 0; i < 10 * kBacklog; ++i) {
            const IdPtr ends = ask(server, space);
        }
        await_what_was_sent();
        for (int i = 0; i < kBacklog; ++i) {
            EXPECT_NE(take_request(), nullptr);
        }
        EXPECT_EQ(take_request(), nullptr);
        const IdPtr client = ask(server, space);
        refuse_next(space);
    }
}

// The request is ignored, and its peer asks again.
TEST_F(RdmacmRequestsTest, ARequestBeyondTheBacklogIsTakenLater) {
    for (const rdma_port_space space : {RDMA_PS_TCP, RDMA_PS_UDP}) {
        const IdPtr server = serve(space, 1);
        { const IdPtr ends = ask(server, space); }
        const IdPtr client = ask(server, space);
        await_what_was_sent();
        EXPECT_NE(take_request(), nullptr);
        EXPECT_EQ(take_request(), nullptr);
        refuse_next(space);
    }
}

// The kernel reports no event for an id that the program has not accepted.
TEST_F(RdmacmRequestsTest, TheEndOfARequestIsToldByAccept) {
    for (const bool is_taken : {false, true}) {
        const IdPtr server = serve(RDMA_PS_TCP, 1);
        IdPtr client = ask(server);
        await_request();
        IdPtr asked = is_taken ? take_request() : nullptr;
        client.reset();
        await_what_was_sent();
        if (!is_taken) {
            asked = take_request();
        }
        EXPECT_EQ(take_request(), nullptr);
        make_qp(asked.get());
        EXPECT_FAILS(rdma_accept(asked.get(), nullptr), EINVAL);
        EXPECT_FAILS(rdma_reject(asked.get(), nullptr, 0), EINVAL);
        EXPECT_EQ(take_request(), nullptr);
    }
}

TEST_F(RdmacmRequestsTest, AListenerThatMovesTakesItsRequestsAlong) {
    const IdPtr server = serve(RDMA_PS_TCP, 2);
    IdPtr client = ask(server);
    await_request();
    client.reset();
    await_what_was_sent();
    const ChannelPtr other(rdma_create_event_channel());
    ASSERT_EQ(rdma_migrate_id(server.get(), other.get()), 0);
    EXPECT_EQ(take_request(), nullptr);
    {
        const Told told(other.get());
        ASSERT_EQ(told->event, RDMA_CM_EVENT_CONNECT_REQUEST) << rdma_event_str(told->event);
        EXPECT_EQ(told->id->channel, other.get());
        EXPECT_EQ(rdma_destroy_id(told->id), 0);
    }
    EXPECT_EQ(take_request(), nullptr);
}

}  // namespace
}  // namespace rdmacm_test
