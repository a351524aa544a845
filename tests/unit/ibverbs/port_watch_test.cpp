// Messages of the kernel, and their effects on a port.
#include "lib/ibverbs/port_watch.hpp"

#include <gtest/gtest.h>
#include <net/if.h>

#include "tests/unit/ibverbs/link_messages.hpp"

namespace cairn::ibverbs {
namespace {

using Kind = LinkNotice::Kind;

const net::IpAddress kOurs = net::IpAddress::parse("192.0.2.1").value();
const net::IpAddress kOther = net::IpAddress::parse("192.0.2.2").value();
constexpr PortWatch::News kNothing{};

std::vector<LinkNotice> read_all(const std::vector<std::uint8_t>& bytes) {
    NoticeReader reader(bytes);
    std::vector<LinkNotice> all;
    while (const auto notice = reader.next()) {
        all.push_back(*notice);
    }
    return all;
}

TEST(NoticeReaderTest, EachMessageIsANotice) {
    std::vector<std::uint8_t> bytes = link_message(RTM_NEWLINK, 3, IFF_UP | IFF_RUNNING);
    append(bytes, link_message(RTM_NEWLINK, 3, IFF_UP));
    append(bytes, link_message(RTM_DELLINK, 4, IFF_UP | IFF_RUNNING));
    append(bytes, address_message(RTM_NEWADDR, 5, kOurs));
    append(bytes, address_message(RTM_DELADDR, 5, net::IpAddress::parse("2001:db8::1").value()));
    const auto found = read_all(bytes);
    ASSERT_EQ(found.size(), 5U);
    EXPECT_EQ(found[0].kind, Kind::Up);
    EXPECT_EQ(found[0].interface, 3U);
    EXPECT_EQ(found[1].kind, Kind::Down);  // without a carrier
    EXPECT_EQ(found[2].kind, Kind::Down);
    EXPECT_EQ(found[2].interface, 4U);
    EXPECT_EQ(found[3].kind, Kind::AddressCame);
    EXPECT_EQ(found[3].address, kOurs);
    EXPECT_EQ(found[3].interface, 5U);
    EXPECT_EQ(found[4].kind, Kind::AddressWent);
    EXPECT_EQ(found[4].address.text(), "2001:db8::1");
}

TEST(NoticeReaderTest, TheLocalAddressIsTheInterfacesOwn) {
    const auto found = read_all(address_message(RTM_NEWADDR, 5, kOurs, kOther));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].address, kOurs);
}

TEST(NoticeReaderTest, WhatIsDamagedOrOtherIsLeftOut) {
    EXPECT_TRUE(read_all({}).empty());
    EXPECT_TRUE(read_all(link_message(RTM_NEWROUTE, 3, IFF_UP)).empty());
    std::vector<std::uint8_t> bytes = link_message(RTM_NEWROUTE, 3, IFF_UP);
    append(bytes, link_message(RTM_DELLINK, 3, 0));
    EXPECT_EQ(read_all(bytes).size(), 1U);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_TRUE(read_all({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}).empty());
    }
    bytes[0] = 3;  // shorter than its own header
    EXPECT_TRUE(read_all(bytes).empty());
    bytes = address_message(RTM_NEWADDR, 5, kOurs);
    bytes[sizeof(nlmsghdr) + sizeof(ifaddrmsg)] = 1;  // an attribute shorter than its own header
    EXPECT_TRUE(read_all(bytes).empty());
}

TEST(PortWatchTest, AnInterfaceThatGoesDownIsAnErrorOnce) {
    PortWatch port(kOurs, 3, true);
    EXPECT_TRUE(port.is_active());
    EXPECT_EQ(port.take({Kind::Down, 4}), kNothing);
    EXPECT_EQ(port.take({Kind::Down, 3}), (PortWatch::News{false, IBV_EVENT_PORT_ERR}));
    EXPECT_FALSE(port.is_active());
    EXPECT_EQ(port.take({Kind::Down, 3}), kNothing);
    EXPECT_EQ(port.take({Kind::Up, 3}), (PortWatch::News{false, IBV_EVENT_PORT_ACTIVE}));
    EXPECT_EQ(port.take({Kind::Up, 3}), kNothing);
}

TEST(PortWatchTest, AnAddressThatGoesChangesTheTable) {
    PortWatch port(kOurs, 3, true);
    EXPECT_EQ(port.take({Kind::AddressWent, 3, kOther}), kNothing);
    EXPECT_EQ(port.take({Kind::AddressWent, 4, kOurs}), kNothing);
    EXPECT_EQ(port.take({Kind::AddressWent, 3, kOurs}), (PortWatch::News{true, IBV_EVENT_PORT_ERR}));
    EXPECT_FALSE(port.has_address());
    EXPECT_EQ(port.take({Kind::Down, 3}), kNothing);
    EXPECT_EQ(port.take({Kind::AddressCame, 3, kOther}), kNothing);
    EXPECT_EQ(port.take({Kind::AddressCame, 3, kOurs}), (PortWatch::News{true, std::nullopt}));
    EXPECT_EQ(port.take({Kind::Up, 3}), (PortWatch::News{false, IBV_EVENT_PORT_ACTIVE}));
}

TEST(PortWatchTest, AnAddressMayComeElsewhere) {
    PortWatch port(kOurs, 3, true);
    EXPECT_EQ(port.take({Kind::AddressWent, 3, kOurs}), (PortWatch::News{true, IBV_EVENT_PORT_ERR}));
    EXPECT_EQ(port.take({Kind::AddressCame, 7, kOurs}), (PortWatch::News{true, IBV_EVENT_PORT_ACTIVE}));
    EXPECT_EQ(port.take({Kind::Down, 3}), kNothing);
    EXPECT_EQ(port.take({Kind::Down, 7}), (PortWatch::News{false, IBV_EVENT_PORT_ERR}));
}

TEST(PortWatchTest, WhatWasLostIsLookedUp) {
    PortWatch port(kOurs, 3, true);
    EXPECT_EQ(port.set(3, true), kNothing);
    EXPECT_EQ(port.set(0, false), (PortWatch::News{true, IBV_EVENT_PORT_ERR}));
    EXPECT_EQ(port.set(5, true), (PortWatch::News{true, IBV_EVENT_PORT_ACTIVE}));
    PortWatch unknown(kOurs, 0, true);
    EXPECT_TRUE(unknown.is_active());
    EXPECT_EQ(unknown.set(0, true), kNothing);
}

}  // namespace
}  // namespace cairn::ibverbs
