// Measures the cost of a message if the program spins on memory while its helper thread sleeps in a plain UDP socket.
// The helper writes each datagram's number to a word. The main thread sees it there, and sends the next one. Two
// processes on 127.0.0.0/8:
//
//   spin_ruler echo ADDRESS        until it is ended
//   spin_ruler pingpong ADDRESS BYTES SECONDS
//
// The second prints one JSON object. No code of Cairn is used, on purpose.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/rulers/round_trips.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kPort = 4798;
constexpr std::size_t kBytesMax = 2048;

sockaddr_in address_of(const char* text) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(kPort);
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
        std::fprintf(stderr, "spin_ruler: %s is no IPv4 address; write it as 127.0.0.1\n", text);
        std::exit(2);
    }
    return address;
}

// A socket, and the helper thread that sleeps in it.
class Received {
public:
    explicit Received(int fd) : fd_(fd) {
        std::thread([this] { run(); }).detach();
    }

    // Returns when more datagrams than `before` have come.
    void spin_until_more_than(std::uint64_t before) const {
        while (count_.load(std::memory_order_acquire) <= before) {
        }
    }
    // Returns the sender of the last datagram. Valid once a datagram has come.
    [[nodiscard]] const sockaddr_in& peer() const { return peer_; }

private:
    void run() {
        std::array<std::uint8_t, kBytesMax> memory{};
        for (;;) {
            socklen_t length = sizeof(peer_);
            if (recvfrom(fd_, memory.data(), memory.size(), 0, reinterpret_cast<sockaddr*>(&peer_), &length) >= 0) {
                count_.fetch_add(1, std::memory_order_release);
            }
        }
    }

    const int fd_;
    sockaddr_in peer_{};
    std::atomic<std::uint64_t> count_{0};
};

int open_socket(const sockaddr_in* bound) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || (bound != nullptr && bind(fd, reinterpret_cast<const sockaddr*>(bound), sizeof(*bound)) != 0)) {
        std::perror("spin_ruler: cannot open its socket");
        std::exit(2);
    }
    return fd;
}

void send(int fd, const sockaddr_in& to, std::size_t bytes) {
    static const std::array<std::uint8_t, kBytesMax> memory{};
    sendto(fd, memory.data(), bytes, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
}

int echo(const char* address) {
    const sockaddr_in here = address_of(address);
    const int fd = open_socket(&here);
    const Received received(fd);
    for (std::uint64_t before = 0;; ++before) {
        received.spin_until_more_than(before);
        send(fd, received.peer(), 24);
    }
}

int pingpong(const char* address, std::size_t bytes, double seconds) {
    const sockaddr_in there = address_of(address);
    const int fd = open_socket(nullptr);
    send(fd, there, bytes);  // also binds the socket
    const Received received(fd);
    received.spin_until_more_than(0);
    std::vector<double> round_trips_us;
    round_trips_us.reserve(std::size_t{1} << 22U);
    const auto started = Clock::now();
    std::uint64_t before = 1;
    for (auto sent = started; std::chrono::duration<double>(sent - started).count() < seconds; ++before) {
        send(fd, there, bytes);
        received.spin_until_more_than(before);
        const auto now = Clock::now();
        round_trips_us.push_back(std::chrono::duration<double, std::micro>(now - sent).count());
        sent = now;
    }
    print_round_trips(round_trips_us);
    std::fflush(stdout);
    std::_Exit(0);  // the helper never ends
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "echo" && argc == 3) {
        return echo(argv[2]);
    }
    if (mode == "pingpong" && argc == 5) {
        const std::size_t bytes = std::strtoull(argv[3], nullptr, 10);
        return pingpong(argv[2], std::min(bytes, kBytesMax), std::strtod(argv[4], nullptr));
    }
    std::fprintf(stderr, "spin_ruler: echo ADDRESS | pingpong ADDRESS BYTES SECONDS\n");
    return 2;
}
