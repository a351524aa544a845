// librpma: a server offers memory; a client writes, flushes, reads and compares. memory server|client ADDRESS PORT
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 4096
#define CHECK(call)                                                                      \
    do {                                                                                 \
        int ret_ = (call);                                                               \
        if (ret_ != 0) {                                                                 \
            fprintf(stderr, "%s: %s\n", #call, ret_ < 0 ? rpma_err_2str(ret_) : "wrong"); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

static void await(struct rpma_conn *conn, enum rpma_conn_event wanted) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    CHECK(rpma_conn_next_event(conn, &event));
    CHECK(event != wanted);
}

static void complete(struct rpma_conn *conn, int count) {
    struct rpma_cq *cq = NULL;
    struct ibv_wc wc;
    CHECK(rpma_conn_get_cq(conn, &cq));
    while (count > 0) {
        int got = rpma_cq_get_wc(cq, 1, &wc, NULL);
        if (got == RPMA_E_NO_COMPLETION) {
            CHECK(rpma_cq_wait(cq));
            continue;
        }
        CHECK(got);
        CHECK(wc.status != IBV_WC_SUCCESS);
        count--;
    }
}

static void serve(struct rpma_peer *peer, const char *address, const char *port, char *memory) {
    struct rpma_mr_local *mr = NULL;
    struct rpma_ep *ep = NULL;
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    char descriptor[64];
    size_t size = 0;
    CHECK(rpma_mr_reg(peer, memory, BYTES,
                      RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &mr));
    CHECK(rpma_mr_get_descriptor_size(mr, &size));
    CHECK(size > sizeof(descriptor));
    CHECK(rpma_mr_get_descriptor(mr, descriptor));
    struct rpma_conn_private_data data = {descriptor, (uint8_t)size};
    CHECK(rpma_ep_listen(peer, address, port, &ep));
    puts("listens");
    fflush(stdout);
    CHECK(rpma_ep_next_conn_req(ep, NULL, &req));
    CHECK(rpma_conn_req_connect(&req, &data, &conn));
    await(conn, RPMA_CONN_ESTABLISHED);
    await(conn, RPMA_CONN_CLOSED);
    CHECK(memcmp(memory, "12345678 and the rest", 22));
    CHECK(rpma_conn_disconnect(conn));
    CHECK(rpma_conn_delete(&conn));
    CHECK(rpma_ep_shutdown(&ep));
    CHECK(rpma_mr_dereg(&mr));
}

static void ask(struct rpma_peer *peer, const char *address, const char *port, char *memory) {
    struct rpma_mr_local *mr = NULL;
    struct rpma_mr_remote *theirs = NULL;
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    struct rpma_conn_private_data data;
    CHECK(rpma_conn_req_new(peer, address, port, NULL, &req));
    CHECK(rpma_conn_req_connect(&req, NULL, &conn));
    await(conn, RPMA_CONN_ESTABLISHED);
    CHECK(rpma_conn_get_private_data(conn, &data));
    CHECK(rpma_mr_remote_from_descriptor(data.ptr, data.len, &theirs));
    CHECK(rpma_mr_reg(peer, memory, BYTES, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC, &mr));
    strcpy(memory, "........ and the rest");
    CHECK(rpma_write(conn, theirs, 0, mr, 0, BYTES / 2, RPMA_F_COMPLETION_ON_ERROR, NULL));
    CHECK(rpma_atomic_write(conn, theirs, 0, "12345678", RPMA_F_COMPLETION_ON_ERROR, NULL));
    CHECK(rpma_flush(conn, theirs, 0, BYTES / 2, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL));
    complete(conn, 1);
    CHECK(rpma_read(conn, mr, BYTES / 2, theirs, 0, BYTES / 2, RPMA_F_COMPLETION_ALWAYS, NULL));
    complete(conn, 1);
    CHECK(memcmp(memory + BYTES / 2, "12345678 and the rest", 22));
    CHECK(rpma_conn_disconnect(conn));
    await(conn, RPMA_CONN_CLOSED);
    CHECK(rpma_mr_dereg(&mr));
    CHECK(rpma_mr_remote_delete(&theirs));
    CHECK(rpma_conn_delete(&conn));
}

int main(int argc, char **argv) {
    struct ibv_context *context = NULL;
    struct rpma_peer *peer = NULL;
    char *memory = aligned_alloc(4096, BYTES);
    if (argc != 4 || memory == NULL) return 2;
    const int serves = strcmp(argv[1], "server") == 0;
    memset(memory, 0, BYTES);
    CHECK(rpma_utils_get_ibv_context(
        argv[2], serves ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
    CHECK(rpma_peer_new(context, &peer));
    (serves ? serve : ask)(peer, argv[2], argv[3], memory);
    CHECK(rpma_peer_delete(&peer));
    return 0;
}
