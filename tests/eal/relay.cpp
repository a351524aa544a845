// relay: two devices as one link, and a way onto it for hosts that are UDP sockets of this machine.
//
//   relay EAL_ARGUMENTS -- ADDRESS PORT
//
// Frames that come to one device leave by the other. A datagram to ADDRESS:PORT is an IPv4 packet: it leaves by the
// first device. Packets to its source address from that device go back to the socket that sent it. Ends with SIGTERM.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>

namespace {

constexpr std::uint16_t kInside = 0;   // the server's side
constexpr std::uint16_t kOutside = 1;  // its client's side
constexpr std::uint16_t kBurst = 32;
constexpr unsigned kBuffers = 8192;
constexpr std::uint16_t kRingSlots = 512;

volatile std::sig_atomic_t stopped = 0;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "relay: %s\n", what);
    std::exit(2);
}

void open_device(std::uint16_t device, rte_mempool* pool) {
    const rte_eth_conf plain{};
    const bool opened = rte_eth_dev_configure(device, 1, 1, &plain) == 0 &&
                        rte_eth_rx_queue_setup(device, 0, kRingSlots, 0, nullptr, pool) == 0 &&
                        rte_eth_tx_queue_setup(device, 0, kRingSlots, 0, nullptr) == 0 &&
                        rte_eth_dev_start(device) == 0;
    if (!opened) {
        fail("a device does not start");
    }
}

int open_socket(const char* address, const char* port) {
    sockaddr_in bound{};
    bound.sin_family = AF_INET;
    bound.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, address, &bound.sin_addr) != 1 || fd < 0 ||
        bind(fd, reinterpret_cast<const sockaddr*>(&bound), sizeof(bound)) != 0) {
        fail("cannot bind its socket");
    }
    return fd;
}

class Relay {
public:
    Relay(rte_mempool* pool, int socket) : pool_(pool), socket_(socket) { rte_eth_macaddr_get(kInside, &mac_); }

    // Returns false if nothing moved.
    bool turn() {
        const bool came = pass(kOutside, kInside);
        const bool attacked = take_in();
        return pass(kInside, kOutside) || came || attacked;
    }

private:
    static void send(std::uint16_t device, rte_mbuf* frame) {
        if (rte_eth_tx_burst(device, 0, &frame, 1) == 0) {
            rte_pktmbuf_free(frame);
        }
    }

    bool pass(std::uint16_t from, std::uint16_t to) {
        std::array<rte_mbuf*, kBurst> frames{};
        const std::uint16_t count = rte_eth_rx_burst(from, 0, frames.data(), kBurst);
        for (rte_mbuf* const frame : std::span(frames).first(count)) {
            if (from == kInside && give_out(*frame)) {
                rte_pktmbuf_free(frame);
            } else {
                send(to, frame);
            }
        }
        return count != 0;
    }

    // Gives a frame to its socket. Returns true if there is one.
    bool give_out(const rte_mbuf& frame) {
        const auto* const ether = rte_pktmbuf_mtod(&frame, const rte_ether_hdr*);
        if (frame.data_len < sizeof(*ether) + sizeof(rte_ipv4_hdr) || ether->ether_type != htons(RTE_ETHER_TYPE_IPV4)) {
            return false;
        }
        if (ether->src_addr.addr_bytes[0] != 0 || ether->src_addr.addr_bytes[5] != 0) {
            server_ = ether->src_addr;
        }
        std::uint32_t destination = 0;
        std::memcpy(&destination, &reinterpret_cast<const rte_ipv4_hdr*>(ether + 1)->dst_addr, sizeof(destination));
        const auto known = sockets_.find(destination);
        if (known == sockets_.end()) {
            return false;
        }
        std::array<std::uint8_t, 16384> whole{};
        const std::uint32_t bytes = std::min<std::uint32_t>(frame.pkt_len, whole.size());
        const void* const read = rte_pktmbuf_read(&frame, 0, bytes, whole.data());
        (void)sendto(socket_, static_cast<const std::uint8_t*>(read) + sizeof(*ether), bytes - sizeof(*ether), 0,
                     reinterpret_cast<const sockaddr*>(&known->second), sizeof(known->second));
        return true;
    }

    bool take_in() {
        for (unsigned taken = 0;; ++taken) {
            rte_mbuf* const frame = rte_pktmbuf_alloc(pool_);
            if (frame == nullptr || taken == kBurst) {
                rte_pktmbuf_free(frame);
                return taken != 0;
            }
            sockaddr_in from{};
            socklen_t length = sizeof(from);
            auto* const ether = rte_pktmbuf_mtod(frame, rte_ether_hdr*);
            const ssize_t bytes = recvfrom(socket_, ether + 1, rte_pktmbuf_tailroom(frame) - sizeof(*ether), 0,
                                           reinterpret_cast<sockaddr*>(&from), &length);
            if (bytes < static_cast<ssize_t>(sizeof(rte_ipv4_hdr))) {
                rte_pktmbuf_free(frame);
                return taken != 0;
            }
            std::uint32_t source = 0;
            std::memcpy(&source, &reinterpret_cast<const rte_ipv4_hdr*>(ether + 1)->src_addr, sizeof(source));
            sockets_[source] = from;
            ether->dst_addr = server_;
            ether->src_addr = mac_;
            ether->ether_type = htons(RTE_ETHER_TYPE_IPV4);
            frame->data_len = static_cast<std::uint16_t>(static_cast<std::size_t>(bytes) + sizeof(*ether));
            frame->pkt_len = frame->data_len;
            send(kInside, frame);
        }
    }

    rte_mempool* pool_;
    int socket_;
    rte_ether_addr mac_{};
    rte_ether_addr server_{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};  // until it has sent a frame
    std::map<std::uint32_t, sockaddr_in> sockets_;                 // by the IPv4 address of their host
};

}  // namespace

int main(int argc, char** argv) {
    const int used = rte_eal_init(argc, argv);
    if (used < 0 || argc - used != 3) {
        fail("it wants EAL arguments -- ADDRESS PORT");
    }
    std::signal(SIGTERM, [](int) { stopped = 1; });
    rte_mempool* const pool = rte_pktmbuf_pool_create("relay", kBuffers, 0, 0, 9216 + RTE_PKTMBUF_HEADROOM, 0);
    if (pool == nullptr || rte_eth_dev_count_avail() != 2) {
        fail("it wants two devices, and memory for buffers");
    }
    open_device(kInside, pool);
    open_device(kOutside, pool);
    Relay relay(pool, open_socket(argv[used + 1], argv[used + 2]));
    while (stopped == 0) {
        if (!relay.turn()) {
            sched_yield();  // the link's ends may share this CPU
        }
    }
    rte_eth_dev_stop(kInside);
    rte_eth_dev_stop(kOutside);
    rte_eal_cleanup();
    return 0;
}
