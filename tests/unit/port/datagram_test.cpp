// Each kind of RoCEv2 frame is judged with a reason; golden frames are parsed and rebuilt; the slow judge and a Path's
// fast one agree.
#include "lib/port/datagram.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "lib/net/checksum.hpp"
#include "lib/net/ethernet.hpp"
#include "lib/net/ipv4.hpp"
#include "lib/net/ipv6.hpp"
#include "lib/net/udp.hpp"
#include "tests/support/checksums.hpp"
#include "tests/support/hex.hpp"
#include "tests/support/pcap_reader.hpp"

namespace cairn::port {
namespace {

using test::Frame;
using Patches = std::vector<std::pair<std::size_t, std::uint8_t>>;  // offset in the frame, new byte

constexpr net::MacAddress kMacA{{2, 0, 0, 0, 0, 1}};
constexpr net::MacAddress kMacB{{2, 0, 0, 0, 0, 2}};
constexpr std::size_t kIp = net::EthernetHeader::kBytes;
constexpr std::size_t kPayloadBytes = 40;
constexpr std::size_t kUncoveredByIcrc = 4;  // bytes of the BTH: congestion marks, which switches may set

// Returns the key of frames from A to B in B's path.
PathKey key_at_b(bool v4) {
    const char* local = v4 ? "10.1.0.2" : "fd00::2";
    const char* remote = v4 ? "10.1.0.1" : "fd00::1";
    return {net::IpAddress::parse(local).value(), net::IpAddress::parse(remote).value(), 0xc123, 0};
}

Frame make_frame(bool v4, std::size_t payload_bytes = kPayloadBytes) {
    const PathKey at_b = key_at_b(v4);
    Path path({at_b.remote, at_b.local, at_b.udp_source_port, at_b.traffic_class});
    path.resolve(kMacA, kMacB);
    Frame frame(path.lower_bytes() + payload_bytes, 0x5c);
    std::uint8_t* bth = frame.data() + path.lower_bytes();
    path.write_lower_headers(bth, static_cast<std::uint16_t>(payload_bytes));
    if (payload_bytes >= 16) {
        const std::uint32_t icrc = path.icrc(Direction::Transmit, bth, static_cast<std::uint16_t>(payload_bytes));
        std::memcpy(frame.data() + frame.size() - 4, &icrc, 4);
    }
    return frame;
}

// A frame that parse_frame() refuses, and why. Offsets: IPv4 at 14, its UDP at 34; IPv6 at 14, its UDP at 54.
struct Refused {
    const char* name;
    bool v4;
    Patches patches;
    FrameVerdict verdict;
    bool mend = true;  // recompute the IPv4 checksum
};

class DatagramRefused : public testing::TestWithParam<Refused> {};

TEST_P(DatagramRefused, ByTheReason) {
    Frame frame = make_frame(GetParam().v4);
    for (const auto& [at, byte] : GetParam().patches) {
        frame.at(at) = byte;
    }
    if (GetParam().mend) {
        test::mend_checksums(frame);
    }
    const ParsedFrame parsed = parse_frame(frame);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.reason(), GetParam().verdict);
}

const Refused kRefused[] = {
    {"OtherEtherType", true, {{13, 6}}, FrameVerdict::NotRoce},
    {"Ipv4SaysVersion6", true, {{14, 0x65}}, FrameVerdict::NotRoce},
    {"Ipv4Tcp", true, {{23, 6}}, FrameVerdict::NotRoce},
    {"Ipv4OtherPort", true, {{37, 0xb8}}, FrameVerdict::NotRoce},
    {"Ipv4Options", true, {{14, 0x46}}, FrameVerdict::Options},
    {"Ipv4ShortHeader", true, {{14, 0x44}}, FrameVerdict::BadLength},
    {"Ipv4Checksum", true, {{24, 0}}, FrameVerdict::BadChecksum, false},
    {"Ipv4MoreFragments", true, {{20, 0x20}}, FrameVerdict::Fragment},
    {"Ipv4LaterFragment", true, {{21, 1}}, FrameVerdict::Fragment},
    {"Ipv4TotalBeyondTheFrame", true, {{17, 28 + kPayloadBytes + 1}}, FrameVerdict::BadLength},
    {"Ipv4TotalShorterThanUdp", true, {{17, 28 + kPayloadBytes - 1}}, FrameVerdict::BadLength},
    {"Ipv4TotalWithoutUdpHeader", true, {{17, 27}}, FrameVerdict::BadLength},
    {"Ipv4TotalBelowItsHeader", true, {{17, 19}}, FrameVerdict::BadLength},
    {"Ipv4UdpLengthShort", true, {{39, 8 + kPayloadBytes - 1}}, FrameVerdict::BadLength},
    {"Ipv4UdpLengthLong", true, {{39, 8 + kPayloadBytes + 1}}, FrameVerdict::BadLength},
    {"Ipv4UdpLengthBelowItsHeader", true, {{39, 7}}, FrameVerdict::BadLength},
    {"Ipv4UdpChecksum", true, {{41, 1}, {60, 1}}, FrameVerdict::BadUdpChecksum},
    {"Ipv4FromAGroup", true, {{26, 224}}, FrameVerdict::BadAddress},
    {"Ipv4FromNoOne", true, {{26, 0}, {27, 0}, {29, 0}}, FrameVerdict::BadAddress},
    {"Ipv4FromAll", true, {{26, 255}, {27, 255}, {28, 255}, {29, 255}}, FrameVerdict::BadAddress},

    {"Ipv6SaysVersion4", false, {{14, 0x45}}, FrameVerdict::NotRoce},
    {"Ipv6Tcp", false, {{20, 6}}, FrameVerdict::NotRoce},
    {"Ipv6OtherPort", false, {{57, 0xb8}}, FrameVerdict::NotRoce},
    {"Ipv6HopByHop", false, {{20, 0}}, FrameVerdict::Options},
    {"Ipv6Routing", false, {{20, 43}}, FrameVerdict::Options},
    {"Ipv6DestinationOptions", false, {{20, 60}}, FrameVerdict::Options},
    {"Ipv6Fragment", false, {{20, 44}}, FrameVerdict::Fragment},
    {"Ipv6PayloadBeyondTheFrame", false, {{19, 8 + kPayloadBytes + 1}}, FrameVerdict::BadLength},
    {"Ipv6PayloadShorterThanUdp", false, {{19, 8 + kPayloadBytes - 1}}, FrameVerdict::BadLength},
    {"Ipv6PayloadWithoutUdpHeader", false, {{19, 7}}, FrameVerdict::BadLength},
    {"Ipv6UdpLengthShort", false, {{59, 8 + kPayloadBytes - 1}}, FrameVerdict::BadLength},
    {"Ipv6UdpChecksum", false, {{61, 1}, {80, 1}}, FrameVerdict::BadUdpChecksum},
    {"Ipv6FromAGroup", false, {{22, 0xff}}, FrameVerdict::BadAddress},
    {"Ipv6FromNoOne", false, {{22, 0}, {37, 0}}, FrameVerdict::BadAddress},
    {"Ipv6FromMapped", false, {{22, 0}, {32, 0xff}, {33, 0xff}}, FrameVerdict::BadAddress},
    {"Ipv6ToMapped", false, {{38, 0}, {48, 0xff}, {49, 0xff}}, FrameVerdict::BadAddress},
};

INSTANTIATE_TEST_SUITE_P(Frames, DatagramRefused, testing::ValuesIn(kRefused),
                         [](const auto& test) { return std::string(test.param.name); });

class DatagramTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Families, DatagramTest, testing::Bool());

