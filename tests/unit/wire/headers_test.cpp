// Every extension header by golden bytes both ways.
#include "lib/wire/headers.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "lib/wire/aeth.hpp"
#include "lib/wire/bth.hpp"
#include "lib/wire/feth.hpp"
#include "tests/support/parse_header.hpp"

namespace cairn::wire {
namespace {

using test::parse_header;
using Bytes = std::vector<std::uint8_t>;

template <class Header>
Bytes emitted(const Header& header) {
    typename Header::Raw raw;
    std::memset(static_cast<void*>(&raw), 0xa5, sizeof(raw));
    header.emit(raw);
    Bytes bytes(sizeof(raw));
    std::memcpy(bytes.data(), &raw, sizeof(raw));
    return bytes;
}

// Checks that `wire` parses to `value`, which is emitted as `wire` over other bytes. No truncation of `wire` parses.
template <class Header>
void expect_both_ways(const Bytes& wire, const Header& value) {
    ASSERT_EQ(wire.size(), Header::kBytes);
    const auto parsed = parse_header<Header>(wire);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed.value(), value);
    EXPECT_EQ(emitted(value), wire);
    for (std::size_t size = 0; size < wire.size(); ++size) {
        const Bytes cut(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(size));
        const auto refused = parse_header<Header>(cut);
        ASSERT_FALSE(refused.ok()) << size;
        EXPECT_EQ(refused.reason(), Drop::Truncated) << size;
    }
}

TEST(Headers, BthIsParsedAndEmitted) {
    Bth bth;
    bth.opcode = 0x64;
    bth.solicited = true;
    bth.migration = false;
    bth.pad_count = 3;
    bth.pkey = Pkey{0x1234};
    bth.fecn = false;
    bth.becn = true;
    bth.dest_qpn = Qpn{0x56789a};
    bth.ack_request = true;
    bth.psn = Psn{0xbcdef0};
    expect_both_ways<Bth>({0x64, 0xb0, 0x12, 0x34, 0x40, 0x56, 0x78, 0x9a, 0x80, 0xbc, 0xde, 0xf0}, bth);
    bth = Bth{};
    bth.fecn = true;
    expect_both_ways<Bth>({0x00, 0x40, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}, bth);
}

TEST(Headers, BthVersionIsTheLowNibbleOfItsFlags) {
    const Bytes bytes{0x64, 0xb7, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 1};
    EXPECT_EQ(Bth::version_of(read_raw<RawBth>(bytes.data())), 7);
}

TEST(Headers, DethIsParsedAndEmitted) {
    expect_both_ways<Deth>({0x80, 0x01, 0x02, 0x03, 0x00, 0xc4, 0xd5, 0xe6}, {Qkey{0x80010203}, Qpn{0xc4d5e6}});
}

TEST(Headers, FethIsParsedAndEmitted) {
    expect_both_ways<Feth>({0, 0, 0, 0x12}, Feth{Feth::kPersistent, Feth::kWhole});
    EXPECT_EQ(parse_header<Feth>(std::vector<std::uint8_t>{0xff, 0xff, 0xff, 0xc1}).value(),
              (Feth{Feth::kGlobal, Feth::kRange}));
}

TEST(Headers, RethIsParsedAndEmitted) {
    expect_both_ways<Reth>({0xf1, 2, 3, 4, 5, 6, 7, 8, 0x91, 0xa, 0xb, 0xc, 0xd1, 0xe, 0xf, 0x10},
                           {0xf102030405060708U, Rkey{0x910a0b0c}, 0xd10e0f10U});
}

TEST(Headers, AtomicEthIsParsedAndEmitted) {
    expect_both_ways<AtomicEth>({0xf1, 2,    3,    4,    5,    6,    7,    8,    0x91, 0xa,  0xb,  0xc,  0xd1, 0xe,
                                 0xf,  0x10, 0x11, 0x12, 0x13, 0x14, 0x95, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c},
                                {0xf102030405060708U, Rkey{0x910a0b0c}, 0xd10e0f1011121314U, 0x95161718191a1b1cU});
}

TEST(Headers, AtomicAckEthIsParsedAndEmitted) {
    expect_both_ways<AtomicAckEth>({0xf1, 2, 3, 4, 5, 6, 7, 8}, {0xf102030405060708U});
}

TEST(Headers, ImmDtIsParsedAndEmitted) {
    expect_both_ways<ImmDt>({0xf1, 2, 3, 4}, {0xf1020304U});
}

TEST(Headers, IethIsParsedAndEmitted) {
    expect_both_ways<Ieth>({0xf1, 2, 3, 4}, {Rkey{0xf1020304U}});
}

TEST(Headers, XrcethIsParsedAndEmitted) {
    expect_both_ways<Xrceth>({0, 0xf2, 3, 4}, {Srqn{0xf20304U}});
}

TEST(Headers, WhatACongestionNotificationReservesIsEmittedAsZeros) {
    expect_both_ways<CnpReserved>(Bytes(16, 0), {});
}

TEST(Headers, ReservedBytesAreIgnored) {
    EXPECT_EQ(parse_header<Deth>(Bytes{0, 0, 0, 1, 0xff, 0, 0, 2}).value(), (Deth{Qkey{1}, Qpn{2}}));
    EXPECT_EQ(parse_header<Xrceth>(Bytes{0xff, 0, 0, 2}).value(), Xrceth{Srqn{2}});
    EXPECT_EQ(parse_header<CnpReserved>(Bytes(16, 0xff)).value(), CnpReserved{});
    const Bytes bytes{0x64, 0x40, 0xff, 0xff, 0x3f, 0, 0, 1, 0x7f, 0, 0, 1};
    Bth bth;
    bth.opcode = 0x64;
    bth.dest_qpn = Qpn{1};
    bth.psn = Psn{1};
    EXPECT_EQ(parse_header<Bth>(bytes).value(), bth);
}

TEST(Aeth, EachKindOfSyndromeIsParsedAndEmitted) {
    expect_both_ways<Aeth>({0x00, 1, 2, 3}, {AckCredits{0}, Msn{0x010203}});
    expect_both_ways<Aeth>({0x1f, 0xf1, 2, 3}, {AckCredits{31}, Msn{0xf10203}});
    expect_both_ways<Aeth>({0x20, 1, 2, 3}, {RnrTimer{0}, Msn{0x010203}});
    expect_both_ways<Aeth>({0x3a, 1, 2, 3}, {RnrTimer{26}, Msn{0x010203}});
    expect_both_ways<Aeth>({0x60, 1, 2, 3}, {NakCode::PsnSequence, Msn{0x010203}});
    expect_both_ways<Aeth>({0x61, 1, 2, 3}, {NakCode::InvalidRequest, Msn{0x010203}});
    expect_both_ways<Aeth>({0x62, 1, 2, 3}, {NakCode::RemoteAccess, Msn{0x010203}});
    expect_both_ways<Aeth>({0x63, 1, 2, 3}, {NakCode::RemoteOperational, Msn{0x010203}});
    expect_both_ways<Aeth>({0x64, 1, 2, 3}, {NakCode::InvalidRdRequest, Msn{0x010203}});
}

TEST(Aeth, OfAll256SyndromesThoseWithAMeaningAreRebuiltAndTheOthersRefused) {
    int accepted = 0;
    for (unsigned octet = 0; octet < 256; ++octet) {
        const Bytes wire{static_cast<std::uint8_t>(octet), 0, 0, 9};
        const auto parsed = parse_header<Aeth>(wire);
        ASSERT_EQ(parsed.ok(), octet < 0x40 || (octet >= 0x60 && octet <= 0x64)) << octet;
        if (parsed.ok()) {
            EXPECT_EQ(emitted(parsed.value()), wire);
            EXPECT_EQ(parsed.value().syndrome.index(), octet < 0x20 ? 0U : octet < 0x40 ? 1U : 2U) << octet;
            ++accepted;
        } else {
            EXPECT_EQ(parsed.reason(), Drop::BadSyndrome);
        }
    }
    EXPECT_EQ(accepted, 32 + 32 + 5);
}

}  // namespace
}  // namespace cairn::wire
