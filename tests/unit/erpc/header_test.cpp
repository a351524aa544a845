// The eRPC header's bytes, written by hand, and every field parsed back.
#include "rpc/erpc/header.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace cairn::erpc {
namespace {

TEST(ErpcHeader, EveryFieldStandsWhereTheFormatSays) {
    Header header;
    header.kind = Kind::Control;
    header.request_type = 0x12;
    header.message_bytes = 0x345678;
    header.session = SessionId{0x9abc};
    header.type = PacketType::Response;
    header.packet_number = 0x1def;
    header.request_number = 0x0123456789aU;
    const std::uint8_t expected[16] = {4,    1,    0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc,
                                       0xdd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab};
    RawHeader raw;
    std::memset(static_cast<void*>(&raw), 0xa5, sizeof(raw));
    header.emit(raw);
    EXPECT_EQ(std::memcmp(&raw, expected, sizeof(raw)), 0);
    EXPECT_TRUE(raw.well_formed());
    EXPECT_EQ(Header::parse(raw), header);
}

TEST(ErpcHeader, WhatWasHeldIsSaidInWholeUnitsUpToALot) {
    EXPECT_EQ(HeldTime::of(nanoseconds(-5'000)).on_wire(), 0);
    EXPECT_EQ(HeldTime::of(nanoseconds(1'999)).on_wire(), 1);
    EXPECT_EQ(HeldTime::of(microseconds(254)).on_wire(), 254);
    EXPECT_TRUE(HeldTime::of(microseconds(255)).is_long());
    EXPECT_TRUE(HeldTime::of(seconds(1)).is_long());
}

TEST(ErpcHeader, OtherVersionsKindsAndMagicsAreNotWellFormed) {
    RawHeader raw;
    Header{}.emit(raw);
    EXPECT_TRUE(raw.well_formed());
    RawHeader other = raw;
    other.version = 1;
    EXPECT_FALSE(other.well_formed());
    other = raw;
    other.kind = 2;
    EXPECT_FALSE(other.well_formed());
    other = raw;
    other.request_and_magic.set(raw.request_and_magic.get() ^ 1U);
    EXPECT_FALSE(other.well_formed());
}

}  // namespace
}  // namespace cairn::erpc
