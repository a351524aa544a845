// rdma_cm's API: connections, and their ends from either side.
#include <sys/time.h>

#include "tests/programs/rdmacm_api.hpp"

namespace rdmacm_test {
namespace {

// Another process, started by a test below: it connects and exits without notice.
TEST_F(RdmacmApiTest, DISABLED_PeerThatExits) {
    const char* const to = std::getenv("RDMACM_TEST_TO");
    const char* const port = std::getenv("RDMACM_TEST_PORT");
    ASSERT_TRUE(to != nullptr && port != nullptr);
    IdPtr id = make();
    Address destination(to, std::atoi(port));
    ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, destination.get(), 1000), 0);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(rdma_resolve_route(id.get(), 1000), 0);
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_qp(id.get());
    ASSERT_EQ(rdma_connect(id.get(), nullptr), 0);
    expect(RDMA_CM_EVENT_ESTABLISHED);
    std::exit(0);
}

TEST_F(RdmacmApiTest, AProgramThatExitsTakesLeave) {
    const IdPtr server = listener(kRight);
    const pid_t peer = start_peer("PeerThatExits", "peer=" + kNoDevice, kRight, port_of(server));
    const IdPtr asked = request(server);
    make_qp(asked.get());
    ASSERT_EQ(rdma_accept(asked.get(), nullptr), 0);
    expect(RDMA_CM_EVENT_ESTABLISHED);
    int status = 1;
    ASSERT_EQ(waitpid(peer, &status, 0), peer);
    EXPECT_EQ(status, 0);
    expect(RDMA_CM_EVENT_DISCONNECTED);
}

