// Measures the round trip of a cache line between two CPUs, the unit of work of two polling processes. On a virtual
// machine it tells where the CPUs are now: about 40 ns on one core, 100 within one last-level cache, 500 further apart.
//
//   line_ruler CPU CPU [PID...]      prints one JSON object; the processes, if any, stand still meanwhile, which is
//                                    less than a millisecond
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <thread>

namespace {

constexpr unsigned kRoundTrips = 500'000;
constexpr unsigned kRoundTripsBeside = 1'000;

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

// Signals each of the processes. Returns true if all of them exist and may be signalled; a failure skips no other one.
bool signal_all(std::span<char*> processes, int signal) {
    bool all = true;
    for (const char* process : processes) {
        const long number = std::strtol(process, nullptr, 10);
        all = number > 1 && kill(static_cast<pid_t>(number), signal) == 0 && all;
    }
    return all;
}

// Runs one end of the line: waits for each odd number and answers with the next one.
void answer(std::atomic<unsigned>& line, unsigned round_trips) {
    for (unsigned i = 0; i < round_trips; ++i) {
        while (line.load(std::memory_order_acquire) != 2 * i + 1) {
        }
        line.store(2 * i + 2, std::memory_order_release);
    }
}

std::chrono::nanoseconds ask(std::atomic<unsigned>& line, unsigned round_trips) {
    const auto start = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < round_trips; ++i) {
        line.store(2 * i + 1, std::memory_order_release);
        while (line.load(std::memory_order_acquire) != 2 * i + 2) {
        }
    }
    return std::chrono::steady_clock::now() - start;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "line_ruler: give two CPUs: line_ruler 0 1\n");
        return 2;
    }
    const std::span<char*> processes{argv + 3, argv + argc};
    const unsigned round_trips = processes.empty() ? kRoundTrips : kRoundTripsBeside;
    alignas(64) std::atomic<unsigned> line{0};
    std::atomic<bool> ready{false};
    std::thread peer([&line, &ready, argv, round_trips] {
        pin(argv[2]);
        ready = true;
        answer(line, round_trips);
    });
    pin(argv[1]);
    while (!ready) {
    }
    const bool stopped = signal_all(processes, SIGSTOP);
    const std::chrono::nanoseconds taken = ask(line, round_trips);
    peer.join();
    if (!signal_all(processes, SIGCONT) || !stopped) {
        std::fprintf(stderr, "line_ruler: not all of the processes could be stopped; give the numbers of yours\n");
        return 2;
    }
    std::printf("{\"roundtrip_ns\":%.1f}\n", static_cast<double>(taken.count()) / round_trips);
    return 0;
}