TEST_P(DatagramTest, EveryFieldIsFound) {
    Frame frame = make_frame(GetParam());
    frame[GetParam() ? 15 : 14] = GetParam() ? 0x6b : 0x66;  // DSCP and ECN
    if (!GetParam()) {
        frame[15] = 0xb0;
    }
    frame[GetParam() ? 22 : 21] = 17;
    test::mend_checksums(frame);
    const std::size_t padded_bytes = frame.size() + 9;
    const std::size_t lower = frame.size() - kPayloadBytes;
    frame.resize(padded_bytes, 0xee);  // link padding
    const ParsedFrame parsed = parse_frame(frame);
    ASSERT_TRUE(parsed.ok());
    const Datagram& datagram = parsed.value();
    EXPECT_EQ(datagram.key, key_at_b(GetParam())) << "an ECN mark makes no path of its own";
    EXPECT_EQ(datagram.source_mac, kMacA);
    EXPECT_EQ(datagram.destination_mac, kMacB);
    EXPECT_EQ(datagram.ip_and_udp.data(), frame.data() + kIp);
    EXPECT_EQ(datagram.ip_and_udp.size(), lower - kIp);
    EXPECT_EQ(datagram.udp_payload.data(), frame.data() + lower);
    EXPECT_EQ(datagram.udp_payload.size(), kPayloadBytes);
    EXPECT_EQ(datagram.traffic_class, 0x6b);
    EXPECT_EQ(datagram.ecn(), 3);
    EXPECT_EQ(datagram.ttl, 17);
    EXPECT_EQ(datagram.ip_flags_and_offset, GetParam() ? 0x4000 : 0);
    EXPECT_TRUE(datagram.has_path_icrc());
    EXPECT_EQ(icrc_of_frame(datagram), carried_icrc(datagram)) << "variant fields do not count";
}

