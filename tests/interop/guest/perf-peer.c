// The other end of cairn-perf over librdmacm: its protocol of apps/perf/protocol.hpp, one kind of operation a run.
//
//     perf-peer serve ADDRESS PORT                         for one client; ends with it
//     perf-peer ask   ADDRESS PORT KIND BYTES COUNT        KIND: send write read cas fadd
//
// Exits with 0 if everything that it can see is correct.
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRegion = 16 << 20, kHalf = kRegion / 2, kDepth = 128, kMagic = 0x43504631, kPassMagic = 0x43505031 };
enum { kVersion = 2, kLast = 2 };
enum { kMemoryRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
static const uint64_t kOurPass = 0x7061737370617373, kAfter = 0x2222222222222222, kAdd = 0x0102030405060708;

struct Hello {
    uint32_t magic;
    uint8_t version, operation, test, flags;
    uint32_t bytes, slots, share, rkey;
    uint64_t address, pass;
};
struct Pass {
    uint32_t magic, reserved;
    uint64_t pass;
};
struct Answer {
    uint32_t magic, rkey;
    uint64_t address;
};

static const char* const kKinds[] = {"send", "write", "read", "cas", "fadd"};
static uint8_t* region;
static struct ibv_mr* memory;

#define CHECK(condition)                                                                            \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            fprintf(stderr, "perf-peer: line %d: %s is not so (%m)\n", __LINE__, #condition); \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

static struct rdma_cm_event* await_event(struct rdma_event_channel* channel, enum rdma_cm_event_type wanted) {
    struct rdma_cm_event* event = NULL;
    CHECK(rdma_get_cm_event(channel, &event) == 0);
    if (event->event != wanted) {
        fprintf(stderr, "perf-peer: %s instead of %s, status %d\n", rdma_event_str(event->event), rdma_event_str(wanted),
                event->status);
        exit(1);
    }
    return event;
}

static void prepare(struct rdma_cm_id* id) {
    struct ibv_qp_init_attr attributes = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = {kDepth, kDepth, 1, 1, 0}};
    CHECK(rdma_create_qp(id, NULL, &attributes) == 0);
    CHECK((region = calloc(1, kRegion)) != NULL);
    CHECK((memory = ibv_reg_mr(id->pd, region, kRegion, kMemoryRights)) != NULL);
}

static void post_receive(struct rdma_cm_id* id) {
    struct ibv_sge place = {(uintptr_t)region, kHalf, memory->lkey};
    struct ibv_recv_wr receive = {.sg_list = &place, .num_sge = 1}, *bad = NULL;
    CHECK(ibv_post_recv(id->qp, &receive, &bad) == 0);
}

static struct Pass read_pass(const struct rdma_cm_event* event) {
    struct Pass pass;
    CHECK(event->param.ud.private_data_len >= sizeof(pass));
    memcpy(&pass, event->param.ud.private_data, sizeof(pass));
    CHECK(be32toh(pass.magic) == kPassMagic);
    return pass;
}

// A client that asks by SIDR gets the pass that its hello has to show.
static void tell_pass(struct rdma_cm_event* event) {
    struct Pass pass = read_pass(event);
    pass.pass = htobe64(kOurPass);
    struct rdma_conn_param told = {.private_data = &pass, .private_data_len = sizeof(pass)};
    CHECK(rdma_accept(event->id, &told) == 0);
    rdma_ack_cm_event(event);
}

static void serve(struct rdma_event_channel* channel, struct rdma_cm_id* listener, struct sockaddr* address) {
    struct rdma_cm_id* passes = NULL;
    CHECK(rdma_create_id(channel, &passes, NULL, RDMA_PS_UDP) == 0);
    CHECK(rdma_bind_addr(passes, address) == 0 && rdma_listen(passes, 4) == 0);
    CHECK(rdma_listen(listener, 4) == 0);
    struct rdma_cm_event* event = await_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    for (; event->listen_id == passes; event = await_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST)) {
        tell_pass(event);
    }
    struct rdma_cm_id* id = event->id;
    struct Hello hello;
    CHECK(event->param.conn.private_data_len >= sizeof(hello));
    memcpy(&hello, event->param.conn.private_data, sizeof(hello));
    CHECK(be32toh(hello.magic) == kMagic && hello.version == kVersion && be64toh(hello.pass) == kOurPass);
    CHECK(be32toh(hello.share) <= kDepth / 2);
    prepare(id);
    const int receives = hello.operation == 0;
    for (uint32_t i = 0; receives && i < kDepth; ++i) {
        post_receive(id);
    }
    const struct Answer answer = {htobe32(kMagic), htobe32(memory->rkey), htobe64((uintptr_t)region)};
    struct rdma_conn_param accepted = {.private_data = &answer,
                                       .private_data_len = sizeof(answer),
                                       .responder_resources = event->param.conn.responder_resources,
                                       .initiator_depth = event->param.conn.initiator_depth,
                                       .rnr_retry_count = 7};
    rdma_ack_cm_event(event);
    CHECK(rdma_accept(id, &accepted) == 0);
    rdma_ack_cm_event(await_event(channel, RDMA_CM_EVENT_ESTABLISHED));
    CHECK(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
    struct ibv_wc done;
    while (rdma_get_cm_event(channel, &event) != 0) {
        while (ibv_poll_cq(id->recv_cq, 1, &done) == 1) {
            CHECK(done.status == IBV_WC_SUCCESS && done.byte_len == be32toh(hello.bytes));
            post_receive(id);
        }
    }
    CHECK(event->event == RDMA_CM_EVENT_DISCONNECTED);
    rdma_ack_cm_event(event);
    CHECK(rdma_disconnect(id) == 0);
}

