// Work requests one at a time over librdmacm and libibverbs; tests/interop/peer/steps.cpp does the same over Cairn.
//
//     verbs-peer serve ADDRESS PORT                             for one client; ends with it
//     verbs-peer ask   ADDRESS PORT rc|uc KIND[:BYTES[:s]]...   in their order; s: a solicited event is asked for
//
// For each step the asker sends a message that names it. The server prepares memory and answers. The asker posts the
// work request and sends the message again. The server checks the effect and answers. Kinds of the asker: send send_imm
// send_inv write write_imm read cas cas_miss (compares with another value) fadd; window_write (through the server's
// memory window); dead_write (the same after its invalidation: refused, the last step). Kinds of the server: bind (its
// window), local_inv (the window again). libibverbs 44 and Linux 6.1 have no others for Soft-RoCE: its ATOMIC WRITE and
// FLUSH came with Linux 6.2.
//
// The ends of an unreliable connection exchange its numbers in the private data of a reliable one.
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kArea = 16384, kSlots = 4, kOutbox = (2 + kSlots) * kArea, kRegion = kOutbox + 4096, kDepth = 16 };
enum { kMagic = 0x56504631, kFirstPsn = 0xfffffe, kUntouched = 0xee };
enum { kQpRights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
enum { kMemoryRights = kQpRights | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND };
static const uint64_t kBefore = 0x1111111111111111, kAfter = 0x2222222222222222, kAdd = 0x0102030405060708;
static const uint32_t kImmediate = 0x12345600;

// Numbers are big-endian in all three.
struct Hello {  // private data of the request
    uint32_t magic, unreliable, qpn, psn;
};
struct Offer {  // private data of the answer
    uint32_t magic, rkey, qpn, psn;
    uint64_t address;
};
struct Message {
    char kind[16];
    uint32_t bytes, solicited, number;
    uint32_t key;  // the key of the server's window, in its answers
};

static const struct Kind {
    const char* name;
    enum ibv_wr_opcode opcode;
    enum ibv_wc_opcode done;
} kKinds[] = {{"send", IBV_WR_SEND, IBV_WC_SEND},
              {"send_imm", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
              {"send_inv", IBV_WR_SEND_WITH_INV, IBV_WC_SEND},
              {"write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
              {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
              {"read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
              {"cas", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
              {"cas_miss", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
              {"fadd", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
              {"window_write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
              {"dead_write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE}};

static struct rdma_event_channel* channel;
static struct rdma_cm_id* id;
static struct ibv_qp* qp;  // the queue pair of the steps: the connection's, or an unreliable one
static uint8_t* region;    // data, the result of a READ or atomic, slots of received messages, a message to send
static struct ibv_mr* memory;
static struct Message step;
static struct ibv_mw* window;
static uint32_t window_key;

#define CHECK(condition)                                                                                        \
    do {                                                                                                        \
        if (!(condition)) {                                                                                     \
            fprintf(stderr, "verbs-peer: line %d, %s:%u: %s is not so (%m)\n", __LINE__, step.kind,      \
                    be32toh(step.bytes), #condition);                                                           \
            exit(1);                                                                                            \
        }                                                                                                       \
    } while (0)

static int is(const char* kind) { return strcmp(step.kind, kind) == 0; }
static uint8_t pattern(uint32_t at) { return (uint8_t)(at + (at >> 8) + be32toh(step.number) * 37); }
static uint8_t* slot(uint64_t which) { return region + (2 + which) * kArea; }

// Returns whether `area` has the step's pattern, and nothing after it.
static int holds(const uint8_t* area, uint32_t bytes) {
    for (uint32_t i = 0; i < kArea; ++i) {
        if (area[i] != (i < bytes ? pattern(i) : kUntouched)) {
            return 0;
        }
    }
    return 1;
}

static void fill(uint8_t* area, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; ++i) {
        area[i] = pattern(i);
    }
}

static struct rdma_cm_event* await_event(enum rdma_cm_event_type wanted) {
    struct rdma_cm_event* event = NULL;
    CHECK(rdma_get_cm_event(channel, &event) == 0);
    if (event->event != wanted) {
        fprintf(stderr, "verbs-peer: %s instead of %s, status %d\n", rdma_event_str(event->event),
                rdma_event_str(wanted), event->status);
        exit(1);
    }
    return event;
}

static struct ibv_wc await_completion(struct ibv_cq* queue) {
    struct ibv_wc done;
    while (ibv_poll_cq(queue, 1, &done) == 0) {
    }
    return done;
}

static void expect_done(enum ibv_wc_opcode opcode) {
    const struct ibv_wc done = await_completion(id->send_cq);
    if (is("dead_write") && done.status == IBV_WC_WR_FLUSH_ERR) {
        return;  // the message arrived: the end of the connection came before its acknowledgement, which Cairn sends
                 // later
    }
    if (done.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "verbs-peer: %s:%u: %s\n", step.kind, be32toh(step.bytes), ibv_wc_status_str(done.status));
        exit(1);
    }
    CHECK(done.opcode == opcode);
}

static void post_receive(struct ibv_qp* to, uint64_t which) {
    struct ibv_sge place = {(uintptr_t)slot(which), kArea, memory->lkey};
    struct ibv_recv_wr receive = {.wr_id = which, .sg_list = &place, .num_sge = 1}, *bad = NULL;
    memset(slot(which), kUntouched, kArea);
    CHECK(ibv_post_recv(to, &receive, &bad) == 0);
}

static void post_receives(void) {
    for (uint64_t i = 0; i < kSlots; ++i) {
        post_receive(qp, i);
    }
}

static void tell(struct ibv_qp* to, struct Message message) {
    memcpy(region + kOutbox, &message, sizeof(message));
    struct ibv_sge place = {(uintptr_t)region + kOutbox, sizeof(message), memory->lkey};
    struct ibv_send_wr send = {.sg_list = &place, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
    CHECK(ibv_post_send(to, &send, &bad) == 0);
    expect_done(IBV_WC_SEND);
}

static struct Message take_message(const struct ibv_wc* done) {
    struct Message message;
    CHECK(done->status == IBV_WC_SUCCESS && done->opcode == IBV_WC_RECV && done->byte_len == sizeof(message));
    CHECK((done->wc_flags & IBV_WC_WITH_IMM) == 0);
    memcpy(&message, slot(done->wr_id), sizeof(message));
    post_receive(qp, done->wr_id);
    return message;
}

static void prepare(void) {
    struct ibv_qp_init_attr attributes = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {kDepth, kDepth, 1, 1, 0}};
    CHECK(rdma_create_qp(id, NULL, &attributes) == 0);
    CHECK((region = calloc(1, kRegion)) != NULL);
    CHECK((memory = ibv_reg_mr(id->pd, region, kRegion, kMemoryRights)) != NULL);
    qp = id->qp;
}

static void make_unreliable(void) {
    struct ibv_qp_init_attr attributes = {.send_cq = id->send_cq,
                                          .recv_cq = id->recv_cq,
                                          .qp_type = IBV_QPT_UC,
                                          .sq_sig_all = 1,
                                          .cap = {kDepth, kDepth, 1, 1, 0}};
    CHECK((qp = ibv_create_qp(id->pd, &attributes)) != NULL);
}

// Moves the unreliable queue pair to RTS, on the path of the reliable one.
static void bring_up(uint32_t remote_qpn, uint32_t remote_psn) {
    struct ibv_qp_attr way;
    struct ibv_qp_init_attr unused;
    CHECK(ibv_query_qp(id->qp, &way, IBV_QP_AV | IBV_QP_PATH_MTU, &unused) == 0);
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = id->port_num, .qp_access_flags = kQpRights};
    CHECK(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    to = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                              .ah_attr = way.ah_attr,
                              .path_mtu = way.path_mtu,
                              .dest_qp_num = remote_qpn,
                              .rq_psn = remote_psn};
    CHECK(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) == 0);
    to = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = kFirstPsn};
    CHECK(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

// --- The server ---

static void post_local(struct ibv_send_wr request, enum ibv_wc_opcode opcode) {
    struct ibv_send_wr* bad = NULL;
    CHECK(ibv_post_send(qp, &request, &bad) == 0);
    expect_done(opcode);
}

static void bind_window(void) {
    if (window == NULL) {
        CHECK((window = ibv_alloc_mw(id->pd, IBV_MW_TYPE_2)) != NULL);
    }
    window_key = ibv_inc_rkey(window->rkey);
    struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW};
    bind.bind_mw.mw = window;
    bind.bind_mw.rkey = window_key;
    bind.bind_mw.bind_info = (struct ibv_mw_bind_info){memory, (uintptr_t)region, kArea, IBV_ACCESS_REMOTE_WRITE};
    post_local(bind, IBV_WC_BIND_MW);
    window->rkey = window_key;  // libibverbs leaves this to the program
}

static void prepare_step(void) {
    memset(region, kUntouched, kArea);
    memcpy(region, &kBefore, strcmp(step.kind, "fadd") == 0 || strncmp(step.kind, "cas", 3) == 0 ? sizeof(kBefore) : 0);
    fill(region, is("read") ? be32toh(step.bytes) : 0);
    if (is("bind")) {
        bind_window();
    } else if (is("local_inv")) {
        post_local((struct ibv_send_wr){.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = window_key}, IBV_WC_LOCAL_INV);
    }
    CHECK(ibv_req_notify_cq(id->recv_cq, 1) == 0);
}

static int has_event(int milliseconds) {
    struct pollfd waiting = {.fd = id->recv_cq_channel->fd, .events = POLLIN};
    return poll(&waiting, 1, milliseconds) == 1;
}

// Checks the completion that the step's own work request caused in the receive queue.
static void check_received(const struct ibv_wc* done) {
    const int immediate = is("send_imm") || is("write_imm");
    const uint32_t bytes = be32toh(step.bytes);
    CHECK(done->status == IBV_WC_SUCCESS && done->byte_len == bytes);
    CHECK(done->opcode == (is("write_imm") ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
    CHECK(((done->wc_flags & IBV_WC_WITH_IMM) != 0) == immediate);
    CHECK(!immediate || ntohl(done->imm_data) == kImmediate + be32toh(step.number));
    // Soft-RoCE sets the kernel's flag for an invalidated key, not the library's.
    CHECK(!is("send_inv") || done->invalidated_rkey == window_key);
    CHECK(holds(slot(done->wr_id), is("write_imm") ? 0 : bytes));
    if (step.solicited != 0) {
        struct ibv_cq* queue = NULL;
        void* context = NULL;
        CHECK(has_event(1000) && ibv_get_cq_event(id->recv_cq_channel, &queue, &context) == 0);
        ibv_ack_cq_events(queue, 1);
    }
    post_receive(qp, done->wr_id);
}

static void check_memory(void) {
    uint64_t word = 0;
    memcpy(&word, region, sizeof(word));
    if (is("cas") || is("cas_miss") || is("fadd")) {
        CHECK(word == (is("cas") ? kAfter : is("fadd") ? kBefore + kAdd : kBefore));
        return;
    }
    const int written = is("write") || is("write_imm") || is("window_write") || is("read");
    CHECK(holds(region, written ? be32toh(step.bytes) : 0));
}

// Waits for a received message. Returns 0 if the asker has left.
static int await_received(struct ibv_wc* done) {
    struct rdma_cm_event* event = NULL;
    while (rdma_get_cm_event(channel, &event) != 0) {
        if (ibv_poll_cq(id->recv_cq, 1, done) == 1 && !(is("dead_write") && done->status == IBV_WC_WR_FLUSH_ERR)) {
            return 1;
        }
    }
    CHECK(event->event == RDMA_CM_EVENT_DISCONNECTED);
    rdma_ack_cm_event(event);
    return 0;
}

static void serve_steps(void) {
    struct ibv_wc done;
    while (await_received(&done)) {
        step = take_message(&done);
        prepare_step();
        step.key = htobe32(window_key);
        tell(qp, step);
        if (is("dead_write")) {
            continue;
        }
        if (strncmp(step.kind, "send", 4) == 0 || is("write_imm")) {
            CHECK(await_received(&done));
            check_received(&done);
        }
        CHECK(await_received(&done));
        take_message(&done);
        CHECK(!has_event(0));
        check_memory();
        tell(qp, step);
    }
    check_memory();
}

static void serve(struct rdma_cm_id* listener) {
    CHECK(rdma_listen(listener, 4) == 0);
    struct rdma_cm_event* event = await_event(RDMA_CM_EVENT_CONNECT_REQUEST);
    id = event->id;
    struct Hello hello;
    CHECK(event->param.conn.private_data_len >= sizeof(hello));
    memcpy(&hello, event->param.conn.private_data, sizeof(hello));
    CHECK(be32toh(hello.magic) == kMagic);
    prepare();
    if (hello.unreliable != 0) {
        make_unreliable();
    }
    const struct Offer offer = {htobe32(kMagic), htobe32(memory->rkey), htobe32(qp->qp_num), htobe32(kFirstPsn),
                                htobe64((uintptr_t)region)};
    struct rdma_conn_param accepted = {.private_data = &offer,
                                       .private_data_len = sizeof(offer),
                                       .responder_resources = event->param.conn.responder_resources,
                                       .initiator_depth = event->param.conn.initiator_depth,
                                       .rnr_retry_count = 7};
    rdma_ack_cm_event(event);
    CHECK(rdma_accept(id, &accepted) == 0);
    rdma_ack_cm_event(await_event(RDMA_CM_EVENT_ESTABLISHED));
    if (hello.unreliable != 0) {
        bring_up(be32toh(hello.qpn), be32toh(hello.psn));
    }
    post_receives();
    tell(id->qp, step);  // begin
    CHECK(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
    serve_steps();
    CHECK(rdma_disconnect(id) == 0);
}

// --- The asker ---

static void carry_out(const struct Kind* kind, const struct Offer* offer) {
    const int bears_word = kind->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || kind->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const int brings = bears_word || is("read");
    const uint32_t bytes = be32toh(step.bytes), key = be32toh(step.key);
    struct ibv_sge place = {(uintptr_t)region + (brings ? kArea : 0), bears_word ? 8 : bytes, memory->lkey};
    struct ibv_send_wr request = {.sg_list = &place,
                                  .num_sge = place.length != 0,
                                  .opcode = kind->opcode,
                                  .send_flags = step.solicited != 0 ? IBV_SEND_SOLICITED : 0},
                       *bad = NULL;
    memset(region, kUntouched, (size_t)2 * kArea);
    fill(region, brings ? 0 : bytes);
    if (is("send_inv")) {
        request.invalidate_rkey = key;
    } else {
        request.imm_data = htonl(kImmediate + be32toh(step.number));
    }
    if (bears_word) {
        request.wr.atomic.remote_addr = be64toh(offer->address);
        request.wr.atomic.rkey = be32toh(offer->rkey);
        request.wr.atomic.compare_add = is("fadd") ? kAdd : is("cas") ? kBefore : ~kBefore;
        request.wr.atomic.swap = kAfter;
    } else {
        request.wr.rdma.remote_addr = be64toh(offer->address);
        request.wr.rdma.rkey = is("window_write") || is("dead_write") ? key : be32toh(offer->rkey);
    }
    CHECK(ibv_post_send(qp, &request, &bad) == 0);
    if (is("dead_write")) {
        CHECK(await_completion(id->send_cq).status == IBV_WC_REM_ACCESS_ERR);
        return;
    }
    expect_done(kind->done);
    CHECK(!is("read") || holds(region + kArea, bytes));
    CHECK(!bears_word || memcmp(region + kArea, &kBefore, sizeof(kBefore)) == 0);
}

static void ask_step(const char* text, uint32_t number, const struct Offer* offer) {
    char flag = 0;
    unsigned bytes = 0;
    struct Message wanted = {.number = htobe32(number)};
    CHECK(sscanf(text, "%15[a-z_]:%u:%c", wanted.kind, &bytes, &flag) >= 1 && bytes < kArea);
    wanted.bytes = htobe32(bytes);
    wanted.solicited = htobe32(flag == 's');
    tell(qp, wanted);
    struct ibv_wc done = await_completion(id->recv_cq);
    step = take_message(&done);
    for (size_t i = 0; i < sizeof(kKinds) / sizeof(kKinds[0]); ++i) {
        if (is(kKinds[i].name)) {
            carry_out(&kKinds[i], offer);
        }
    }
    if (!is("dead_write")) {
        tell(qp, step);
        done = await_completion(id->recv_cq);
        take_message(&done);
    }
}

static void ask(struct sockaddr* address, int unreliable, char** steps) {
    CHECK(rdma_resolve_addr(id, NULL, address, 2000) == 0);
    rdma_ack_cm_event(await_event(RDMA_CM_EVENT_ADDR_RESOLVED));
    CHECK(rdma_resolve_route(id, 2000) == 0);
    rdma_ack_cm_event(await_event(RDMA_CM_EVENT_ROUTE_RESOLVED));
    prepare();
    post_receive(id->qp, 0);
    if (unreliable) {
        make_unreliable();
    }
    const struct Hello hello = {htobe32(kMagic), htobe32((uint32_t)unreliable), htobe32(qp->qp_num),
                                htobe32(kFirstPsn)};
    struct rdma_conn_param wanted = {.private_data = &hello,
                                     .private_data_len = sizeof(hello),
                                     .responder_resources = 4,
                                     .initiator_depth = 4,
                                     .retry_count = 7,
                                     .rnr_retry_count = 7};
    CHECK(rdma_connect(id, &wanted) == 0);
    struct rdma_cm_event* event = await_event(RDMA_CM_EVENT_ESTABLISHED);
    struct Offer offer;
    CHECK(event->param.conn.private_data_len >= sizeof(offer));
    memcpy(&offer, event->param.conn.private_data, sizeof(offer));
    CHECK(be32toh(offer.magic) == kMagic);
    rdma_ack_cm_event(event);
    if (unreliable) {
        bring_up(be32toh(offer.qpn), be32toh(offer.psn));
    }
    for (uint64_t i = 1; i < kSlots; ++i) {
        post_receive(qp, i);
    }
    const struct ibv_wc begin = await_completion(id->recv_cq);
    take_message(&begin);
    for (uint32_t i = 0; steps[i] != NULL; ++i) {
        ask_step(steps[i], i, &offer);
    }
    CHECK(rdma_disconnect(id) == 0);
    rdma_ack_cm_event(await_event(RDMA_CM_EVENT_DISCONNECTED));
}

int main(int argc, char** argv) {
    const int serves = argc == 4 && strcmp(argv[1], "serve") == 0;
    if (!serves && !(argc > 5 && strcmp(argv[1], "ask") == 0)) {
        fprintf(stderr, "usage: see the head of verbs-peer.c\n");
        return 2;
    }
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    CHECK(getaddrinfo(argv[2], argv[3], &hints, &found) == 0);
    CHECK((channel = rdma_create_event_channel()) != NULL);
    CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
    if (serves) {
        CHECK(rdma_bind_addr(id, found->ai_addr) == 0);
        serve(id);
    } else {
        ask(found->ai_addr, strcmp(argv[4], "uc") == 0, argv + 5);
    }
    return 0;
}
