// The ICRC against golden traces of a Linux Soft-RoCE peer, and its fast form against the reference.
#include "lib/wire/icrc.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "lib/wire/bth.hpp"
#include "tests/support/pcap_reader.hpp"

namespace cairn::wire {
namespace {

constexpr std::size_t kEthernetBytes = 14;

struct Datagram {
    std::vector<std::uint8_t> ip_packet;  // IP header ... payload, without the ICRC
    std::size_t bth_at = 0;
    std::uint32_t icrc = 0;
};

Datagram split(const test::Frame& frame) {
    Datagram datagram;
    const bool v4 = frame[12] == 0x08;
    const std::size_t ip_bytes = v4 ? 20 : 40;
    const std::size_t length_at = kEthernetBytes + (v4 ? 2U : 4U);
    const std::size_t total = (std::size_t{frame[length_at]} << 8U) + frame[length_at + 1] + (v4 ? 0 : ip_bytes);
    const auto ip = frame.begin() + kEthernetBytes;
    datagram.ip_packet.assign(ip, ip + static_cast<std::ptrdiff_t>(total - 4));
    datagram.bth_at = ip_bytes + 8;
    std::memcpy(&datagram.icrc, frame.data() + kEthernetBytes + total - 4, 4);
    return datagram;
}

TEST(Icrc, EveryGoldenPacketCarriesTheIcrcWeCompute) {
    std::size_t packets = 0;
    for (const auto& file : test::trace_files()) {
        for (const test::Frame& frame : test::read_pcap(file)) {
            const Datagram datagram = split(frame);
            EXPECT_EQ(icrc_reference(datagram.ip_packet), datagram.icrc) << file;
            const std::uint32_t state = icrc_lower_state(std::span(datagram.ip_packet).first(datagram.bth_at));
            EXPECT_EQ(icrc_finish(state, datagram.ip_packet.data() + datagram.bth_at,
                                  datagram.ip_packet.size() - datagram.bth_at),
                      datagram.icrc)
                << file;
            ++packets;
        }
    }
    EXPECT_GT(packets, 0U);
}

TEST(Icrc, TheFieldsThatRoutersChangeDoNotCount) {
    Datagram datagram = split(test::read_pcap(test::trace_files().front()).front());
    const std::uint32_t before = icrc_reference(datagram.ip_packet);
    for (const std::size_t at : {std::size_t{1}, std::size_t{8}, std::size_t{10}, datagram.bth_at + 4}) {
        datagram.ip_packet[at] ^= 0x5a;
        EXPECT_EQ(icrc_reference(datagram.ip_packet), before) << at;
    }
    datagram.ip_packet[4] ^= 1;  // the identification does
    EXPECT_NE(icrc_reference(datagram.ip_packet), before);
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

TEST(Bth, EveryGoldenHeaderIsParsedAndRebuilt) {
    for (const auto& file : test::trace_files()) {
        for (const test::Frame& frame : test::read_pcap(file)) {
            const Datagram datagram = split(frame);
            RawBth raw{};
            std::memcpy(&raw, datagram.ip_packet.data() + datagram.bth_at, sizeof(raw));
            RawBth again;
            std::memset(static_cast<void*>(&again), 0xa5, sizeof(again));
            Bth::parse(raw).emit(again);
            EXPECT_EQ(std::memcmp(&raw, &again, sizeof(raw)), 0) << file;
        }
    }
}

}  // namespace
}  // namespace cairn::wire
