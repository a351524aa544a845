// How long a cache line takes from one CPU to the other and back: what two polling processes are made of. On a virtual
// machine it says where the CPUs are just now: about 40 ns on one core, 100 behind one last-level cache, 500 apart.
//
//   line_ruler CPU CPU      prints one JSON object
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

constexpr unsigned kRoundTrips = 500'000;

void pin(const char* cpu) {
    char* end = nullptr;
    const unsigned long number = std::strtoul(cpu, &end, 10);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(number % CPU_SETSIZE, &set);
    if (*end != '\0' || pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0) {
        std::fprintf(stderr, "line_ruler: %s is no CPU to run on; give two of those that taskset -p $$ shows\n", cpu);
        std::exit(2);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "line_ruler: give two CPUs: line_ruler 0 1\n");
        return 2;
    }
    alignas(64) std::atomic<unsigned> line{0};
    std::thread peer([&line, argv] {
        pin(argv[2]);
        for (unsigned i = 0; i < kRoundTrips; ++i) {
            while (line.load(std::memory_order_acquire) != 2 * i + 1) {
            }
            line.store(2 * i + 2, std::memory_order_release);
        }
    });
    pin(argv[1]);
    const auto start = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < kRoundTrips; ++i) {
        line.store(2 * i + 1, std::memory_order_release);
        while (line.load(std::memory_order_acquire) != 2 * i + 2) {
        }
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    peer.join();
    std::printf("{\"roundtrip_ns\":%.1f}\n", taken.count() / kRoundTrips);
    return 0;
}
