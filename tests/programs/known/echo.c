// The example of rdma_cm tutorials: a client sends messages, and a server sends them back, each byte one more.
//     echo server|client ADDRESS PORT MESSAGES
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 3000
#define CHECK(call)        \
    do {                   \
        if ((call) != 0) { \
            perror(#call); \
            exit(1);       \
        }                  \
    } while (0)

static unsigned char said[BYTES], heard[BYTES];
static struct ibv_mr *of_said, *of_heard;

static struct rdma_cm_id *begin(int serves, char *address, char *port) {
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_flags = serves ? RAI_PASSIVE : 0};
    struct rdma_addrinfo *where = NULL;
    struct ibv_qp_init_attr wants = {.cap = {4, 4, 1, 1, 0}, .sq_sig_all = 1};
    struct rdma_cm_id *id = NULL;
    CHECK(rdma_getaddrinfo(address, port, &hints, &where));
    CHECK(rdma_create_ep(&id, where, NULL, &wants));
    rdma_freeaddrinfo(where);
    return id;
}

static void expect_one(struct rdma_cm_id *id, int sends) {
    struct ibv_wc done;
    int count = sends ? rdma_get_send_comp(id, &done) : rdma_get_recv_comp(id, &done);
    if (count != 1 || done.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "%s: %d, %s\n", sends ? "send" : "receive", count, ibv_wc_status_str(done.status));
        exit(1);
    }
}

static void register_both(struct rdma_cm_id *id) {
    of_said = rdma_reg_msgs(id, said, BYTES);
    of_heard = rdma_reg_msgs(id, heard, BYTES);
    CHECK(of_said == NULL || of_heard == NULL);
    CHECK(rdma_post_recv(id, NULL, heard, BYTES, of_heard));
}

static void serve(struct rdma_cm_id *listener, int messages) {
    struct rdma_cm_id *id = NULL;
    CHECK(rdma_listen(listener, 1));
    puts("listens");
    fflush(stdout);
    CHECK(rdma_get_request(listener, &id));
    register_both(id);
    CHECK(rdma_accept(id, NULL));
    for (int i = 0; i < messages; i++) {
        expect_one(id, 0);
        for (int at = 0; at < BYTES; at++) {
            said[at] = heard[at] + 1;
        }
        CHECK(rdma_post_recv(id, NULL, heard, BYTES, of_heard));
        CHECK(rdma_post_send(id, NULL, said, BYTES, of_said, 0));
        expect_one(id, 1);
    }
    rdma_disconnect(id);
    rdma_destroy_ep(id);
}

static void ask(struct rdma_cm_id *id, int messages) {
    register_both(id);
    CHECK(rdma_connect(id, NULL));
    for (int i = 0; i < messages; i++) {
        memset(said, i, BYTES);
        CHECK(rdma_post_send(id, NULL, said, BYTES, of_said, 0));
        expect_one(id, 1);
        expect_one(id, 0);
        for (int at = 0; at < BYTES; at++) {
            CHECK(heard[at] != (unsigned char)(i + 1));
        }
        CHECK(rdma_post_recv(id, NULL, heard, BYTES, of_heard));
    }
    rdma_disconnect(id);
}

int main(int count, char **words) {
    if (count != 5) {
        fprintf(stderr, "echo server|client ADDRESS PORT MESSAGES\n");
        return 2;
    }
    const int serves = strcmp(words[1], "server") == 0;
    struct rdma_cm_id *id = begin(serves, words[2], words[3]);
    (serves ? serve : ask)(id, atoi(words[4]));
    rdma_destroy_ep(id);
    return 0;
}
