// Posts one kind of work request over librdmacm, or serves who does; tests/interop/peer does the same over Cairn.
//
//     post serve ADDRESS PORT KIND BYTES COUNT      waits for one connection; ends with it
//     post ask   ADDRESS PORT KIND BYTES COUNT
//
// KIND: send send_imm send_inv write write_imm read cas fadd. The server's private data tell address, rkey and a key
// to invalidate, big-endian. Each end checks what it can see and exits with 0 when all of it is right.
#include <arpa/inet.h>
#include <endian.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRegion = 1 << 20, kDepth = 64 };
static const uint64_t kBefore = 0x1111111111111111, kAfter = 0x2222222222222222, kAdd = 0x0102030405060708;
static const uint32_t kImmediate = 0x12345678;

struct Offer {
    uint64_t address;
    uint32_t rkey;
    uint32_t key_to_invalidate;
};

static const char* kind;
static uint32_t bytes, count;
static uint8_t* region;
static struct ibv_mr* memory;

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "post: line %d: %s is not so (%m)\n", __LINE__, #condition); \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

static int is(const char* name) { return strcmp(kind, name) == 0; }
static int starts(const char* name) { return strncmp(kind, name, strlen(name)) == 0; }
static uint8_t pattern(uint32_t i) { return (uint8_t)(i + (i >> 8)); }
static int is_pattern(const uint8_t* at) {
    for (uint32_t i = 0; i < bytes; ++i) {
        if (at[i] != pattern(i)) {
            return 0;
        }
    }
    return 1;
}
static int is_atomic(void) { return is("cas") || is("fadd"); }

static struct rdma_cm_event* await_event(struct rdma_event_channel* channel, enum rdma_cm_event_type wanted) {
    struct rdma_cm_event* event = NULL;
    CHECK(rdma_get_cm_event(channel, &event) == 0);
    if (event->event != wanted) {
        fprintf(stderr, "post: %s instead of %s, status %d\n", rdma_event_str(event->event), rdma_event_str(wanted),
                event->status);
        exit(1);
    }
    return event;
}

static void prepare(struct rdma_cm_id* id, int fill) {
    struct ibv_qp_init_attr attributes = {.qp_type = IBV_QPT_RC,
                                          .sq_sig_all = 1,
                                          .cap = {kDepth, kDepth, 1, 1, 0}};
    CHECK(rdma_create_qp(id, NULL, &attributes) == 0);
    CHECK((region = calloc(1, kRegion)) != NULL);
    memory = ibv_reg_mr(id->pd, region, kRegion,
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                            IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    CHECK(memory != NULL);
    for (uint32_t i = 0; fill && i < bytes; ++i) {
        region[i] = pattern(i);
    }
}

static struct ibv_wc await_completion(struct ibv_cq* queue) {
    struct ibv_wc completion;
    int polled = 0;
    while ((polled = ibv_poll_cq(queue, 1, &completion)) == 0) {
    }
    CHECK(polled == 1);
    if (completion.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "post: %s\n", ibv_wc_status_str(completion.status));
        exit(1);
    }
    return completion;
}

// A window over the region that a peer's SEND may end.
static uint32_t bind_window(struct rdma_cm_id* id) {
    struct ibv_mw* window = ibv_alloc_mw(id->pd, IBV_MW_TYPE_2);
    CHECK(window != NULL);
    const uint32_t key = ibv_inc_rkey(window->rkey);
    struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad = NULL;
    bind.bind_mw.mw = window;
    bind.bind_mw.rkey = key;
    bind.bind_mw.bind_info = (struct ibv_mw_bind_info){memory, (uintptr_t)region, 4096, IBV_ACCESS_REMOTE_WRITE};
    CHECK(ibv_post_send(id->qp, &bind, &bad) == 0);
    await_completion(id->send_cq);
    return key;
}

static void check_received(struct rdma_cm_id* id, uint32_t key) {
    for (uint32_t i = 0; i < count; ++i) {
        const struct ibv_wc completion = await_completion(id->recv_cq);
        CHECK(completion.byte_len == bytes);
        if (is("send_imm") || is("write_imm")) {
            CHECK((completion.wc_flags & IBV_WC_WITH_IMM) != 0 && ntohl(completion.imm_data) == kImmediate);
        }
        if (is("send_inv")) {
            CHECK(completion.invalidated_rkey == key);  // Soft-RoCE sets the kernel's flag for it, not the user's
        }
    }
}

static void serve(struct rdma_event_channel* channel, struct rdma_cm_id* listener) {
    CHECK(rdma_listen(listener, 4) == 0);
    puts("listening");
    fflush(stdout);
    struct rdma_cm_event* event = await_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id* id = event->id;
    prepare(id, is("read"));
    if (is_atomic()) {
        memcpy(region, &kBefore, sizeof(kBefore));
    }
    struct ibv_sge place = {(uintptr_t)region, kRegion, memory->lkey};
    struct ibv_recv_wr receive = {.sg_list = &place, .num_sge = 1}, *bad = NULL;
    const int receives = starts("send") || is("write_imm");
    for (uint32_t i = 0; receives && i < count; ++i) {
        CHECK(ibv_post_recv(id->qp, &receive, &bad) == 0);
    }
    struct Offer offer = {htobe64((uintptr_t)region), htobe32(memory->rkey), 0};
    struct rdma_conn_param accepted = {.private_data = &offer,
                                       .private_data_len = sizeof(offer),
                                       .responder_resources = event->param.conn.responder_resources,
                                       .initiator_depth = event->param.conn.initiator_depth,
                                       .rnr_retry_count = 7};
    rdma_ack_cm_event(event);
    // A window is bound by a queue pair that may send: only then its key is known, and is told in a message.
    CHECK(rdma_accept(id, &accepted) == 0);
    rdma_ack_cm_event(await_event(channel, RDMA_CM_EVENT_ESTABLISHED));
    uint32_t key = 0;
    if (is("send_inv")) {
        key = bind_window(id);
        const uint32_t told = htobe32(key);
        memcpy(region + kRegion - sizeof(told), &told, sizeof(told));
        struct ibv_sge piece = {(uintptr_t)region + kRegion - sizeof(told), sizeof(told), memory->lkey};
        struct ibv_send_wr send = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND}, *refused = NULL;
        CHECK(ibv_post_send(id->qp, &send, &refused) == 0);
        await_completion(id->send_cq);
    }
    if (receives) {
        check_received(id, key);
    }
    rdma_ack_cm_event(await_event(channel, RDMA_CM_EVENT_DISCONNECTED));
    uint64_t word = 0;
    memcpy(&word, region, sizeof(word));
    CHECK(!is("cas") || word == kAfter);
    CHECK(!is("fadd") || word == kBefore + kAdd * count);
    CHECK(is_atomic() || is_pattern(region));
    CHECK(rdma_disconnect(id) == 0);
}

