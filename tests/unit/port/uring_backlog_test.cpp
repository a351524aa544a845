// A socket that refuses: its buffer is full, or the route to one peer takes less than others. This program's sendmsg()
// asks the test first.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>

#include "lib/port/udp_socket.hpp"
#include "tests/unit/port/uring_port_pair.hpp"

namespace {

// Returns 0, or the errno with which a message fails.
std::function<int(const msghdr&)> refuses;

}  // namespace

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    if (refuses) {
        if (const int reason = refuses(*message); reason != 0) {
            errno = reason;
            return -1;
        }
    }
    static const auto kernels = reinterpret_cast<decltype(&sendmsg)>(dlsym(RTLD_NEXT, "sendmsg"));
    return kernels(fd, message, flags);
}

namespace cairn::port {
namespace {

std::size_t bytes_of(const msghdr& message) {
    std::size_t bytes = 0;
    for (const iovec& piece : std::span(message.msg_iov, message.msg_iovlen)) {
        bytes += piece.iov_len;
    }
    return bytes;
}

// Returns the segment size of a message; 0 for one datagram.
int segment_of(const msghdr& message) {
    std::uint16_t bytes = 0;
    auto* const header = const_cast<msghdr*>(&message);
    for (cmsghdr* each = CMSG_FIRSTHDR(header); each != nullptr; each = CMSG_NXTHDR(header, each)) {
        if (each->cmsg_level == IPPROTO_UDP && each->cmsg_type == UDP_SEGMENT) {
            std::memcpy(&bytes, CMSG_DATA(each), sizeof(bytes));
        }
    }
    return bytes;
}

net::IpAddress remote_of(const msghdr& message) {
    std::uint16_t port = 0;
    return from_sockaddr(*static_cast<const sockaddr_storage*>(message.msg_name), port);
}

class UringBacklog : public UringPortPair {
protected:
    void TearDown() override { refuses = nullptr; }
    static int full(const msghdr&) { return EAGAIN; }
    // Returns the behaviour of a route with this MTU for messages to this address.
    static auto route(const net::IpAddress& to, int mtu) {
        return [to, mtu](const msghdr& message) {
            const int segment = segment_of(message);
            const bool is_long = remote_of(message) == to && static_cast<int>(bytes_of(message)) > mtu;
            return !is_long ? 0 : segment == 0 ? EMSGSIZE : segment > mtu ? EINVAL : 0;
        };
    }
};

TEST_P(UringBacklog, DatagramsThatFoundTheBufferFullAllArriveWithTheBytesTheyHad) {
    refuses = full;
    const std::vector<std::size_t> lengths(100, 1'064);
    std::vector<std::vector<std::uint8_t>> tails;
    tails.reserve(lengths.size());
    send(lengths, &tails);
    EXPECT_TRUE(here->holds_back());
    const auto all = [](const TxPacket&) { return true; };
    here->copy_tails(TailFilter(all));
    for (auto& tail : tails) {
        std::fill(tail.begin(), tail.end(), std::uint8_t{0xdd});
    }
    refuses = nullptr;
    std::array<PacketRef, 1> none;
    EXPECT_EQ(here->receive_burst(std::span(none).first(0), now), 0U);
    auto got = receive(lengths.size());
    expect_whole(got, lengths);
    EXPECT_FALSE(here->holds_back());
}

TEST_P(UringBacklog, OnlyThoseTailsAreCopiedThatAreMeant) {
    refuses = full;
    const std::vector<std::size_t> lengths{1'064, 1'064, 68, 1'064, 4'160, 1'064};
    std::vector<std::vector<std::uint8_t>> tails;
    tails.reserve(lengths.size());
    send(lengths, &tails);
    int copied = 0;
    const auto every_other = [&](const TxPacket& packet) {
        return packet.tail.data() == tails[1].data() || packet.tail.data() == tails[4].data();
    };
    const auto counts = [&](const TxPacket& packet) {
        ++copied;
        return every_other(packet);
    };
    here->copy_tails(TailFilter(counts));
    EXPECT_EQ(copied, 6);
    for (const std::size_t changed : {1U, 4U}) {
        std::fill(tails[changed].begin(), tails[changed].end(), std::uint8_t{0xdd});
    }
    refuses = nullptr;
    std::array<PacketRef, 1> none;
    EXPECT_EQ(here->receive_burst(std::span(none).first(0), now), 0U);
    auto got = receive(lengths.size());
    expect_whole(got, lengths);
}

// If room appears while a turn's batches leave, the batches after a refused one do not overtake it.
TEST_P(UringBacklog, BatchesStayInOrderBehindOneThatFoundNoRoom) {
    int tries = 0;
    refuses = [&tries](const msghdr&) { return ++tries == 2 ? EAGAIN : 0; };
    const std::vector<std::size_t> lengths{68, 100, 132, 164};  // growing: a batch each
    send(lengths);
    EXPECT_EQ(tries, 2);
    EXPECT_EQ(here->counters().of(UringCounter::Transmitted), 1U);
    std::array<PacketRef, 1> none;
    EXPECT_EQ(here->receive_burst(std::span(none).first(0), now), 0U);
    auto got = receive(lengths.size());
    expect_whole(got, lengths);
}

// An event loop would sleep on unsent packets: a peer without calls sends nothing.
TEST_P(UringBacklog, TheDescriptorIsReadableWhenThereIsRoomAgainForWhatFoundNone) {
    pollfd one{here->descriptor(), POLLIN, 0};
    here->wait({}, -1);
    EXPECT_EQ(poll(&one, 1, 0), 0) << "room alone wakes nobody";
    refuses = full;
    send({68});
    EXPECT_EQ(poll(&one, 1, 10'000), 1);
    here->wait({}, -1);
    EXPECT_EQ(poll(&one, 1, 10'000), 1) << "it waits still";
    refuses = nullptr;
    std::array<PacketRef, 1> none;
    EXPECT_EQ(here->receive_burst(std::span(none).first(0), now), 0U);
    here->wait({}, -1);
    EXPECT_EQ(poll(&one, 1, 0), 0);
    auto got = receive(1);
    expect_whole(got, {68});
}

TEST_P(UringBacklog, ARouteThatTakesNoBatchesIsNoOtherPeersMatter) {
    const std::vector<std::size_t> lengths(10, 1'000);
    const net::IpAddress other = net::IpAddress::parse("127.0.0.77").value();
    refuses = [this](const msghdr& message) {
        return remote_of(message) == peer().local_address() && segment_of(message) != 0 ? EIO : 0;
    };
    const auto batches = [this] { return here->counters().of(UringCounter::TransmittedBatches); };
    send(lengths);
    EXPECT_EQ(here->counters().of(UringCounter::SentSingly), 10U);
    send(lengths);  // one by one, so that none is refused
    EXPECT_EQ(here->counters().of(UringCounter::SentSingly), 10U);
    EXPECT_EQ(batches(), 10U);
    Path* const to_peer = std::exchange(path, here->open_path({here->local_address(), other, 0, 0}, now));
    send(lengths);
    EXPECT_EQ(batches(), 11U);
    path = to_peer;
    refuses = nullptr;
    now = now + seconds(2);
    send(lengths);
    EXPECT_EQ(batches(), 12U);
    EXPECT_EQ(here->counters().of(UringCounter::SendFailed), 0U);
    auto got = receive(30);
    std::vector<std::size_t> thrice(30, 1'000);
    for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].data[30], content(i % 10, 30));
        EXPECT_TRUE(got[i].icrc_ok);
    }
    EXPECT_EQ(got.size(), 30U);
    peer().release_burst(got);
}

TEST_P(UringBacklog, DatagramsTooLongForTheirRouteAreNamedAsThat) {
    refuses = route(peer().local_address(), 1'420);
    send({4'000, 4'000, 68});
    EXPECT_EQ(here->counters().of(UringCounter::RouteMtu), 2U);
    EXPECT_EQ(here->counters().of(UringCounter::SendFailed), 0U);
    send({4'000});
    EXPECT_EQ(here->counters().of(UringCounter::RouteMtu), 3U);
    auto got = receive(1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_TRUE(got[0].icrc_ok);
    EXPECT_EQ(got[0].len, 68U);
    peer().release_burst(got);
}

INSTANTIATE_TEST_SUITE_P(Modes, UringBacklog, testing::Values(Setup{SocketMode::Plain, "127.0.0.1", "127.0.0.2"}),
                         name_of);

// Numbered messages over a socket whose buffer is full most of the time.
class SocketIoOrder : public testing::TestWithParam<SocketMode> {
protected:
    void SetUp() override {
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends_.data()), 0);
        if (GetParam() == SocketMode::Plain) {
            io = SocketIo::make_plain(ends_[0]);
            return;
        }
        auto ring = SocketIo::make_ring(ends_[0], GetParam(), kMessages);
        if (!ring.ok()) {
            GTEST_SKIP() << ring.error().text();
        }
        io = std::move(ring).value();
    }
    void TearDown() override {
        io.reset();
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    void fill(std::uint32_t first) {
        for (std::uint32_t i = 0; i < kMessages; ++i) {
            numbers[i] = first + i;
            pieces[i] = {&numbers[i], sizeof(numbers[i])};
            messages[i] = {};
            messages[i].header.msg_iov = &pieces[i];
            messages[i].header.msg_iovlen = 1;
        }
    }
    [[nodiscard]] std::uint32_t sent() const {
        std::uint32_t count = 0;
        for (const SocketMessage& each : messages) {
            count += each.result >= 0 ? 1U : 0U;
        }
        return count;
    }

    static constexpr std::uint32_t kMessages = 16;
    std::array<int, 2> ends_{};
    std::unique_ptr<SocketIo> io;
    std::array<std::uint32_t, kMessages> numbers{};
    std::array<iovec, kMessages> pieces{};
    std::array<SocketMessage, kMessages> messages{};
};

TEST_P(SocketIoOrder, NoneLeavesBehindOneThatFoundNoRoom) {
    constexpr std::uint32_t kLast = 2'000;
    std::thread reader([this] {
        std::uint32_t number = 0;
        for (std::uint32_t expected = 0; expected < kLast; ++expected) {
            ASSERT_EQ(recv(ends_[1], &number, sizeof(number), 0), ssize_t{sizeof(number)});
            ASSERT_EQ(number, expected);
        }
    });
    for (std::uint32_t next = 0; next < kLast;) {
        fill(next);
        const std::size_t count = std::min(kMessages, kLast - next);
        io->exchange(std::span(messages).first(count), nullptr);
        for (std::size_t i = 0; i < count && messages[i].result >= 0; ++i) {
            ++next;
        }
    }
    reader.join();
}

TEST_P(SocketIoOrder, OneThatIsRefusedForGoodHoldsNobodyUp) {
    for (const bool malformed : {false, true}) {
        fill(0);
        std::vector<std::uint8_t> too_long(std::size_t{8} << 20U);
        pieces[3] = pieces[4] = {too_long.data(), too_long.size()};
        if (malformed) {
            messages[4].header.msg_iovlen = 5'000;  // the kernel notices it before any is sent
        }
        SocketMessage receive;
        iovec nowhere{};
        receive.header.msg_iov = &nowhere;
        io->exchange(std::span(messages).first(8), &receive);
        EXPECT_EQ(messages[3].result, -EMSGSIZE);
        EXPECT_EQ(messages[4].result, -EMSGSIZE);
        EXPECT_EQ(receive.result, -EAGAIN);
        for (const std::size_t i : {0U, 2U, 5U, 7U}) {
            EXPECT_EQ(messages[i].result, 4) << i;
        }
        for (const std::uint32_t expected : {0U, 1U, 2U, 5U, 6U, 7U}) {
            std::uint32_t number = 0;
            ASSERT_EQ(recv(ends_[1], &number, sizeof(number), MSG_DONTWAIT), ssize_t{sizeof(number)});
            EXPECT_EQ(number, expected);
        }
    }
}

// A ring belongs to the thread that used it first: the kernel refuses it to others.
TEST_P(SocketIoOrder, ARingThatTheKernelRefusesIsDoneWithout) {
    if (GetParam() == SocketMode::Sqpoll) {
        GTEST_SKIP() << "its own thread may take what another submits";
    }
    fill(0);
    io->exchange(std::span(messages).first(2), nullptr);
    EXPECT_EQ(sent(), 2U + kMessages - 2);  // messages not passed on count as 0
    std::thread other([this] {
        fill(2);
        io->exchange(std::span(messages).first(3), nullptr);
    });
    other.join();
    for (std::uint32_t expected = 0; expected < 5; ++expected) {
        std::uint32_t number = 0;
        ASSERT_EQ(recv(ends_[1], &number, sizeof(number), MSG_DONTWAIT), ssize_t{sizeof(number)});
        EXPECT_EQ(number, expected);
    }
    EXPECT_EQ(io->describe().find("failed") != std::string::npos, GetParam() == SocketMode::Defer);
}

INSTANTIATE_TEST_SUITE_P(Modes, SocketIoOrder,
                         testing::Values(SocketMode::Defer, SocketMode::Sqpoll, SocketMode::Plain));

}  // namespace
}  // namespace cairn::port
