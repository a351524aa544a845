// Socket addresses, and the device that reaches a peer.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cerrno>
#include <vector>

#include "lib/rdmacm/ends.hpp"

namespace cairn::rdmacm {
namespace {

net::IpAddress ip(const char* text) {
    return net::IpAddress::parse(text).value();
}

End through_socket_address(const End& end) {
    sockaddr_storage address{};
    const socklen_t bytes = write_end(end, address);
    EXPECT_EQ(bytes, length_of(reinterpret_cast<const sockaddr*>(&address)));
    return end_of(reinterpret_cast<const sockaddr*>(&address)).value();
}

TEST(RdmacmEndsTest, AnEndComesBackFromItsSocketAddress) {
    const End v4{ip("10.1.2.3"), 7174, false, 0};
    const End v6{ip("fe80::1"), 5, true, 3};
    const End mapped{ip("10.1.2.3"), 7174, true, 0};
    EXPECT_EQ(through_socket_address(v4), v4);
    EXPECT_EQ(through_socket_address(v6), v6);
    EXPECT_EQ(through_socket_address(mapped), mapped);
}

TEST(RdmacmEndsTest, OtherFamiliesAreNoEnds) {
    sockaddr_storage address{};
    address.ss_family = AF_UNIX;
    EXPECT_FALSE(end_of(reinterpret_cast<const sockaddr*>(&address)));
    EXPECT_EQ(length_of(reinterpret_cast<const sockaddr*>(&address)), 0U);
    EXPECT_FALSE(end_of(nullptr));
    EXPECT_EQ(length_of(nullptr), 0U);
}

TEST(RdmacmEndsTest, TheRouteOfALoopbackAddressStartsThere) {
    int reason = 0;
    const auto source = source_of_route({ip("127.0.0.1"), 0, false, 0}, reason);
    ASSERT_TRUE(source) << reason;
    EXPECT_EQ(*source, ip("127.0.0.1"));
    EXPECT_EQ(check_local({ip("127.0.0.9"), 0, false, 0}), 0);
    EXPECT_EQ(check_local({ip("192.0.2.1"), 0, false, 0}), EADDRNOTAVAIL);  // an address for documentation (RFC 5737)
}

TEST(RdmacmEndsTest, TheSourceOfTheRouteGoesFirst) {
    const std::vector<net::IpAddress> devices{ip("10.0.0.1"), ip("10.0.0.2"), ip("127.0.0.2"), ip("2001:db8::1")};
    EXPECT_EQ(choose_source(devices, ip("10.0.0.2"), ip("10.0.0.9")), 1U);
    EXPECT_EQ(choose_source(devices, ip("10.0.0.7"), ip("10.0.0.2")), 1U);    // to itself
    EXPECT_EQ(choose_source(devices, ip("10.0.0.7"), ip("10.0.0.9")), 0U);    // the first possible one
    EXPECT_EQ(choose_source(devices, ip("127.0.0.1"), ip("127.0.0.3")), 2U);  // loopback by loopback
    EXPECT_EQ(choose_source(devices, ip("2001:db8::7"), ip("2001:db8::9")), 3U);
    EXPECT_EQ(choose_source(devices, ip("::1"), ip("::1")), std::nullopt);
    EXPECT_EQ(choose_source({}, ip("10.0.0.2"), ip("10.0.0.9")), std::nullopt);
}

}  // namespace
}  // namespace cairn::rdmacm
