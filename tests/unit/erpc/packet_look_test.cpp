// Properties that packets of one look share.
#include "rpc/erpc/packet_look.hpp"

#include <gtest/gtest.h>

#include <array>

#include "rpc/erpc/header.hpp"

namespace cairn::erpc {
namespace {

constexpr std::size_t kHeaders = sizeof(wire::RawUd) + sizeof(RawHeader);

class PacketLookTest : public testing::Test {
protected:
    PacketLookTest() {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<std::uint8_t>(17 * i + 4);
        }
        packet.data = bytes.data();
        packet.len = static_cast<std::uint16_t>(bytes.size());
        look.note(packet, first());
    }
    FirstWord first() const { return FirstWord::read(bytes.data() + sizeof(wire::RawUd)); }

    std::array<std::uint8_t, kHeaders> bytes{};
    port::PacketRef packet{};
    PacketLook look;
};

// Datagrams of a batch from a socket lie end to end, and their IPv4 IDs count up.
TEST_F(PacketLookTest, PacketsOfOneBatchLookAlike) {
    packet.ip_id = static_cast<std::uint16_t>(packet.ip_id + 1);
    packet.room = packet.len;
    EXPECT_TRUE(look.is_of(packet, first()));
    packet.ecn = 2;
    EXPECT_FALSE(look.is_of(packet, first()));
}

// All bits of the headers are judged, except AckReq and PSN, and the second word of our header.
TEST_F(PacketLookTest, PacketsThatDifferInABitThatIsJudgedLookUnlike) {
    for (std::size_t bit = 0; bit < kHeaders * 8; ++bit) {
        const std::size_t at = bit / 8;
        const bool psn = at >= offsetof(wire::RawBth, ack_req) && at < sizeof(wire::RawBth);
        const bool second = at >= sizeof(wire::RawUd) + sizeof(std::uint64_t);
        const auto mask = static_cast<std::uint8_t>(0x80U >> (bit % 8));
        bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ mask);
        EXPECT_EQ(look.is_of(packet, first()), psn || second) << "bit " << bit;
        bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ mask);
    }
}

}  // namespace
}  // namespace cairn::erpc
