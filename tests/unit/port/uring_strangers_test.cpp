// UringPort and a foreign peer whose kernel counts IPv4 IDs, known or not.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "lib/port/ip_id.hpp"
#include "tests/support/loopback.hpp"
#include "tests/unit/port/uring_port_pair.hpp"

namespace cairn::port {
namespace {

class UringPortStrangers : public UringPortPair {};

// A socket whose kernel counts IPv4 IDs, as Soft-RoCE does, from a port of its own.
class CountingPeer {
public:
    CountingPeer(const net::IpAddress& to, std::uint16_t port)
        : path_({net::IpAddress::parse(test::loopback(9)).value(), to, port, 0}) {
        to_bytes_ = to_sockaddr(to, kPort, to_);
        sockaddr_storage from{};
        const socklen_t from_bytes = to_sockaddr(path_.key().local, port, from);
        EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&from), from_bytes), 0);
    }
    CountingPeer(const CountingPeer&) = delete;
    CountingPeer& operator=(const CountingPeer&) = delete;
    ~CountingPeer() { ::close(socket_); }

    bool damages = false;  // damages its packets, so that no ID explains them

    void send(std::uint16_t id) {
        std::array<std::uint8_t, 12 + 100> room{};
        std::uint8_t* const datagram = room.data() + 12;
        datagram[0] = 0x64;
        datagram[50] = static_cast<std::uint8_t>(id);
        // That path writes kPort's source; only its destination port 4791 and ours differ from the wire.
        const std::uint32_t icrc =
            path_.icrc(Direction::Transmit, datagram, 100) ^ deltas_.delta(100, id) ^ (damages ? 0x5a5a5a5aU : 0U);
        std::memcpy(datagram + 96, &icrc, 4);
        ASSERT_EQ(sendto(socket_, datagram, 100, 0, reinterpret_cast<const sockaddr*>(&to_), to_bytes_), 100);
    }

private:
    int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    Path path_;
    sockaddr_storage to_{};
    socklen_t to_bytes_ = 0;
    IpIdDeltas deltas_;
};

TEST_P(UringPortStrangers, APeerThatCountsItsIdsIsUnderstood) {
    if (!path->is_v4()) {
        GTEST_SKIP() << "IPv6 has no ID";
    }
    CountingPeer counting(peer().local_address(), 0xc123);
    for (std::uint16_t id = 40'000; id < 40'020; ++id) {
        counting.send(id);
    }
    std::vector<PacketRef> got = receive(20);
    ASSERT_EQ(got.size(), 20U);
    for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i].icrc_ok);
        EXPECT_EQ(got[i].ip_id, 40'000 + i);
        EXPECT_EQ(got[i].path->key().udp_source_port, 0xc123);
    }
    peer().release_burst(got);
    EXPECT_EQ(peer().counters().of(UringCounter::SolvedIds), 20U);
}

TEST_P(UringPortStrangers, WhomAnotherWorkerHeardHasThePathThatItsOwnDatagramsHave) {
    if (!path->is_v4()) {
        GTEST_SKIP() << "IPv6 has no ID";
    }
    const auto from = net::IpAddress::parse(test::loopback(9)).value();
    Path* const back = peer().path_back({{peer().local_address(), from, 0xc129, 0}, {}}, now);
    ASSERT_NE(back, nullptr);
    EXPECT_TRUE(back->resolved());
    CountingPeer counting(peer().local_address(), 0xc129);
    counting.send(0);
    std::vector<PacketRef> got = receive(1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].path, back);
    peer().release_burst(got);
}

TEST_P(UringPortStrangers, AStrangerWhoseDatagramIsDamagedIsNobodyYet) {
    if (!path->is_v4()) {
        GTEST_SKIP() << "IPv6 has no ID";
    }
    CountingPeer counting(peer().local_address(), 0xc126);
    counting.damages = true;
    counting.send(0);
    EXPECT_TRUE(receive(1).empty());
    EXPECT_EQ(peer().counters().of(UringCounter::BadIcrc), 1U);
    EXPECT_EQ(peer().buffers_in_use(), 0U);
    counting.damages = false;
    counting.send(0);
    std::vector<PacketRef> got = receive(1);
    ASSERT_EQ(got.size(), 1U);
    EXPECT_TRUE(got[0].icrc_ok);
    EXPECT_EQ(got[0].path->key().udp_source_port, 0xc126);
    peer().release_burst(got);
    counting.damages = true;
    counting.send(0);
    got = receive(1);
    ASSERT_EQ(got.size(), 1U) << "it is known now";
    EXPECT_FALSE(got[0].icrc_ok);
    peer().release_burst(got);
}

TEST_P(UringPortStrangers, APeersIdsCountOverAllItsPorts) {
    if (!path->is_v4()) {
        GTEST_SKIP() << "IPv6 has no ID";
    }
    constexpr std::uint16_t kLast = 40'400;
    CountingPeer quiet(peer().local_address(), 0xc124);
    CountingPeer busy(peer().local_address(), 0xc125);
    quiet.send(40'000);
    std::size_t waiting = 1;
    for (std::uint16_t id = 40'001; id < kLast; ++id) {
        busy.send(id);
        std::vector<PacketRef> got = ++waiting == 100 ? receive(waiting) : std::vector<PacketRef>{};
        waiting -= got.size();
        peer().release_burst(got);
    }
    quiet.send(kLast);
    std::vector<PacketRef> got = receive(waiting + 1);
    ASSERT_EQ(got.size(), waiting + 1);
    EXPECT_TRUE(got.back().icrc_ok);
    EXPECT_EQ(got.back().ip_id, kLast);
    peer().release_burst(got);
    EXPECT_EQ(peer().counters().of(UringCounter::BadIcrc), 0U);
}

INSTANTIATE_TEST_SUITE_P(Modes, UringPortStrangers, testing::ValuesIn(kSetups), name_of);

}  // namespace
}  // namespace cairn::port
