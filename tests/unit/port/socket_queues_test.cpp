// Sockets of one address on this machine's kernel: the datagrams of each, the users that may have the address, and the
// remains of failed attempts.
#include "lib/port/socket_queues.hpp"

#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "lib/port/datagram.hpp"
#include "tests/support/pcap_reader.hpp"
#include "tests/unit/port/workers_on_sockets.hpp"

namespace {

int refused_option = -1;  // an option of SOL_SOCKET that the kernel of this program seems not to know

}  // namespace

extern "C" int setsockopt(int fd, int level, int option, const void* value, socklen_t bytes) noexcept {
    if (level == SOL_SOCKET && option == refused_option) {
        errno = EPERM;
        return -1;
    }
    static const auto kernels = reinterpret_cast<decltype(&setsockopt)>(dlsym(RTLD_NEXT, "setsockopt"));
    return kernels(fd, level, option, value, bytes);
}

namespace cairn::port {
namespace {

static_assert(QpnOwners(1).bits() == 0 && QpnOwners(1).of(Qpn{0xffffff}) == 0);
static_assert(QpnOwners(2).bits() == 1 && QpnOwners(3).bits() == 2 && QpnOwners(256).bits() == 8);
static_assert(QpnOwners(3).step() == 4 && QpnOwners(3).of(Qpn{0x102}) == 2 && QpnOwners(3).of(Qpn{0x103}) == 0);
static_assert(QpnOwners(2).of(Qpn{1}) == 0 && QpnOwners(2).of(Qpn{3}) == 1);

class SocketQueuesTest : public WorkersOnSockets {
protected:
    void TearDown() override { refused_option = -1; }
    // Sends datagrams of a foreign peer, each alone, from the port next to ours.
    static void send_bare(const net::IpAddress& to, std::span<const std::uint8_t> bytes) {
        const int fd = socket(to.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        sockaddr_storage address{};
        const socklen_t length = to_sockaddr(to, test::own_udp_port(), address);
        EXPECT_EQ(sendto(fd, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&address), length),
                  static_cast<ssize_t>(bytes.size()));
        ::close(fd);
    }
    static int bind_bare(const net::IpAddress& to, bool shared) {
        const int fd = socket(to.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const int yes = shared ? 1 : 0;
        EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)), 0);
        sockaddr_storage address{};
        const socklen_t length = to_sockaddr(to, test::own_udp_port(), address);
        if (bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
            ::close(fd);
            return -1;
        }
        return fd;
    }
};

TEST_P(SocketQueuesTest, EachQueuePairsDatagramsReachItsWorkersSocket) {
    for (const std::uint32_t workers : {1U, 2U, 3U, 4U}) {
        const Ports ports = open(config_of(1, workers));
        std::vector<std::uint64_t> expected(workers);
        for (const std::uint32_t qpn : {0U, 1U, 2U, 3U, 4U, 0x100U, 0x101U, 0x102U, 0x103U, 0xfffffeU, 0xffffffU}) {
            std::array<std::uint8_t, kBytes> datagram;
            compose(datagram.data(), qpn, 0);
            send_bare(address(1), datagram);  // its ICRC is wrong, so that it is counted
            const std::uint16_t owner = QpnOwners(workers).of(Qpn{qpn});
            ++expected[owner];
            for (std::uint32_t worker = 0; worker < workers; ++worker) {
                EXPECT_TRUE(receive(*ports[worker], 1).empty());
                EXPECT_EQ(count_of(*ports[worker], UringCounter::BadIcrc), expected[worker])
                    << qpn << " of " << workers;
                EXPECT_EQ(count_of(*ports[worker], UringCounter::HandedOver), 0U) << qpn << " of " << workers;
            }
        }
    }
}

TEST_P(SocketQueuesTest, WhatIsTooShortToNameAQueuePairGoesToTheFirstWorker) {
    const Ports ports = open(config_of(1, 2));
    std::array<std::uint8_t, kBytes> datagram;
    compose(datagram.data(), 0x101, 0);
    for (const std::size_t bytes : {0U, 4U, 7U, 8U, 11U}) {
        send_bare(address(1), std::span(datagram).first(bytes));
    }
    EXPECT_TRUE(receive(*ports[0], 1).empty());
    EXPECT_EQ(count_of(*ports[0], UringCounter::TooShort), 5U);
    send_bare(address(1), std::span(datagram).first(12));  // without an ICRC
    EXPECT_TRUE(receive(*ports[1], 1).empty());
    EXPECT_EQ(count_of(*ports[1], UringCounter::TooShort), 1U);
}

TEST_P(SocketQueuesTest, AnAddressOfAnotherProcessIsRefusedEvenIfThatWouldShareIt) {
    for (const bool shared : {false, true}) {
        const int other = bind_bare(address(2), shared);
        ASSERT_GE(other, 0);
        const auto refused = SocketQueues::open(config_of(2, 2));
        ASSERT_FALSE(refused.ok()) << (shared ? "shared" : "");
        EXPECT_NE(refused.error().text().find(address(2).text()), std::string::npos);
        EXPECT_NE(refused.error().remedy.find("another process has it"), std::string::npos);
        ::close(other);
    }
}

