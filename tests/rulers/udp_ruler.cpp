// Measures plain UDP sockets for comparison: an echo of datagrams by sendmmsg and recvmmsg, an echo of trains of
// datagrams (UDP_SEGMENT, UDP_GRO), and a ping-pong of single ones. Both sides spin. Two processes on 127.0.0.0/8:
//
//   udp_ruler echo ADDRESS                         until it is ended; for mmsg and pingpong
//   udp_ruler echo-gso|echo-crc ADDRESS            until it is ended; for gso and crc
//   udp_ruler mmsg|gso|crc ADDRESS BYTES OUTSTANDING SECONDS
//   udp_ruler pingpong ADDRESS BYTES SECONDS
//
// crc is gso with a CRC32 at the end of each datagram, made and verified at both ends, as RoCEv2 has to. All but the
// echoes print one JSON object. No code of Cairn is used, on purpose.
#include <arpa/inet.h>
#include <isa-l/crc.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/rulers/round_trips.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kPort = 4799;
constexpr std::size_t kBatch = 32;
constexpr std::size_t kBytesMax = 2048;
constexpr std::size_t kSegmentsMax = 64;  // limit of one send, in all kernels

sockaddr_in address_of(const char* text, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
        std::fprintf(stderr, "udp_ruler: %s is no IPv4 address; write it as 127.0.0.1\n", text);
        std::exit(2);
    }
    return address;
}

int open_socket(const sockaddr_in* bound) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || (bound != nullptr && bind(fd, reinterpret_cast<const sockaddr*>(bound), sizeof(*bound)) != 0)) {
        std::perror("udp_ruler: cannot open its socket");
        std::exit(2);
    }
    return fd;
}

// As many messages as one system call takes.
struct Batch {
    std::array<std::array<std::uint8_t, kBytesMax>, kBatch> memory{};
    std::array<iovec, kBatch> pieces{};
    std::array<sockaddr_in, kBatch> addresses{};
    std::array<mmsghdr, kBatch> messages{};

    void arm() {
        for (std::size_t i = 0; i < kBatch; ++i) {
            pieces[i] = {memory[i].data(), kBytesMax};
            messages[i].msg_hdr = {};
            messages[i].msg_hdr.msg_name = &addresses[i];
            messages[i].msg_hdr.msg_namelen = sizeof(sockaddr_in);
            messages[i].msg_hdr.msg_iov = &pieces[i];
            messages[i].msg_hdr.msg_iovlen = 1;
        }
    }
    // Returns how many messages came.
    std::size_t receive(int fd) {
        arm();
        const int got = recvmmsg(fd, messages.data(), kBatch, MSG_DONTWAIT, nullptr);
        return got < 0 ? 0 : static_cast<std::size_t>(got);
    }
    void send(int fd, std::size_t count) {
        for (std::size_t sent = 0; sent < count;) {
            const int took = sendmmsg(fd, &messages[sent], static_cast<unsigned>(count - sent), 0);
            sent += took > 0 ? static_cast<std::size_t>(took) : 0;
        }
    }
};

int echo(const char* address) {
    const sockaddr_in here = address_of(address, kPort);
    const int fd = open_socket(&here);
    static Batch batch;
    for (;;) {
        const std::size_t got = batch.receive(fd);
        for (std::size_t i = 0; i < got; ++i) {
            batch.pieces[i].iov_len = batch.messages[i].msg_len;
        }
        batch.send(fd, got);
    }
}

int run_mmsg(const char* address, std::size_t bytes, std::size_t outstanding, double seconds) {
    const sockaddr_in there = address_of(address, kPort);
    const int fd = open_socket(nullptr);
    static Batch batch;
    const auto send = [&](std::size_t count) {
        batch.arm();
        for (std::size_t i = 0; i < count; ++i) {
            batch.addresses[i] = there;
            batch.pieces[i].iov_len = bytes;
        }
        batch.send(fd, count);
    };
    for (std::size_t left = outstanding; left != 0;) {
        const std::size_t count = std::min(left, kBatch);
        send(count);
        left -= count;
    }
    std::uint64_t done = 0;
    const auto started = Clock::now();
    double elapsed = 0;
    while (elapsed < seconds) {
        const std::size_t got = batch.receive(fd);
        done += got;
        send(got);
        elapsed = std::chrono::duration<double>(Clock::now() - started).count();
    }
    std::printf("{\"rate_mops\":%.3f}\n", static_cast<double>(done) / elapsed / 1e6);
    return 0;
}

// Datagrams of one length that cross the socket together.
class Trains {
public:
    Trains(int fd, bool with_crc) : fd_(fd), with_crc_(with_crc) {
        const int on = 1;
        if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) != 0) {
            std::perror("udp_ruler: no UDP_GRO");
            std::exit(2);
        }
    }

    // Returns how many datagrams came, from `peer`. The next send sends them.
    std::size_t receive() {
        iovec piece{memory_.data(), memory_.size()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        msghdr message = message_of(piece, control);
        const ssize_t got = recvmsg(fd_, &message, MSG_DONTWAIT);
        if (got <= 0) {
            return 0;
        }
        bytes_ = static_cast<std::size_t>(got);
        segment_bytes_ = bytes_;
        for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
            if (each->cmsg_level == IPPROTO_UDP && each->cmsg_type == UDP_GRO) {
                int segment = 0;
                std::memcpy(&segment, CMSG_DATA(each), sizeof(segment));
                segment_bytes_ = static_cast<std::size_t>(segment);
            }
        }
        each_datagram([](std::uint8_t* datagram, std::size_t bytes) {
            if (std::memcmp(datagram + bytes, crc_of(datagram, bytes).data(), kCrcBytes) != 0) {
                std::fprintf(stderr, "udp_ruler: a wrong CRC\n");
                std::exit(1);
            }
        });
        return (bytes_ + segment_bytes_ - 1) / segment_bytes_;
    }

    void send() {
        each_datagram([](std::uint8_t* datagram, std::size_t bytes) {
            std::memcpy(datagram + bytes, crc_of(datagram, bytes).data(), kCrcBytes);
        });
        iovec piece{memory_.data(), bytes_};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control{};
        msghdr message = message_of(piece, control);
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = IPPROTO_UDP;
        header->cmsg_type = UDP_SEGMENT;
        header->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
        const auto segment = static_cast<std::uint16_t>(segment_bytes_);
        std::memcpy(CMSG_DATA(header), &segment, sizeof(segment));
        while (sendmsg(fd_, &message, 0) < 0) {
            if (errno != EAGAIN && errno != ENOBUFS) {
                std::perror("udp_ruler: cannot send a train");
                std::exit(2);
            }
        }
    }

    void send_first(std::size_t count, std::size_t bytes) {
        segment_bytes_ = bytes;
        bytes_ = count * bytes;
        send();
    }

    sockaddr_in peer{};