static struct ibv_send_wr request(const struct Offer* offer, struct ibv_sge* place) {
    static const struct {
        const char* name;
        enum ibv_wr_opcode opcode;
    } kinds[] = {{"send", IBV_WR_SEND},           {"send_imm", IBV_WR_SEND_WITH_IMM},
                 {"send_inv", IBV_WR_SEND_WITH_INV}, {"write", IBV_WR_RDMA_WRITE},
                 {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM}, {"read", IBV_WR_RDMA_READ},
                 {"cas", IBV_WR_ATOMIC_CMP_AND_SWP}, {"fadd", IBV_WR_ATOMIC_FETCH_AND_ADD}};
    struct ibv_send_wr made = {.sg_list = place, .num_sge = place->length != 0};
    int known = 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        if (is(kinds[i].name)) {
            made.opcode = kinds[i].opcode;
            known = 1;
        }
    }
    CHECK(known);
    if (is_atomic()) {
        made.wr.atomic.remote_addr = be64toh(offer->address);
        made.wr.atomic.rkey = be32toh(offer->rkey);
        made.wr.atomic.compare_add = is("cas") ? kBefore : kAdd;
        made.wr.atomic.swap = kAfter;
        return made;
    }
    made.wr.rdma.remote_addr = be64toh(offer->address);
    made.wr.rdma.rkey = be32toh(offer->rkey);
    if (is("send_inv")) {
        made.invalidate_rkey = be32toh(offer->key_to_invalidate);
    } else {
        made.imm_data = htonl(kImmediate);
    }
    return made;
}

static void ask(struct rdma_event_channel* channel, struct rdma_cm_id* id, struct sockaddr* address) {
    CHECK(rdma_resolve_addr(id, NULL, address, 2000) == 0);
    rdma_ack_cm_event(await_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
    CHECK(rdma_resolve_route(id, 2000) == 0);
    rdma_ack_cm_event(await_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
    prepare(id, starts("send") || starts("write"));
    if (is("send_inv")) {  // tells the key
        struct ibv_sge key_place = {(uintptr_t)region + kRegion - 4, 4, memory->lkey};
        struct ibv_recv_wr receive = {.sg_list = &key_place, .num_sge = 1}, *bad = NULL;
        CHECK(ibv_post_recv(id->qp, &receive, &bad) == 0);
    }
    struct rdma_conn_param wanted = {
        .responder_resources = 4, .initiator_depth = 4, .retry_count = 7, .rnr_retry_count = 7};
    CHECK(rdma_connect(id, &wanted) == 0);
    struct rdma_cm_event* event = await_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    struct Offer offer;
    CHECK(event->param.conn.private_data_len >= sizeof(offer));
    memcpy(&offer, event->param.conn.private_data, sizeof(offer));
    rdma_ack_cm_event(event);
    if (is("send_inv")) {
        await_completion(id->recv_cq);
        memcpy(&offer.key_to_invalidate, region + kRegion - 4, 4);
    }
    struct ibv_sge place = {(uintptr_t)region, is_atomic() ? 8 : bytes, memory->lkey};
    for (uint32_t i = 0; i < count; ++i) {
        struct ibv_send_wr send = request(&offer, &place), *bad = NULL;
        CHECK(ibv_post_send(id->qp, &send, &bad) == 0);
    }
    for (uint32_t i = 0; i < count; ++i) {
        await_completion(id->send_cq);
    }
    uint64_t word = 0;
    memcpy(&word, region, sizeof(word));
    CHECK(!is("cas") || word == (count == 1 ? kBefore : kAfter));
    CHECK(!is("fadd") || word == kBefore + kAdd * (count - 1));
    CHECK(is_atomic() || is_pattern(region));
    CHECK(rdma_disconnect(id) == 0);
}

int main(int argc, char** argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: post serve|ask ADDRESS PORT KIND BYTES COUNT\n");
        return 2;
    }
    kind = argv[4];
    bytes = (uint32_t)strtoul(argv[5], NULL, 0);
    count = (uint32_t)strtoul(argv[6], NULL, 0);
    CHECK(bytes <= kRegion / 2 && count >= 1 && count <= kDepth);
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *found = NULL;
    CHECK(getaddrinfo(argv[2], argv[3], &hints, &found) == 0);
    struct rdma_event_channel* channel = rdma_create_event_channel();
    struct rdma_cm_id* id = NULL;
    CHECK(channel != NULL && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
    if (strcmp(argv[1], "serve") == 0) {
        CHECK(rdma_bind_addr(id, found->ai_addr) == 0);
        serve(channel, id);
    } else {
        ask(channel, id, found->ai_addr);
    }
    puts("right");
    return 0;
}
