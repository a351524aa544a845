// The sockets of an address in this machine's kernel: steering, sockets left by an earlier process, draining.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "lib/broker/kernel_group.hpp"
#include "lib/wire/bth.hpp"
#include "tests/support/loopback.hpp"

namespace cairn::broker {
namespace {

class KernelGroupTest : public testing::TestWithParam<bool> {  // true: IPv6
protected:
    void SetUp() override {
        if (GetParam() && !test::has_loopback_v6()) {
            GTEST_SKIP() << "there is no ::1 here";
        }
        place = {net::IpAddress::parse(GetParam() ? "::1" : test::loopback(1)).value(), test::own_udp_port()};
    }
    void open(KernelGroup& group, std::size_t sockets) {
        ASSERT_TRUE(group.open());
        while (group.sockets().size() < sockets) {
            ASSERT_EQ(group.grow(), KernelGroup::Growth::Grown);
        }
    }
    void send_to(std::uint32_t qpn, std::size_t bytes = 16) {
        std::array<std::uint8_t, 16> datagram{};
        reinterpret_cast<wire::RawBth*>(datagram.data())->dest_qpn.set(qpn);
        const OwnedFd fd(socket(place.local.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_storage to{};
        const socklen_t length = port::to_sockaddr(place.local, place.udp_port, to);
        ASSERT_EQ(sendto(fd.get(), datagram.data(), bytes, 0, reinterpret_cast<sockaddr*>(&to), length),
                  static_cast<ssize_t>(bytes));
    }
    static int waiting(const port::UdpSocket& socket) {
        int count = 0;
        std::array<std::uint8_t, 16> room{};
        while (recv(socket.fd(), room.data(), room.size(), MSG_DONTWAIT) >= 0) {
            ++count;
        }
        return count;
    }
    // Returns the socket at which a datagram for the queue pair arrives.
    int steered(KernelGroup& group, std::uint32_t qpn) {
        for (std::size_t i = 0; i < group.sockets().size(); ++i) {
            group.drain(i);
        }
        send_to(qpn);
        for (std::size_t i = 0; i < group.sockets().size(); ++i) {
            if (waiting(group.sockets()[i]) != 0) {
                return static_cast<int>(i);
            }
        }
        return -1;
    }
    static std::vector<OwnedFd> copies(const KernelGroup& group, std::size_t count) {
        std::vector<OwnedFd> made;
        for (const port::UdpSocket& each : group.sockets()) {
            if (made.size() < count) {
                made.emplace_back(dup(each.fd()));
            }
        }
        return made;
    }

    Place place;
};

TEST_P(KernelGroupTest, TheLowBitsOfAQueuePairNameItsSocket) {
    KernelGroup group(place);
    open(group, 4);
    for (const std::uint32_t high : {0U, 0x100U, 0xffff00U}) {
        for (std::uint32_t low = 2; low < 4; ++low) {
            EXPECT_EQ(steered(group, high | low), static_cast<int>(low));
        }
    }
    EXPECT_EQ(steered(group, 0x101), 1);
    for (const std::uint32_t management : {0U, 1U, 0x100U, 0x104U, 0x1ffU}) {
        EXPECT_EQ(steered(group, management), 0);
    }
    send_to(0x102, 11);
    EXPECT_EQ(waiting(group.sockets()[0]), 1);
}

TEST_P(KernelGroupTest, AnAddressIsOpenedOnce) {
    KernelGroup first(place);
    KernelGroup second(place);
    EXPECT_TRUE(first.open());
    EXPECT_FALSE(second.open());
}

TEST_P(KernelGroupTest, DrainingLeavesOtherSocketsAlone) {
    KernelGroup group(place);
    open(group, 3);
    for (int i = 0; i < 5; ++i) {
        send_to(0x101);
        send_to(0x102);
    }
    group.drain(1);
    EXPECT_EQ(waiting(group.sockets()[1]), 0);
    EXPECT_EQ(waiting(group.sockets()[2]), 5);
}

TEST_P(KernelGroupTest, WhatAnEarlierProcessLeftGoesOnAndGrows) {
    auto first = std::make_unique<KernelGroup>(place);
    open(*first, 5);
    std::vector<OwnedFd> left = copies(*first, 3);
    first.reset();  // the two others close
    KernelGroup second(place);
    EXPECT_FALSE(second.open());
    ASSERT_TRUE(second.adopt(std::move(left)));
    ASSERT_EQ(second.sockets().size(), 3U);
    for (int low = 1; low < 3; ++low) {
        EXPECT_EQ(steered(second, 0x100U | static_cast<std::uint32_t>(low)), low);
    }
    EXPECT_EQ(second.grow(), KernelGroup::Growth::Grown);
    EXPECT_EQ(steered(second, 0x103), 3);
    EXPECT_EQ(steered(second, 0x104), 0);  // it knows again how many sockets there are
}

TEST_P(KernelGroupTest, BehindSocketsThatItDoesNotKnowItDoesNotGrow) {
    auto first = std::make_unique<KernelGroup>(place);
    open(*first, 4);
    std::vector<OwnedFd> left = copies(*first, 2);
    std::vector<OwnedFd> all = copies(*first, 4);
    first.reset();
    KernelGroup second(place);
    ASSERT_TRUE(second.adopt(std::move(left)));
    EXPECT_EQ(second.grow(), KernelGroup::Growth::Hidden);
    send_to(0x103);  // works as before
    std::array<std::uint8_t, 16> room{};
    int last = 0;
    while (recv(all[3].get(), room.data(), room.size(), MSG_DONTWAIT) == 16) {
        ++last;
    }
    EXPECT_EQ(last, 1);
    ASSERT_TRUE(second.adopt(std::move(all)));
    EXPECT_EQ(second.sockets().size(), 4U);
    EXPECT_EQ(second.grow(), KernelGroup::Growth::Grown);
    EXPECT_EQ(steered(second, 0x104), 4);
}

TEST_P(KernelGroupTest, SocketsOfAnotherAddressOrOrderAreRefused) {
    KernelGroup group(place);
    open(group, 3);
    std::vector<OwnedFd> left = copies(group, 3);
    std::swap(left[1], left[2]);
    EXPECT_FALSE(group.adopt(std::move(left)));
    Place elsewhere = place;
    elsewhere.udp_port = static_cast<std::uint16_t>(place.udp_port + 1);
    KernelGroup other(elsewhere);
    EXPECT_FALSE(other.adopt(copies(group, 2)));
    EXPECT_TRUE(other.sockets().empty());
    EXPECT_TRUE(group.adopt(copies(group, 3)));
    EXPECT_EQ(group.sockets().size(), 3U);
}

INSTANTIATE_TEST_SUITE_P(Families, KernelGroupTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& family) { return family.param ? "V6" : "V4"; });

}  // namespace
}  // namespace cairn::broker
