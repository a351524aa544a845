// The ICRC of two packets of a Linux Soft-RoCE peer (all its traces: golden_traces_test), the bytes that count in it,
// and its fast form compared with the reference.
#include "lib/wire/icrc.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace cairn::wire {
namespace {

struct GoldenIcrc {
    std::vector<std::uint8_t> ip_packet;  // IP header ... ICRC
    std::size_t bth_at = 0;
    std::vector<std::size_t> masked;  // bytes that do not count at all

    [[nodiscard]] std::size_t icrc_at() const { return ip_packet.size() - kIcrcBytes; }
    [[nodiscard]] std::uint32_t carried() const {
        const std::uint8_t* at = ip_packet.data() + icrc_at();
        return std::uint32_t{at[0]} | std::uint32_t{at[1]} << 8U | std::uint32_t{at[2]} << 16U |
               std::uint32_t{at[3]} << 24U;
    }
    [[nodiscard]] std::uint32_t reference() const { return icrc_reference(std::span(ip_packet).first(icrc_at())); }
    [[nodiscard]] std::uint32_t fast() const {
        const std::uint32_t state = icrc_lower_state(std::span(ip_packet).first(bth_at));
        return icrc_finish(state, ip_packet.data() + bth_at, icrc_at() - bth_at);
    }
};

// Two RC acknowledgements.
const GoldenIcrc kV4{
    {0x45, 0x00, 0x00, 0x30, 0x0d, 0xfa, 0x40, 0x00, 0x40, 0x11, 0x18, 0x15, 0x0a, 0x4d, 0x00, 0x0a,
     0x0a, 0x4d, 0x00, 0x0b, 0xf5, 0x79, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, 0x11, 0x00, 0xff, 0xff,
     0x00, 0x00, 0x00, 0x75, 0x00, 0x00, 0x01, 0x00, 0x1f, 0x00, 0x00, 0x01, 0xad, 0xf9, 0xd9, 0xf3},
    28,
    {1, 8, 10, 11, 20 + 6, 20 + 7, 28 + 4},
};
const GoldenIcrc kV6{
    {0x60, 0x00, 0x00, 0x00, 0x00, 0x1c, 0x11, 0x40, 0xfd, 0x77, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0xfd, 0x77, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
     0x00, 0x00, 0x00, 0x00, 0x00, 0x11, 0xfb, 0xc5, 0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, 0x11, 0x00, 0xff,
     0xff, 0x00, 0x00, 0x00, 0xb2, 0x00, 0x00, 0x01, 0x00, 0x1f, 0x00, 0x00, 0x01, 0x6a, 0x2c, 0x6f, 0xbd},
    48,
    {1, 2, 3, 7, 40 + 6, 40 + 7, 48 + 4},
};

TEST(Icrc, IsTheOneThatALinuxPeerSends) {
    for (const GoldenIcrc* golden : {&kV4, &kV6}) {
        EXPECT_EQ(golden->reference(), golden->carried());
        EXPECT_EQ(golden->fast(), golden->carried());
    }
}

TEST(Icrc, CountsEveryBitButThoseThatRoutersChange) {
    for (const GoldenIcrc* golden : {&kV4, &kV6}) {
        const bool v6 = golden == &kV6;
        for (std::size_t bit = 8; bit < golden->ip_packet.size() * 8; ++bit) {  // the first byte is tested separately
            GoldenIcrc changed = *golden;
            changed.ip_packet[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
            const bool masked =
                std::find(golden->masked.begin(), golden->masked.end(), bit / 8) != golden->masked.end();
            ASSERT_EQ(changed.reference() == changed.carried(), masked) << "IPv" << (v6 ? 6 : 4) << " bit " << bit;
            ASSERT_EQ(changed.fast() == changed.carried(), masked) << "IPv" << (v6 ? 6 : 4) << " bit " << bit;
        }
    }
}

TEST(Icrc, IgnoresTheTrafficClassBitsInTheFirstByteOfIpv6) {
    for (std::uint8_t bits = 1; bits < 16; ++bits) {
        GoldenIcrc changed = kV6;
        changed.ip_packet[0] |= bits;
        EXPECT_EQ(changed.reference(), changed.carried());
        EXPECT_EQ(changed.fast(), changed.carried());
    }
}

TEST(Icrc, TheFastFormAgreesForEveryLengthWhateverTheMaskedByteHolds) {
    std::vector<std::uint8_t> packet(28 + 400);
    for (std::size_t i = 0; i < packet.size(); ++i) {
        packet[i] = static_cast<std::uint8_t>(i * 37 + 11);
    }
    packet[0] = 0x45;
    const std::uint32_t state = icrc_lower_state(std::span(packet).first(28));
    for (std::size_t count = 12; count <= 400; ++count) {
        packet[32] = static_cast<std::uint8_t>(count);
        EXPECT_EQ(icrc_finish(state, packet.data() + 28, count), icrc_reference(std::span(packet).first(28 + count)));
    }
}

}  // namespace
}  // namespace cairn::wire