TEST_P(DatagramTest, EveryTruncationIsRefused) {
    const Frame frame = make_frame(GetParam());
    const std::size_t headers = GetParam() ? 34 : 54;
    for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
        const Frame cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes));
        const ParsedFrame parsed = parse_frame(cut);
        ASSERT_FALSE(parsed.ok()) << bytes;
        EXPECT_EQ(parsed.reason(), bytes < headers ? FrameVerdict::Truncated : FrameVerdict::BadLength) << bytes;
    }
}

TEST_P(DatagramTest, OnlyFramesToThisStationAreForIt) {
    const Frame frame = make_frame(GetParam());
    const PathKey key = key_at_b(GetParam());
    EXPECT_TRUE(parse_frame_for(kMacB, key.local, frame).ok());
    EXPECT_EQ(parse_frame_for(kMacA, key.local, frame).reason(), FrameVerdict::NotForUs);
    EXPECT_EQ(parse_frame_for(kMacB, key.remote, frame).reason(), FrameVerdict::NotForUs);
    EXPECT_EQ(parse_frame_for(kMacB, key_at_b(!GetParam()).local, frame).reason(), FrameVerdict::NotForUs);
    EXPECT_EQ(parse_frame_for(kMacB, key.local, std::span(frame).first(40)).reason(),
              GetParam() ? FrameVerdict::BadLength : FrameVerdict::Truncated)
        << "other reasons stay";
}

TEST_P(DatagramTest, ARightUdpChecksumIsTakenAndADamagedOneIsNot) {
    for (const std::size_t payload_bytes : {kPayloadBytes, kPayloadBytes + 1}) {
        Frame frame = make_frame(GetParam(), payload_bytes);
        const std::size_t udp = frame.size() - payload_bytes - 8;
        const PathKey key = key_at_b(GetParam());
        net::ChecksumSum sum;
        sum.add_pseudo_header(key.remote, key.local, 17, static_cast<std::uint32_t>(payload_bytes + 8));
        sum.add(std::span(frame).subspan(udp));
        frame[udp + 6] = static_cast<std::uint8_t>(sum.checksum() >> 8U);
        frame[udp + 7] = static_cast<std::uint8_t>(sum.checksum());
        EXPECT_TRUE(parse_frame(frame).ok());
        for (std::size_t at = udp + 8; at < frame.size(); ++at) {
            Frame damaged = frame;
            damaged[at] ^= 1;
            const ParsedFrame parsed = parse_frame(damaged);
            ASSERT_EQ(parsed.ok(), at == udp + 8 + kUncoveredByIcrc) << at;
            ASSERT_TRUE(parsed.ok() || parsed.reason() == FrameVerdict::BadUdpChecksum) << at;
        }
    }
}

