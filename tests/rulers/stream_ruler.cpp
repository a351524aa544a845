// Measures the memory bandwidth of a stream between two processes. Pieces of 4 KB pass through a ring of shared memory.
// One side copies them in from a set of 8 MB buffers, the other copies them out into another set. One side makes their
// CRC32, the other verifies it. The buffers of a side exceed its caches.
//
//   stream_ruler CPU CPU SECONDS      prints one JSON object
//
// No code of Cairn is used, on purpose.
#include <isa-l/crc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = 4096;
constexpr std::size_t kSlots = 512;  // 2 MB, as a ring of net_memif with rsize 9
constexpr std::size_t kBufferBytes = std::size_t{8} << 20U;
constexpr std::size_t kBuffers = 16;
constexpr std::size_t kPieces = kBuffers * kBufferBytes / kPieceBytes;

struct Ring {
    alignas(64) std::atomic<std::uint64_t> filled{0};
    alignas(64) std::atomic<std::uint64_t> emptied{0};
    alignas(64) std::atomic<bool> ends{false};
    std::array<std::uint32_t, kSlots> crcs{};
    alignas(4096) std::array<std::array<std::uint8_t, kPieceBytes>, kSlots> pieces{};
};

void pin(const char* text) {
    char* end = nullptr;
    const unsigned long cpu = std::strtoul(text, &end, 10);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % CPU_SETSIZE, &set);
    if (*end != '\0' || sched_setaffinity(0, sizeof(set), &set) != 0) {
        std::fprintf(stderr, "stream_ruler: %s is no CPU to run on; give two of those that taskset -p $$ shows\n",
                     text);
        std::exit(2);
    }
}

std::uint32_t crc_of(const std::uint8_t* piece) {
    return crc32_gzip_refl(0, piece, kPieceBytes);
}

// Takes pieces until the ring says that it ends. Ends the process with 1 if a piece is not as it was sent.
int take(Ring& ring) {
    std::vector<std::uint8_t> memory(kBuffers * kBufferBytes);
    for (std::uint64_t at = 0;; ++at) {
        while (ring.filled.load(std::memory_order_acquire) == at) {
            if (ring.ends.load(std::memory_order_relaxed)) {
                return 0;
            }
        }
        std::uint8_t* const to = memory.data() + at % kPieces * kPieceBytes;
        std::memcpy(to, ring.pieces[at % kSlots].data(), kPieceBytes);
        if (crc_of(to) != ring.crcs[at % kSlots]) {
            return 1;
        }
        ring.emptied.store(at + 1, std::memory_order_release);
    }
}

// Returns how many bytes per second the other side took.
double give(Ring& ring, double seconds) {
    std::vector<std::uint8_t> memory(kBuffers * kBufferBytes);
    for (std::size_t i = 0; i < memory.size(); ++i) {
        memory[i] = static_cast<std::uint8_t>(i * 31 + i / kPieceBytes);
    }
    Clock::time_point start{};
    std::uint64_t before = 0;
    for (std::uint64_t at = 0;; ++at) {
        while (at - ring.emptied.load(std::memory_order_acquire) == kSlots) {
        }
        const std::uint8_t* const from = memory.data() + at % kPieces * kPieceBytes;
        ring.crcs[at % kSlots] = crc_of(from);
        std::memcpy(ring.pieces[at % kSlots].data(), from, kPieceBytes);
        ring.filled.store(at + 1, std::memory_order_release);
        if (at == kPieces) {  // by now all memory is there on both sides
            start = Clock::now();
            before = ring.emptied.load(std::memory_order_relaxed);
        } else if (at > kPieces && at % kSlots == 0) {
            const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
            if (elapsed >= seconds) {
                const std::uint64_t taken = ring.emptied.load(std::memory_order_relaxed) - before;
                return static_cast<double>(taken * kPieceBytes) / elapsed;
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "stream_ruler: give two CPUs and a time: stream_ruler 0 1 2.5\n");
        return 2;
    }
    void* const shared = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        std::perror("stream_ruler: no shared memory");
        return 2;
    }
    Ring& ring = *new (shared) Ring;
    const pid_t taker = fork();
    if (taker == 0) {
        pin(argv[2]);
        _exit(take(ring));
    }
    pin(argv[1]);
    const double bytes_per_s = give(ring, std::strtod(argv[3], nullptr));
    ring.ends.store(true);
    int status = 0;
    if (waitpid(taker, &status, 0) != taker || status != 0) {
        std::fprintf(stderr, "stream_ruler: a piece was not what was sent, or its taker died\n");
        return 1;
    }
    std::printf("{\"gbit_s\":%.3f}\n", bytes_per_s * 8 / 1e9);
    return 0;
}