private:
    static constexpr std::size_t kCrcBytes = 4;

    static std::array<std::uint8_t, kCrcBytes> crc_of(const std::uint8_t* data, std::size_t bytes) {
        const std::uint32_t crc = crc32_gzip_refl(0, data, bytes);
        std::array<std::uint8_t, kCrcBytes> text{};
        std::memcpy(text.data(), &crc, kCrcBytes);
        return text;
    }
    // Makes a message of `piece`, from or to `peer`, with room for control data.
    template <std::size_t Bytes>
    msghdr message_of(iovec& piece, std::array<char, Bytes>& control) {
        msghdr message{};
        message.msg_name = &peer;
        message.msg_namelen = sizeof(peer);
        message.msg_iov = &piece;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        return message;
    }
    // Calls the function for each datagram with a CRC.
    template <typename Function>
    void each_datagram(const Function& function) {
        for (std::size_t at = 0; with_crc_ && at + kCrcBytes < bytes_; at += segment_bytes_) {
            function(&memory_[at], std::min(segment_bytes_, bytes_ - at) - kCrcBytes);
        }
    }

    int fd_;
    bool with_crc_;
    std::size_t bytes_ = 0;
    std::size_t segment_bytes_ = 0;
    std::array<std::uint8_t, 65'536> memory_{};
};

int echo_trains(const char* address, bool with_crc) {
    const sockaddr_in here = address_of(address, kPort);
    static Trains trains(open_socket(&here), with_crc);
    for (;;) {
        if (trains.receive() != 0) {
            trains.send();
        }
    }
}

// Two trains are under way, so that both sides work.
int run_trains(const char* address, std::size_t bytes, std::size_t outstanding, double seconds, bool with_crc) {
    static Trains trains(open_socket(nullptr), with_crc);
    trains.peer = address_of(address, kPort);
    trains.send_first(outstanding - outstanding / 2, bytes);
    trains.send_first(outstanding / 2, bytes);
    std::uint64_t done = 0;
    const auto started = Clock::now();
    double elapsed = 0;
    while (elapsed < seconds) {
        if (const std::size_t got = trains.receive(); got != 0) {
            done += got;
            trains.send();
        }
        elapsed = std::chrono::duration<double>(Clock::now() - started).count();
    }
    std::printf("{\"rate_mops\":%.3f}\n", static_cast<double>(done) / elapsed / 1e6);
    return 0;
}

int run_pingpong(const char* address, std::size_t bytes, double seconds) {
    const sockaddr_in there = address_of(address, kPort);
    const int fd = open_socket(nullptr);
    std::array<std::uint8_t, kBytesMax> memory{};
    std::vector<double> round_trips_us;
    round_trips_us.reserve(std::size_t{1} << 22U);
    const auto started = Clock::now();
    for (auto sent = started; std::chrono::duration<double>(sent - started).count() < seconds;) {
        sendto(fd, memory.data(), bytes, 0, reinterpret_cast<const sockaddr*>(&there), sizeof(there));
        while (recv(fd, memory.data(), memory.size(), MSG_DONTWAIT) < 0) {
        }
        const auto now = Clock::now();
        round_trips_us.push_back(std::chrono::duration<double, std::micro>(now - sent).count());
        sent = now;
    }
    print_round_trips(round_trips_us);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "echo" && argc == 3) {
        return echo(argv[2]);
    }
    if ((mode == "echo-gso" || mode == "echo-crc") && argc == 3) {
        return echo_trains(argv[2], mode == "echo-crc");
    }
    const std::size_t bytes = argc > 3 ? std::min<std::size_t>(std::strtoull(argv[3], nullptr, 10), kBytesMax) : 0;
    if (argc == 6) {
        const std::size_t outstanding = std::strtoull(argv[4], nullptr, 10);
        const double seconds = std::strtod(argv[5], nullptr);
        if (mode == "mmsg") {
            return run_mmsg(argv[2], bytes, outstanding, seconds);
        }
        if ((mode == "gso" || mode == "crc") && bytes > 4 && outstanding > 1 && outstanding <= 2 * kSegmentsMax) {
            return run_trains(argv[2], bytes, outstanding, seconds, mode == "crc");
        }
    }
    if (mode == "pingpong" && argc == 5) {
        return run_pingpong(argv[2], bytes, std::strtod(argv[4], nullptr));
    }
    std::fprintf(stderr,
                 "udp_ruler: echo|echo-gso|echo-crc ADDRESS | mmsg|gso|crc ADDRESS BYTES OUTSTANDING SECONDS | "
                 "pingpong ADDRESS BYTES SECONDS\n");
    return 2;
}