static void run(struct rdma_cm_id* id, const struct Answer* remote, enum ibv_wr_opcode opcode, uint32_t at,
                uint32_t bytes, uint64_t compare_add) {
    struct ibv_sge place = {(uintptr_t)region + at, bytes, memory->lkey};
    struct ibv_send_wr request = {.sg_list = &place, .num_sge = bytes != 0, .opcode = opcode}, *bad = NULL;
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        request.wr.atomic.remote_addr = be64toh(remote->address);
        request.wr.atomic.rkey = be32toh(remote->rkey);
        request.wr.atomic.compare_add = compare_add;
        request.wr.atomic.swap = kAfter;
    } else {
        request.wr.rdma.remote_addr = be64toh(remote->address);
        request.wr.rdma.rkey = be32toh(remote->rkey);
    }
    CHECK(ibv_post_send(id->qp, &request, &bad) == 0);
    struct ibv_wc done;
    while (ibv_poll_cq(id->send_cq, 1, &done) == 0) {
    }
    if (done.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "perf-peer: %s\n", ibv_wc_status_str(done.status));
        exit(1);
    }
}

static uint64_t word_at(uint32_t at) {
    uint64_t word = 0;
    memcpy(&word, region + at, sizeof(word));
    return word;
}

static void work(struct rdma_cm_id* id, const struct Answer* remote, int kind, uint32_t bytes, uint32_t count) {
    for (uint32_t i = 0; i < bytes; ++i) {
        region[i] = (uint8_t)(i + (i >> 8));
    }
    if (kind >= 3) {
        run(id, remote, IBV_WR_RDMA_READ, kHalf, 8, 0);  // reads the current content
    }
    uint64_t word = word_at(kHalf);
    for (uint32_t i = 0; i < count; ++i) {
        if (kind == 0) {
            run(id, remote, IBV_WR_SEND, 0, bytes, 0);
        } else if (kind <= 2) {
            run(id, remote, IBV_WR_RDMA_WRITE, 0, bytes, 0);
            run(id, remote, IBV_WR_RDMA_READ, kHalf, bytes, 0);
            CHECK(memcmp(region, region + kHalf, bytes) == 0);
        } else {
            run(id, remote, kind == 3 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD, kHalf, 8,
                kind == 3 ? word : kAdd);
            CHECK(word_at(kHalf) == word);
            word = kind == 3 ? kAfter : word + kAdd;
        }
    }
}

static void resolve(struct rdma_event_channel* channel, struct rdma_cm_id* id, struct sockaddr* address) {
    CHECK(rdma_resolve_addr(id, NULL, address, 2000) == 0);
    rdma_ack_cm_event(await_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
    CHECK(rdma_resolve_route(id, 2000) == 0);
    rdma_ack_cm_event(await_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
}

static uint64_t ask_for_pass(struct rdma_event_channel* channel, struct sockaddr* address) {
    struct rdma_cm_id* id = NULL;
    CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP) == 0);
    resolve(channel, id, address);
    const struct Pass none = {htobe32(kPassMagic), 0, 0};
    struct rdma_conn_param question = {.private_data = &none, .private_data_len = sizeof(none)};
    CHECK(rdma_connect(id, &question) == 0);
    struct rdma_cm_event* event = await_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    const struct Pass pass = read_pass(event);
    rdma_ack_cm_event(event);
    CHECK(rdma_destroy_id(id) == 0);
    return be64toh(pass.pass);
}

static void ask(struct rdma_event_channel* channel, struct rdma_cm_id* id, struct sockaddr* address, char** rest) {
    int kind = 0;
    while (kind < 5 && strcmp(rest[0], kKinds[kind]) != 0) {
        ++kind;
    }
    const uint32_t bytes = (uint32_t)strtoul(rest[1], NULL, 0), count = (uint32_t)strtoul(rest[2], NULL, 0);
    CHECK(kind < 5 && bytes <= kHalf && count >= 1);
    const uint64_t pass = ask_for_pass(channel, address);
    resolve(channel, id, address);
    prepare(id);
    const struct Hello hello = {htobe32(kMagic), kVersion, (uint8_t)kind, 0, kLast, htobe32(bytes), htobe32(1),
                                htobe32(8),      htobe32(memory->rkey),           htobe64((uintptr_t)region), htobe64(pass)};
    struct rdma_conn_param wanted = {.private_data = &hello,
                                     .private_data_len = sizeof(hello),
                                     .responder_resources = 4,
                                     .initiator_depth = 4,
                                     .retry_count = 7,
                                     .rnr_retry_count = 7};
    CHECK(rdma_connect(id, &wanted) == 0);
    struct rdma_cm_event* event = await_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    struct Answer answer;
    CHECK(event->param.conn.private_data_len >= sizeof(answer));
    memcpy(&answer, event->param.conn.private_data, sizeof(answer));
    CHECK(be32toh(answer.magic) == kMagic);
    rdma_ack_cm_event(event);
    work(id, &answer, kind, bytes, count);
    CHECK(rdma_disconnect(id) == 0);
}

int main(int argc, char** argv) {
    const int serves = argc == 4 && strcmp(argv[1], "serve") == 0;
    if (!serves && !(argc == 7 && strcmp(argv[1], "ask") == 0)) {
        fprintf(stderr, "usage: see the head of perf-peer.c\n");
        return 2;
    }
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    CHECK(getaddrinfo(argv[2], argv[3], &hints, &found) == 0);
    struct rdma_event_channel* channel = rdma_create_event_channel();
    struct rdma_cm_id* id = NULL;
    CHECK(channel != NULL && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
    if (serves) {
        CHECK(rdma_bind_addr(id, found->ai_addr) == 0);
        serve(channel, id, found->ai_addr);
    } else {
        ask(channel, id, found->ai_addr, argv + 4);
    }
    return 0;
}