// As the peer above, but a signal ends it, mostly during a turn.
TEST_F(RdmacmApiTest, DISABLED_PollerThatASignalEnds) {
    const char* const at = std::getenv("RDMACM_TEST_AT");
    ASSERT_NE(at, nullptr);
    const IdPtr server = listener(at);
    ibv_cq* const queue = ibv_create_cq(server->verbs, 4, nullptr, nullptr, 0);
    ASSERT_NE(queue, nullptr);
    alarm(30);
    signal(SIGVTALRM, [](int) { std::exit(0); });
    const itimerval soon{{0, 0}, {0, 20'000}};
    ASSERT_EQ(setitimer(ITIMER_VIRTUAL, &soon, nullptr), 0);
    ibv_wc none{};
    while (ibv_poll_cq(queue, 1, &none) == 0) {
    }
}

TEST_F(RdmacmApiTest, AProgramThatExitsInASignalHandlerExits) {
    for (int i = 0; i < 3; ++i) {
        const pid_t program = fork();
        if (program == 0) {
            setenv("CAIRN_DEVICES", ("peer=" + kNoDevice).c_str(), 1);
            setenv("RDMACM_TEST_AT", kNoDevice.c_str(), 1);
            execl("/proc/self/exe", "program", "--gtest_also_run_disabled_tests",
                  "--gtest_filter=*PollerThatASignalEnds", nullptr);
            _exit(1);
        }
        int status = 1;
        ASSERT_EQ(waitpid(program, &status, 0), program);
        EXPECT_EQ(status, 0);
    }
}

// The events of both ends, with private data, until the connection has been forgotten.
TEST_F(RdmacmApiTest, AConnectionIsMadeAndEnds) {
    const IdPtr server = listener(kRight);
    const IdPtr client = resolved(kRight, port_of(server));
    make_qp(client.get());
    rdma_conn_param wanted{};
    wanted.private_data = "question";
    wanted.private_data_len = 9;
    wanted.initiator_depth = 3;
    wanted.responder_resources = 5;
    wanted.retry_count = 6;
    ASSERT_EQ(rdma_connect(client.get(), &wanted), 0);
    IdPtr asked;
    {
        const Told told(channel_.get());
        ASSERT_EQ(told->event, RDMA_CM_EVENT_CONNECT_REQUEST);
        asked.reset(told->id);
        EXPECT_EQ(told.text(), "question");
        EXPECT_EQ(told->param.conn.private_data_len, 56);
        EXPECT_EQ(told->param.conn.initiator_depth, 5);
        EXPECT_EQ(told->param.conn.responder_resources, 3);
        EXPECT_EQ(told->param.conn.retry_count, 6);
        EXPECT_EQ(told->param.conn.qp_num, client->qp->qp_num);
        EXPECT_EQ(rdma_get_dst_port(asked.get()), rdma_get_src_port(client.get()));
        EXPECT_EQ(rdma_get_src_port(asked.get()), rdma_get_src_port(server.get()));
        EXPECT_EQ(asked->route.num_paths, 1);
    }
    make_qp(asked.get());
    rdma_conn_param answer{};
    answer.private_data = "answer";
    answer.private_data_len = 7;
    answer.initiator_depth = 2;
    answer.responder_resources = 2;
    ASSERT_EQ(rdma_accept(asked.get(), &answer), 0);
    {
        const Told told(channel_.get());
        ASSERT_EQ(told->event, RDMA_CM_EVENT_ESTABLISHED) << rdma_event_str(told->event);
        EXPECT_EQ(told->id, client.get());
        EXPECT_EQ(told.text(), "answer");
        EXPECT_EQ(told->param.conn.private_data_len, 196);
    }
    {
        const Told told(channel_.get());
        EXPECT_EQ(told->event, RDMA_CM_EVENT_ESTABLISHED);
        EXPECT_EQ(told->id, asked.get());
    }
    EXPECT_EQ(client->qp->state, IBV_QPS_RTS);
    ASSERT_EQ(rdma_disconnect(client.get()), 0);
    EXPECT_EQ(client->qp->state, IBV_QPS_ERR);
    {
        const Told told(channel_.get());
        EXPECT_EQ(told->event, RDMA_CM_EVENT_DISCONNECTED);
        EXPECT_EQ(told->id, asked.get());
    }
    ASSERT_EQ(rdma_disconnect(asked.get()), 0);
    expect(RDMA_CM_EVENT_DISCONNECTED);
    expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
    expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
    EXPECT_EQ(rdma_disconnect(client.get()), 0);
}

TEST_F(RdmacmApiTest, ARefusalSaysWhy) {
    const IdPtr server = listener(kRight);
    const IdPtr client = resolved(kRight, port_of(server));
    make_qp(client.get());
    ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
    const IdPtr asked = request(server);
    ASSERT_EQ(rdma_reject(asked.get(), "no", 3), 0);
    const Told told(channel_.get());
    EXPECT_EQ(told->event, RDMA_CM_EVENT_REJECTED);
    EXPECT_EQ(told->status, 28);
    EXPECT_EQ(told.text(), "no");
    EXPECT_EQ(client->qp->state, IBV_QPS_ERR);
}

TEST_F(RdmacmApiTest, ARequestThatNobodyTookIsRefusedByTheEndOfItsListener) {
    const ChannelPtr other(rdma_create_event_channel());
    rdma_cm_id* server = nullptr;
    ASSERT_EQ(rdma_create_id(other.get(), &server, nullptr, RDMA_PS_TCP), 0);
    Address address(kRight, 0);
    ASSERT_EQ(rdma_bind_addr(server, address.get()), 0);
    ASSERT_EQ(rdma_listen(server, 0), 0);
    const IdPtr client = resolved(kRight, ntohs(rdma_get_src_port(server)));
    make_qp(client.get());
    ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
    pollfd shown{other->fd, POLLIN, 0};
    ASSERT_EQ(poll(&shown, 1, -1), 1);
    EXPECT_EQ(rdma_destroy_id(server), 0);
    expect(RDMA_CM_EVENT_REJECTED, 28);
    ASSERT_EQ(fcntl(other->fd, F_SETFL, O_NONBLOCK), 0);
    rdma_cm_event* event = nullptr;
    EXPECT_FAILS(rdma_get_cm_event(other.get(), &event), EAGAIN);
}

// Queue pairs of the program's own: the library returns their attributes, and the program modifies them.
TEST_F(RdmacmApiTest, AProgramHasQueuePairsOfItsOwn) {
    const IdPtr server = listener(kRight);
    const IdPtr client = resolved(kRight, port_of(server));
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = IBV_QPS_RTR;
    EXPECT_FAILS(rdma_init_qp_attr(client.get(), &attributes, &mask), EINVAL);
    rdma_conn_param wanted{};
    EXPECT_FAILS(rdma_connect(client.get(), nullptr), EINVAL);
    wanted.qp_num = 77;
    wanted.initiator_depth = 1;
    wanted.responder_resources = 1;
    ASSERT_EQ(rdma_connect(client.get(), &wanted), 0);
    const IdPtr asked = request(server);
    wanted.qp_num = 78;
    ASSERT_EQ(rdma_accept(asked.get(), &wanted), 0);
    {
        const Told told(channel_.get());
        ASSERT_EQ(told->event, RDMA_CM_EVENT_CONNECT_RESPONSE) << rdma_event_str(told->event);
        EXPECT_EQ(told->param.conn.qp_num, 78U);
    }
    attributes.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(rdma_init_qp_attr(client.get(), &attributes, &mask), 0);
    EXPECT_EQ(attributes.dest_qp_num, 78U);
    EXPECT_EQ(mask & IBV_QP_DEST_QPN, IBV_QP_DEST_QPN);
    EXPECT_EQ(attributes.ah_attr.is_global, 1);
    attributes.qp_state = IBV_QPS_RTR;
    ibv_qp_attr theirs{};
    theirs.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(rdma_init_qp_attr(asked.get(), &theirs, &mask), 0);
    EXPECT_EQ(theirs.sq_psn, attributes.rq_psn);
    EXPECT_EQ(theirs.timeout, 19) << "a kernel's: the peer may be stopped for a while";
    EXPECT_EQ(rdma_establish(client.get()), 0);
    EXPECT_FAILS(rdma_establish(client.get()), EINVAL);
    expect(RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_FAILS(rdma_notify(asked.get(), IBV_EVENT_COMM_EST), EISCONN);
}

TEST_F(RdmacmApiTest, DatagramsAreFoundByTheirService) {
    const IdPtr server = listener(kRight, RDMA_PS_UDP);
    const IdPtr client = resolved(kRight, port_of(server), RDMA_PS_UDP);
    make_qp(client.get(), IBV_QPT_UD);
    EXPECT_EQ(client->qp->state, IBV_QPS_RTS);
    rdma_conn_param wanted{};
    wanted.private_data = "who";
    wanted.private_data_len = 4;
    ASSERT_EQ(rdma_connect(client.get(), &wanted), 0);
    IdPtr asked;
    {
        const Told told(channel_.get());
        ASSERT_EQ(told->event, RDMA_CM_EVENT_CONNECT_REQUEST);
        asked.reset(told->id);
        EXPECT_EQ(told->param.ud.private_data_len, 180);
        EXPECT_STREQ(static_cast<const char*>(told->param.ud.private_data), "who");
    }
    make_qp(asked.get(), IBV_QPT_UD);
    ASSERT_EQ(rdma_accept(asked.get(), nullptr), 0);
    const Told told(channel_.get());
    EXPECT_EQ(told->event, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(told->param.ud.qp_num, asked->qp->qp_num);
    EXPECT_EQ(told->param.ud.qkey, static_cast<std::uint32_t>(RDMA_UDP_QKEY));
    ibv_ah* const way = ibv_create_ah(client->pd, &told->param.ud.ah_attr);
    ASSERT_NE(way, nullptr);
    EXPECT_EQ(ibv_destroy_ah(way), 0);
}

// Programs end a listener and make the next one at the same port while peers connect.
TEST_F(RdmacmApiTest, TheNextListenerOfAPortGetsWhatCameInBetween) {
    for (const rdma_port_space space : {RDMA_PS_TCP, RDMA_PS_UDP}) {
        IdPtr first = listener(kRight, space);
        const int port = port_of(first);
        first.reset();
        const IdPtr client = resolved(kRight, port, space);
        rdma_conn_param wanted{};
        ASSERT_EQ(rdma_connect(client.get(), &wanted), 0);
        const IdPtr second = make(space);
        Address address(kRight, port);
        ASSERT_EQ(rdma_bind_addr(second.get(), address.get()), 0);
        ASSERT_EQ(rdma_listen(second.get(), 1), 0);
        const IdPtr asked = request(second);
        ASSERT_EQ(rdma_reject(asked.get(), nullptr, 0), 0);
        expect(space == RDMA_PS_TCP ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE,
               space == RDMA_PS_TCP ? 28 : 2);
    }
}

TEST_F(RdmacmApiTest, APortWithoutANextListenerRefusesALittleLater) {
    IdPtr first = listener(kRight);
    const int port = port_of(first);
    first.reset();
    const IdPtr client = resolved(kRight, port);
    rdma_conn_param wanted{};
    ASSERT_EQ(rdma_connect(client.get(), &wanted), 0);
    expect(RDMA_CM_EVENT_REJECTED, 8);
}

TEST_F(RdmacmApiTest, ARefusedQuestionForDatagramsIsUnreachable) {
    const IdPtr server = listener(kRight, RDMA_PS_UDP);
    const IdPtr client = resolved(kRight, port_of(server), RDMA_PS_UDP);
    ASSERT_EQ(rdma_connect(client.get(), nullptr), 0);
    const IdPtr asked = request(server);
    ASSERT_EQ(rdma_reject(asked.get(), nullptr, 0), 0);
    expect(RDMA_CM_EVENT_UNREACHABLE, 2);
    const IdPtr other = resolved(kRight, port_of(server) ^ 1, RDMA_PS_UDP);
    ASSERT_EQ(rdma_connect(other.get(), nullptr), 0);
    expect(RDMA_CM_EVENT_UNREACHABLE, 1);
}

// Calls of synchronous ids wait for their events: both ends, with a message in each direction.
TEST_F(RdmacmApiTest, SynchronousIdsExchangeMessages) {
    rdma_addrinfo hints{};
    hints.ai_port_space = RDMA_PS_TCP;
    hints.ai_flags = RAI_PASSIVE;
    rdma_addrinfo* found = nullptr;
    const std::string port = std::to_string(20000 + getpid() % 10000);
    ASSERT_EQ(rdma_getaddrinfo(kRight.c_str(), port.c_str(), &hints, &found), 0);
    ibv_qp_init_attr wanted{};
    wanted.cap = {4, 4, 1, 1, 16};
    wanted.sq_sig_all = 1;
    rdma_cm_id* server = nullptr;
    ASSERT_EQ(rdma_create_ep(&server, found, nullptr, &wanted), 0);
    rdma_freeaddrinfo(found);
    ASSERT_EQ(rdma_listen(server, 1), 0);
    std::thread other([server] {
        std::array<char, 16> bytes{};
        rdma_cm_id* id = nullptr;
        ASSERT_EQ(rdma_get_request(server, &id), 0);
        ibv_mr* const memory = rdma_reg_msgs(id, bytes.data(), bytes.size());
        ASSERT_EQ(rdma_post_recv(id, nullptr, bytes.data(), bytes.size(), memory), 0);
        ASSERT_EQ(rdma_accept(id, nullptr), 0);
        ibv_wc done{};
        ASSERT_EQ(rdma_get_recv_comp(id, &done), 1);
        EXPECT_STREQ(bytes.data(), "ping");
        ASSERT_EQ(rdma_post_send(id, nullptr, bytes.data(), bytes.size(), memory, 0), 0);
        ASSERT_EQ(rdma_get_send_comp(id, &done), 1);
        EXPECT_EQ(rdma_disconnect(id), 0);
        rdma_dereg_mr(memory);
        rdma_destroy_ep(id);
    });
    hints.ai_flags = 0;
    ASSERT_EQ(rdma_getaddrinfo(kRight.c_str(), port.c_str(), &hints, &found), 0);
    rdma_cm_id* client = nullptr;
    ASSERT_EQ(rdma_create_ep(&client, found, nullptr, &wanted), 0);
    rdma_freeaddrinfo(found);
    std::array<char, 16> bytes{"ping"};
    std::array<char, 16> back{};
    ibv_mr* const memory = rdma_reg_msgs(client, bytes.data(), bytes.size());
    ibv_mr* const back_memory = rdma_reg_msgs(client, back.data(), back.size());
    ASSERT_EQ(rdma_post_recv(client, nullptr, back.data(), back.size(), back_memory), 0);
    ASSERT_EQ(rdma_connect(client, nullptr), 0);
    ASSERT_EQ(rdma_post_send(client, nullptr, bytes.data(), bytes.size(), memory, IBV_SEND_INLINE), 0);
    ibv_wc done{};
    ASSERT_EQ(rdma_get_recv_comp(client, &done), 1);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_STREQ(back.data(), "ping");
    EXPECT_EQ(rdma_disconnect(client), 0);
    other.join();
    rdma_dereg_mr(memory);
    rdma_dereg_mr(back_memory);
    rdma_destroy_ep(client);
    rdma_destroy_ep(server);
}

}  // namespace
}  // namespace rdmacm_test