TEST_P(DatagramTest, AnUnfinishedUdpChecksumIsTakenWhereTheIcrcIsRight) {
    for (const std::size_t payload_bytes : {std::size_t{15}, std::size_t{16}, kPayloadBytes}) {
        Frame frame = make_frame(GetParam(), payload_bytes);
        const std::size_t udp = frame.size() - payload_bytes - 8;
        frame[udp + 6] = 0x12;
        frame[udp + 7] = 0x34;
        const ParsedFrame parsed = parse_frame(frame);
        if (payload_bytes < 16) {
            EXPECT_EQ(parsed.reason(), FrameVerdict::BadUdpChecksum) << "nothing else proves it";
            continue;
        }
        ASSERT_TRUE(parsed.ok()) << payload_bytes;
        EXPECT_TRUE(has_right_icrc(parsed.value()));
        for (std::size_t at = udp + 8; at < frame.size(); ++at) {
            frame[at] ^= 1;
            EXPECT_EQ(parse_frame(frame).ok(), at == udp + 8 + kUncoveredByIcrc) << at;
            frame[at] ^= 1;
        }
    }
}

TEST_P(DatagramTest, APayloadTooSmallForBthAndIcrcIsSaidSo) {
    for (std::size_t bytes = 0; bytes <= 17; ++bytes) {
        const Frame frame = make_frame(GetParam(), bytes);
        const ParsedFrame parsed = parse_frame(frame);
        ASSERT_TRUE(parsed.ok()) << bytes;
        EXPECT_EQ(has_room_for_icrc(parsed.value()), bytes >= 16) << bytes;
    }
}

TEST(Datagram, OtherIpv4IdsAndFlagsAreTakenButNotByAPathsIcrc) {
    for (const Patches& patches : {Patches{{18, 0x12}}, Patches{{19, 1}}, Patches{{20, 0}}, Patches{{20, 0xc0}}}) {
        Frame frame = make_frame(true);
        frame[patches[0].first] = patches[0].second;
        test::mend_checksums(frame);
        const ParsedFrame parsed = parse_frame(frame);
        ASSERT_TRUE(parsed.ok());
        EXPECT_FALSE(parsed.value().has_path_icrc());
        EXPECT_NE(icrc_of_frame(parsed.value()), carried_icrc(parsed.value())) << "ID and flags count";
    }
}

// Returns whether a path matches a frame. Paths read whole blocks: a packet buffer has the room after its frame.
bool matches(const Path& path, const Frame& frame) {
    Frame room = frame;
    room.resize(frame.size() + 64, 0x5a);
    return path.matches_received(room.data(), frame.size());
}

// Expects that the slow judge takes whatever a path takes. The path takes each frame of the same key that the slow
// judge takes, unless a path does not judge its properties (UDP checksum, other IPv4 ID or flags).
void expect_agreement(Path& path, const Frame& frame) {
    const bool fast = matches(path, frame);
    const ParsedFrame slow = parse_frame_for(kMacB, path.key().local, frame);
    if (fast) {
        ASSERT_TRUE(slow.ok());
        EXPECT_EQ(slow.value().key, path.key());
        EXPECT_TRUE(slow.value().has_path_icrc());
    } else if (slow.ok() && slow.value().key == path.key() && slow.value().has_path_icrc()) {
        EXPECT_NE(slow.value().ip_and_udp.last(2)[0] | slow.value().ip_and_udp.last(2)[1], 0) << "a UDP checksum";
    }
}

