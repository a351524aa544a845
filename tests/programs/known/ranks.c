// Ranks of MPI: rings of all sizes with each byte verified, collectives, and memory of another rank.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

static void fail(const char *what) {
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void pass_round(int bytes) {
    unsigned char *sent = malloc((size_t)bytes);
    unsigned char *got = malloc((size_t)bytes);
    const int left = (rank + ranks - 1) % ranks;
    for (int i = 0; i < bytes; i++) sent[i] = (unsigned char)(i * 7 + rank);
    MPI_Sendrecv(sent, bytes, MPI_BYTE, (rank + 1) % ranks, 1, got, bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; i++) {
        if (got[i] != (unsigned char)(i * 7 + left)) fail("a byte of the ring is wrong");
    }
    free(sent);
    free(got);
}

static void use_memory(void) {
    long *memory;
    long seen = -1;
    long one = 1;
    MPI_Win window;
    MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memory[0] = memory[1] = 0;
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % ranks, 1, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    if (memory[1] != (rank + ranks - 1) % ranks) fail("what was put is wrong");
    for (int i = 0; i < 100; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        MPI_Fetch_and_op(&one, &seen, MPI_LONG, 0, 0, MPI_SUM, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        if (memory[0] != 100L * ranks) fail("the sum of all ranks is wrong");
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    long mine, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int bytes = 1; bytes <= 4 << 20; bytes *= 8) pass_round(bytes);
    mine = rank + 1;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (all != (long)ranks * (ranks + 1) / 2) fail("allreduce is wrong");
    use_memory();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("all right");
    MPI_Finalize();
    return 0;
}
