// Measures the round trip of one frame over a DPDK port that no protocol looks at: the floor for a call's latency. Two
// processes on the two ends of a link, both spinning:
//
//   frame_ruler EAL... -- echo                       until the pingpong ends
//   frame_ruler EAL... -- pingpong BYTES SECONDS     prints one JSON object
//
// The frame carries a number, and is sent again if it does not come back within a millisecond. No code of Cairn is
// used.
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/rulers/round_trips.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kPort = 0;
constexpr std::uint16_t kBurst = 32;
constexpr std::uint16_t kDescriptors = 512;
constexpr unsigned kMbufs = 4096;
constexpr std::uint16_t kRoomBytes = 2048 + RTE_PKTMBUF_HEADROOM;
constexpr std::size_t kNumberAt = 14;  // after the Ethernet header
constexpr auto kLostAfter = std::chrono::milliseconds{1};
constexpr unsigned kPollsPerLook = 1024;
constexpr std::uint64_t kLast = 0;
constexpr auto kEchoEndsIn = std::chrono::milliseconds{100};

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "frame_ruler: %s\n", what);
    std::exit(2);
}

rte_mempool* open_port() {
    rte_mempool* const pool = rte_pktmbuf_pool_create("frames", kMbufs, 256, 0, kRoomBytes, SOCKET_ID_ANY);
    const rte_eth_conf conf{};
    if (pool == nullptr || rte_eth_dev_configure(kPort, 1, 1, &conf) != 0 ||
        rte_eth_rx_queue_setup(kPort, 0, kDescriptors, 0, nullptr, pool) != 0 ||
        rte_eth_tx_queue_setup(kPort, 0, kDescriptors, 0, nullptr) != 0 || rte_eth_dev_start(kPort) != 0) {
        fail("there is no port 0 that starts; name it with --vdev");
    }
    return pool;
}

void send(rte_mbuf* frame) {
    if (rte_eth_tx_burst(kPort, 0, &frame, 1) != 1) {
        rte_pktmbuf_free(frame);
    }
}

std::uint64_t number_of(const rte_mbuf* frame) {
    std::uint64_t number = 0;
    std::memcpy(&number, rte_pktmbuf_mtod_offset(frame, const char*, kNumberAt), sizeof(number));
    return number;
}

// Echoes frames. A driver must not be polled while its link goes down, so the last frame announces the end.
int echo() {
    open_port();
    for (std::array<rte_mbuf*, kBurst> frames{};;) {
        const std::uint16_t got = rte_eth_rx_burst(kPort, 0, frames.data(), kBurst);
        for (std::uint16_t i = 0; i < got; ++i) {
            if (number_of(frames[i]) == kLast) {
                return 0;
            }
            send(frames[i]);
        }
    }
}

// Returns true if the frame `number` is among those that have come.
bool came(std::uint64_t number) {
    std::array<rte_mbuf*, kBurst> frames{};
    const std::uint16_t got = rte_eth_rx_burst(kPort, 0, frames.data(), kBurst);
    bool found = false;
    std::for_each_n(frames.begin(), got, [&](rte_mbuf* frame) {
        found = found || number_of(frame) == number;
        rte_pktmbuf_free(frame);
    });
    return found;
}

void ask(rte_mempool* pool, std::uint16_t bytes, std::uint64_t number) {
    rte_mbuf* const frame = rte_pktmbuf_alloc(pool);
    char* const data = frame != nullptr ? rte_pktmbuf_append(frame, bytes) : nullptr;
    if (data == nullptr) {
        fail("no memory for a frame");
    }
    std::memset(data, 0, bytes);
    std::memcpy(data + kNumberAt, &number, sizeof(number));
    send(frame);
}

// Waits for the frame `number`. Reads the clock seldom, since that takes as long as a poll. Returns false if `until`
// comes first.
bool wait_for(std::uint64_t number, Clock::time_point until) {
    for (unsigned polls = 1;; ++polls) {
        if (came(number)) {
            return true;
        }
        if (polls % kPollsPerLook == 0 && Clock::now() >= until) {
            return false;
        }
    }
}

int pingpong(std::uint16_t bytes, double seconds) {
    rte_mempool* const pool = open_port();
    std::vector<double> round_trips_us;
    round_trips_us.reserve(std::size_t{1} << 22U);
    std::uint64_t number = 0;
    const auto started = Clock::now();
    for (auto sent = started; std::chrono::duration<double>(sent - started).count() < seconds;) {
        ask(pool, bytes, ++number);
        const bool found = wait_for(number, sent + kLostAfter);
        const auto now = Clock::now();
        if (found) {
            round_trips_us.push_back(std::chrono::duration<double, std::micro>(now - sent).count());
        }
        sent = now;
    }
    ask(pool, bytes, kLast);
    std::this_thread::sleep_for(kEchoEndsIn);
    if (round_trips_us.empty()) {
        fail("no frame came back; start an echo at the other end first");
    }
    print_round_trips(round_trips_us);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const int taken = rte_eal_init(argc, argv);
    if (taken < 0) {
        fail("EAL did not start; give it the link, as --vdev=net_memif0,role=server,socket=PATH");
    }
    argc -= taken;
    argv += taken;
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "echo" && argc == 2) {
        return echo();
    }
    if (mode == "pingpong" && argc == 4) {
        const unsigned long bytes = std::strtoul(argv[2], nullptr, 10);
        if (bytes >= kNumberAt + sizeof(std::uint64_t) && bytes <= 1500) {
            return pingpong(static_cast<std::uint16_t>(bytes), std::strtod(argv[3], nullptr));
        }
    }
    fail("EAL... -- echo | EAL... -- pingpong BYTES SECONDS; BYTES 22 to 1500");
}