TEST_P(DatagramTest, AgreesWithThePathOnEveryLengthAndEverySingleByteMutation) {
    Path path(key_at_b(GetParam()));
    path.resolve(kMacB, kMacA);
    for (std::size_t bytes = 0; bytes <= 64; ++bytes) {
        Frame frame = make_frame(GetParam(), bytes);
        ASSERT_TRUE(matches(path, frame));
        expect_agreement(path, frame);
        frame.resize(std::max<std::size_t>(frame.size(), 60), 0);
        ASSERT_TRUE(matches(path, frame)) << "padded by the link";
        expect_agreement(path, frame);
    }
    const Frame good = make_frame(GetParam());
    for (std::size_t at = 0; at < path.lower_bytes(); ++at) {
        for (unsigned change = 1; change < 256; ++change) {
            for (const bool mend : {false, true}) {
                Frame mutated = good;
                mutated[at] = static_cast<std::uint8_t>(mutated[at] ^ change);
                if (mend) {
                    test::mend_checksums(mutated);
                }
                expect_agreement(path, mutated);
                ASSERT_FALSE(HasFatalFailure() || HasNonfatalFailure()) << at << " ^ " << change;
            }
        }
    }
}

// Returns the headers before the BTH, made from the parsed values alone, over a dirty buffer.
Frame rebuilt_lower_headers(const Frame& frame) {
    const auto ethernet = net::EthernetHeader::parse(frame).value();
    const bool v4 = ethernet.type == net::kEtherTypeIpv4;
    const std::size_t udp_at = kIp + (v4 ? net::Ipv4Header::kBytes : net::Ipv6Header::kBytes);
    Frame rebuilt(udp_at + net::UdpHeader::kBytes, 0xa5);
    const std::span<const std::uint8_t> packet = std::span(frame).subspan(kIp);
    net::emit_at(rebuilt.data(), ethernet);
    if (v4) {
        net::emit_at(rebuilt.data() + kIp, net::Ipv4Header::parse(packet).value());
    } else {
        net::emit_at(rebuilt.data() + kIp, net::Ipv6Header::parse(packet).value());
    }
    net::emit_at(rebuilt.data() + udp_at, net::UdpHeader::parse(std::span(frame).subspan(udp_at)).value());
    return rebuilt;
}

TEST(Datagram, EveryGoldenFrameIsParsedRebuiltAndItsIcrcIsRight) {
    std::size_t frames = 0;
    for (const auto& file : test::trace_files()) {
        for (const Frame& frame : test::read_pcap(file)) {
            const ParsedFrame parsed = parse_frame(frame);
            if (!test::traces_are_golden() && !(parsed.ok() && has_right_icrc(parsed.value()))) {
                continue;
            }
            ASSERT_TRUE(parsed.ok()) << file;
            const Datagram& datagram = parsed.value();
            ASSERT_TRUE(has_room_for_icrc(datagram)) << file;
            EXPECT_EQ(icrc_of_frame(datagram), carried_icrc(datagram)) << file;
            const Frame lower = rebuilt_lower_headers(frame);
            EXPECT_EQ(test::to_hex(lower), test::to_hex(std::span(frame).first(lower.size()))) << file;
            EXPECT_TRUE(parse_frame_for(datagram.destination_mac, datagram.key.local, frame).ok());
            ++frames;
        }
    }
    EXPECT_TRUE(frames > 0 || !test::traces_are_golden());
}

TEST(Datagram, EveryVerdictHasACounterNameOfItsOwnAndAMeaning) {
    constexpr auto kTexts = counter_texts(FrameVerdict{});
    for (std::size_t i = 0; i < kTexts.size(); ++i) {
        EXPECT_TRUE(kTexts[i].name.starts_with("port_"));
        EXPECT_GT(kTexts[i].meaning.size(), 10U);
        for (std::size_t j = 0; j < i; ++j) {
            EXPECT_NE(kTexts[i].name, kTexts[j].name);
        }
    }
}

}  // namespace
}  // namespace cairn::port
