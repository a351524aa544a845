// GIDs of a device, and the addresses that belong to them.
#include <gtest/gtest.h>

#include "lib/ibverbs/address_gids.hpp"

namespace cairn::ibverbs {
namespace {

net::IpAddress address(const char* text) {
    return net::IpAddress::parse(text).value();
}

TEST(AddressGidsTest, AnIpv4DeviceHasALinkLocalAndAMappedGid) {
    const net::IpAddress device = address("192.0.2.200");
    EXPECT_EQ(gid_at(device, kGidLinkLocal)->text(), "fe80::ca:c0ff:fe00:2c8");
    EXPECT_EQ(gid_at(device, kGidV4), device);
    EXPECT_FALSE(gid_at(device, kGidV6).has_value());
    EXPECT_FALSE(gid_at(device, 3).has_value());
    EXPECT_FALSE(gid_at(device, -1).has_value());
}

TEST(AddressGidsTest, AnIpv6DeviceHasItsAddressWhereItBelongs) {
    const net::IpAddress global = address("2001:db8::7");
    EXPECT_EQ(gid_at(global, kGidV6), global);
    EXPECT_FALSE(gid_at(global, kGidV4).has_value());
    EXPECT_FALSE(gid_at(global, kGidLinkLocal).has_value());
    const net::IpAddress local = address("fe80::7");
    EXPECT_EQ(gid_at(local, kGidLinkLocal), local);
    EXPECT_FALSE(gid_at(local, kGidV6).has_value());
}

TEST(AddressGidsTest, EachGidLeadsBackToItsDevice) {
    for (const char* text : {"192.0.2.200", "127.0.0.2", "0.0.0.1", "255.255.255.254", "2001:db8::7", "fe80::7"}) {
        const net::IpAddress device = address(text);
        for (int index = 0; index < kGids; ++index) {
            if (const auto gid = gid_at(device, index)) {
                EXPECT_EQ(address_of_gid(*gid), device) << text << " at " << index;
            }
        }
    }
}

TEST(AddressGidsTest, OtherLinkLocalAddressesStandForThemselves) {
    for (const char* text : {"fe80::ca:c0fe:fe00:2c8", "fe80::ca:c0ff:fd00:2c8", "fe80::cb:c0ff:fe00:2c8",
                             "fe81::ca:c0ff:fe00:2c8", "fe80:0:0:1:ca:c0ff:fe00:2c8"}) {
        EXPECT_EQ(address_of_gid(address(text)), address(text)) << text;
    }
}

TEST(AddressGidsTest, AGuidIsNeverZeroAndTellsDevicesApart) {
    EXPECT_EQ(guid_of(address("127.0.0.2")), (std::array<std::uint8_t, 8>{0, 0xca, 0x7f, 0xff, 0xfe, 0, 0, 2}));
    EXPECT_NE(guid_of(address("127.0.0.2")), guid_of(address("127.0.0.3")));
}

}  // namespace
}  // namespace cairn::ibverbs