TEST_P(SocketQueuesTest, AnAddressWithSeveralSocketsIsRefusedToOthers) {
    const auto first = SocketQueues::open(config_of(2, 2));
    ASSERT_TRUE(first.ok());
    EXPECT_FALSE(SocketQueues::open(config_of(2, 2)).ok());
    EXPECT_FALSE(SocketQueues::open(config_of(2, 1)).ok());
    EXPECT_LT(bind_bare(address(2), false), 0);
}

TEST_P(SocketQueuesTest, AKernelThatDoesNotSteerIsNamedAndNothingIsLeft) {
    for (const int option : {SO_ATTACH_REUSEPORT_CBPF, SO_REUSEPORT}) {
        refused_option = option;
        const auto refused = SocketQueues::open(config_of(3, 2));
        ASSERT_FALSE(refused.ok());
        EXPECT_NE(refused.error().text().find(option == SO_REUSEPORT ? "SO_REUSEPORT" : "SO_ATTACH_REUSEPORT_CBPF"),
                  std::string::npos);
        EXPECT_NE(refused.error().remedy.find("-l 0"), std::string::npos);
        EXPECT_TRUE(SocketQueues::open(config_of(3, 1)).ok());  // needs neither of them
        refused_option = -1;
        EXPECT_TRUE(SocketQueues::open(config_of(3, 2)).ok());
    }
}

TEST_P(SocketQueuesTest, MoreWorkersThanThereCanBeAreRefused) {
    const auto refused = SocketQueues::open(config_of(3, 257));
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().text().find("257 workers"), std::string::npos);
    EXPECT_NE(refused.error().remedy.find("256 lcores"), std::string::npos);
}

// Ten are left: enough for some of eight sockets, or for all and some of the descriptors that wake their workers.
TEST_P(SocketQueuesTest, WithoutDescriptorsNothingIsLeftBehind) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = dup(0);
    ::close(next);
    for (const int left : {4, 12}) {
        const rlimit few{static_cast<rlim_t>(next + left), before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        const auto refused = SocketQueues::open(config_of(3, 8));
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        ASSERT_FALSE(refused.ok());
        EXPECT_NE(refused.error().remedy.find("ulimit -n"), std::string::npos) << refused.error().text();
        EXPECT_TRUE(SocketQueues::open(config_of(3, 8)).ok());
    }
}

TEST_P(SocketQueuesTest, SocketsAreThereUntilTheLastPortEnds) {
    Ports ports = open(config_of(3, 3));
    ports[0].reset();
    std::array<std::uint8_t, kBytes> datagram;
    compose(datagram.data(), 0x102, 0);
    send_bare(address(3), datagram);  // otherwise the kernel has numbered the sockets anew
    EXPECT_TRUE(receive(*ports[2], 1).empty());
    EXPECT_EQ(count_of(*ports[2], UringCounter::BadIcrc), 1U);
    EXPECT_FALSE(SocketQueues::open(config_of(3, 1)).ok());
    ports.clear();
    EXPECT_TRUE(SocketQueues::open(config_of(3, 1)).ok());
}

TEST_P(SocketQueuesTest, PortsSayWhichSocketTheyHave) {
    const Ports ports = open(config_of(3, 2));
    EXPECT_NE(ports[1]->describe().find("socket 2 of 2"), std::string::npos) << ports[1]->describe();
}

TEST_P(SocketQueuesTest, ThePortOfOneWorkerSaysNothingOfOthers) {
    EXPECT_EQ(open(config_of(3, 1))[0]->describe().find("socket 1 of"), std::string::npos);
}

TEST_P(SocketQueuesTest, ACaptureHasThePacketsOfAllWorkers) {
    SocketQueuesConfig config = config_of(5, 2);
    config.pcap = testing::TempDir() + "cairn_queues_" + std::to_string(::getpid()) + ".pcap";
    {
        const Ports ports = open(config);
        for (std::uint32_t round = 0; round < 5; ++round) {
            for (const std::uint32_t worker : {0U, 1U}) {
                send(*ports[worker], address(5), {0x100 + worker, 0x101 - worker});
            }
            EXPECT_EQ(receive(*ports[0], 2).size(), 2U);
            EXPECT_EQ(receive(*ports[1], 2).size(), 2U);
        }
    }
    const std::vector<test::Frame> frames = test::read_pcap(config.pcap);
    ::unlink(config.pcap.c_str());
    ASSERT_EQ(frames.size(), 40U) << "sent and received";
    std::size_t qpns = 0;
    for (const test::Frame& frame : frames) {
        const ParsedFrame parsed = parse_frame(frame);
        ASSERT_TRUE(parsed.ok());
        EXPECT_EQ(icrc_of_frame(parsed.value()), carried_icrc(parsed.value()));
        qpns += frame[frame.size() - kBytes + 7];
    }
    EXPECT_EQ(qpns, 20U) << "half of them are of either worker";
}

INSTANTIATE_TEST_SUITE_P(Families, SocketQueuesTest, testing::Bool(), family_of);

}  // namespace
}  // namespace cairn::port
