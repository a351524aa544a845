// The values that --port may have, without a device.
#include "pmd_glue/port_argument.hpp"

#include <gtest/gtest.h>

#include <string>

namespace cairn::pmd {
namespace {

TEST(PortArgument, ASocketIsOnTheAddressThatPeersSendTo) {
    for (const char* address : {"127.0.0.1", "192.0.2.1", "::1", "fd00::7"}) {
        const auto choice = choose_port(std::string("uring:") + address);
        ASSERT_TRUE(choice.ok()) << choice.error().text();
        EXPECT_EQ(std::get<SocketChoice>(choice.value()).local.text(), address);
    }
}

TEST(PortArgument, WhatIsNoOneMachinesAddressIsNamedWithARemedy) {
    for (const char* address : {"0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "fe80::1", "nobody", ""}) {
        const auto choice = choose_port(std::string("uring:") + address);
        ASSERT_FALSE(choice.ok()) << address;
        EXPECT_NE(choice.error().what.find(std::string(address)), std::string::npos);
        EXPECT_FALSE(choice.error().remedy.empty());
    }
    EXPECT_NE(choose_port("uring:fe80::1").error().what.find("scope"), std::string::npos);
}

}  // namespace
}  // namespace cairn::pmd
