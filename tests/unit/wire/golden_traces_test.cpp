// Every frame of the golden traces: parsed, rebuilt byte for byte from the parsed values, its ICRC checked; every
// truncation and every flipped bit is noticed. In other captures ($CAIRN_TRACES) every valid RoCEv2 frame is tested;
// the reasons for leaving others out are printed.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "lib/net/ethernet.hpp"
#include "lib/net/ipv4.hpp"
#include "lib/net/ipv6.hpp"
#include "lib/net/udp.hpp"
#include "lib/port/datagram.hpp"
#include "lib/wire/packet.hpp"
#include "tests/support/pcap_reader.hpp"

namespace cairn::wire {
namespace {

constexpr std::size_t kEthernet = net::EthernetHeader::kBytes;
constexpr std::size_t kMaskedByte = 4;  // byte of the BTH that is not in the ICRC

struct Golden {
    test::Frame frame;
    std::string file;
};
struct Traces {
    std::vector<Golden> roce;
    std::vector<Golden> samples;  // the samples that are changed bit by bit
    std::size_t others = 0;
};

bool is_v4(const test::Frame& frame) {
    return frame[12] == 0x08 && frame[13] == 0x00;
}

// Independent of the tested parsers: UDP port 4791 over IPv4, or right after an IPv6 header.
bool is_roce_v2(const test::Frame& frame) {
    if (frame.size() < kEthernet + 28) {
        return false;
    }
    const bool v6 = frame[12] == 0x86 && frame[13] == 0xdd;
    const std::size_t udp = kEthernet + (v6 ? 40U : (frame[kEthernet] & 0x0fU) * 4U);
    const bool is_udp = v6 ? frame[kEthernet + 6] == 17 : is_v4(frame) && frame[kEthernet + 9] == 17;
    return is_udp && frame.size() >= udp + 8 && frame[udp + 2] == 4791 / 256 && frame[udp + 3] == 4791 % 256;
}

// Returns why a frame of a capture, which may have damaged or foreign frames, is not judged; empty: it is.
std::string why_not(const test::Frame& frame) {
    if (!is_roce_v2(frame)) {
        return "other traffic";
    }
    const port::ParsedFrame parsed = port::parse_frame(frame);
    if (!parsed.ok()) {
        return std::string(counter_texts(port::FrameVerdict{})[static_cast<std::size_t>(parsed.reason())].name);
    }
    if (parsed.value().udp_payload.size() > 4096 + 64) {
        return "longer than any path MTU: batches that the kernel had not cut yet";
    }
    if (!port::has_right_icrc(parsed.value())) {
        return "wrong ICRC";
    }
    const auto packet = Packet::parse(parsed.value().udp_payload);
    return packet.ok() ? "" : std::string(counter_texts(Drop{})[static_cast<std::size_t>(packet.reason())].name);
}

constexpr std::size_t kMostOfAFile = 5000;

Traces read_captures() {
    Traces traces;
    for (const auto& file : test::trace_files()) {
        const test::CaptureFile capture = test::CaptureReader(file).read();
        const std::string name = file.filename().string();
        std::map<std::string, std::size_t> skipped;
        std::set<std::pair<std::uint8_t, std::size_t>> shapes;
        std::size_t judged = 0;
        for (const test::Frame& frame : capture.frames) {
            const std::string why = judged == kMostOfAFile ? "behind the first 5000" : why_not(frame);
            if (!why.empty()) {
                ++skipped[why];
                continue;
            }
            ++judged;
            traces.roce.push_back({frame, name});
            if (shapes.emplace(port::parse_frame(frame).value().udp_payload[0], frame.size()).second) {
                traces.samples.push_back({frame, name});
            }
        }
        std::printf("%s: %zu frames judged%s%s\n", name.c_str(), judged,
                    capture.refusal.empty() ? "" : ", skipped: ", capture.refusal.c_str());
        skipped["not recorded whole"] += capture.cut;
        for (const auto& [why, count] : skipped) {
            if (count != 0) {
                std::printf("%s: %zu frames skipped: %s\n", name.c_str(), count, why.c_str());
            }
        }
    }
    return traces;
}

Traces read_traces() {
    if (!test::traces_are_golden()) {
        return read_captures();
    }
    Traces traces;
    for (const auto& file : test::trace_files()) {
        const std::vector<test::Frame> frames = test::read_pcap(file);
        EXPECT_FALSE(frames.empty()) << file << " has no frame, or is no little-endian Ethernet pcap";
        for (const test::Frame& frame : frames) {
            if (is_roce_v2(frame)) {
                traces.roce.push_back({frame, file.filename().string()});
            } else {
                EXPECT_FALSE(port::parse_frame(frame).ok()) << file;
                ++traces.others;
            }
        }
    }
    EXPECT_FALSE(traces.roce.empty()) << "no RoCEv2 frame in any trace";
    traces.samples = traces.roce;
    return traces;
}

const Traces& traces() {
    static const Traces kAll = read_traces();
    return kAll;
}

template <class Header>
void append_header(test::Frame& out, const Header& header) {
    const std::size_t at = out.size();
    out.resize(at + Header::kBytes, 0xa5);
    net::emit_at(out.data() + at, header);
}

void append(test::Frame& out, std::span<const std::uint8_t> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_icrc(test::Frame& out) {
    const std::uint32_t icrc = icrc_reference(std::span(out).subspan(kEthernet));
    for (unsigned shift = 0; shift < 32; shift += 8) {
        out.push_back(static_cast<std::uint8_t>(icrc >> shift));
    }
}

// Returns the frame rebuilt from its parsed values. Padding of the link after a short frame is copied.
test::Frame rebuilt(const test::Frame& frame, const port::Datagram& datagram, const Packet& packet) {
    const std::span<const std::uint8_t> ip_packet = std::span(frame).subspan(kEthernet);
    test::Frame out;
    append_header(out, net::EthernetHeader::parse(frame).value());
    if (is_v4(frame)) {
        append_header(out, net::Ipv4Header::parse(ip_packet).value());
    } else {
        append_header(out, net::Ipv6Header::parse(ip_packet).value());
    }
    const std::size_t udp_at = out.size();
    const std::size_t end = udp_at + net::UdpHeader::kBytes + datagram.udp_payload.size();
    append_header(out, net::UdpHeader::parse(std::span(frame).subspan(udp_at, end - udp_at)).value());
    test::Frame headers(packet.traits().header_bytes, 0xa5);
    append(out, std::span(headers).first(packet.emit(headers)));
    append(out, packet.payload());
    out.resize(out.size() + packet.pad_bytes(), 0);
    append_icrc(out);
    append(out, std::span(frame).subspan(end));
    return out;
}

class GoldenTraces : public testing::Test {
protected:
    void SetUp() override {
        if (traces().roce.empty()) {
            GTEST_SKIP() << "no sound RoCEv2 frame in these captures";
        }
    }
};

TEST_F(GoldenTraces, EveryFrameIsRebuiltByteForByteFromWhatItParsesTo) {
    for (const Golden& golden : traces().roce) {
        const auto datagram = port::parse_frame(golden.frame);
        ASSERT_TRUE(datagram.ok()) << golden.file;
        const auto packet = Packet::parse(datagram.value().udp_payload);
        ASSERT_TRUE(packet.ok()) << golden.file;
        ASSERT_EQ(rebuilt(golden.frame, datagram.value(), packet.value()), golden.frame) << golden.file;
    }
    std::printf("%zu RoCEv2 frames, %zu others\n", traces().roce.size(), traces().others);
}

TEST_F(GoldenTraces, EveryFrameCarriesTheIcrcThatBothFormsCompute) {
    for (const Golden& golden : traces().roce) {
        const auto parsed = port::parse_frame(golden.frame);
        ASSERT_TRUE(parsed.ok()) << golden.file;
        const port::Datagram& datagram = parsed.value();
        ASSERT_TRUE(port::has_room_for_icrc(datagram)) << golden.file;
        const std::uint32_t carried = port::carried_icrc(datagram);
        EXPECT_EQ(port::icrc_of_frame(datagram), carried) << golden.file;
        const std::size_t covered = datagram.ip_and_udp.size() + datagram.udp_payload.size() - kIcrcBytes;
        EXPECT_EQ(icrc_reference(std::span(golden.frame).subspan(kEthernet, covered)), carried) << golden.file;
    }
}

TEST_F(GoldenTraces, EveryTruncatedFrameIsRefused) {
    for (const Golden& golden : traces().samples) {
        const auto whole = port::parse_frame(golden.frame);
        ASSERT_TRUE(whole.ok()) << golden.file;
        const std::size_t bytes =
            kEthernet + whole.value().ip_and_udp.size() + whole.value().udp_payload.size();  // without link padding
        for (std::size_t size = 0; size < bytes; ++size) {
            const test::Frame cut(golden.frame.begin(), golden.frame.begin() + static_cast<std::ptrdiff_t>(size));
            const auto parsed = port::parse_frame(cut);
            ASSERT_FALSE(parsed.ok()) << golden.file << ' ' << size;
            ASSERT_NE(parsed.reason(), port::FrameVerdict::NotRoce) << golden.file << ' ' << size;
        }
    }
}

// The lengths of the lower headers fit the cut: a payload that lost whole words is a packet, but not this one.
TEST_F(GoldenTraces, EveryTruncatedDatagramIsRefusedByItsPacketOrItsIcrc) {
    for (const Golden& golden : traces().samples) {
        const port::Datagram datagram = port::parse_frame(golden.frame).value();
        const auto lower_bytes = static_cast<std::ptrdiff_t>(kEthernet + datagram.ip_and_udp.size());
        for (std::size_t size = 0; size < datagram.udp_payload.size(); ++size) {
            test::Frame cut(golden.frame.begin(),
                            golden.frame.begin() + lower_bytes + static_cast<std::ptrdiff_t>(size));
            net::UdpHeader udp{datagram.key.udp_source_port, net::kRoceUdpPort, 0, 0};
            udp.bytes = static_cast<std::uint16_t>(net::UdpHeader::kBytes + size);
            net::emit_at(cut.data() + lower_bytes - net::UdpHeader::kBytes, udp);
            const auto ip = std::span(golden.frame).subspan(kEthernet);
            if (is_v4(golden.frame)) {
                net::Ipv4Header header = net::Ipv4Header::parse(ip).value();
                header.total_bytes = static_cast<std::uint16_t>(cut.size() - kEthernet);
                net::emit_at(cut.data() + kEthernet, header);
            } else {
                net::Ipv6Header header = net::Ipv6Header::parse(ip).value();
                header.payload_bytes = udp.bytes;
                net::emit_at(cut.data() + kEthernet, header);
            }
            const auto parsed = port::parse_frame(cut);
            ASSERT_TRUE(parsed.ok()) << golden.file << ' ' << size;
            ASSERT_TRUE(!Packet::parse(parsed.value().udp_payload).ok() ||
                        port::icrc_of_frame(parsed.value()) != port::carried_icrc(parsed.value()))
                << golden.file << ' ' << size;
        }
    }
}

TEST_F(GoldenTraces, EveryFlippedBitFromBthToIcrcIsNoticedButForTheMaskedByte) {
    for (const Golden& golden : traces().samples) {
        test::Frame frame = golden.frame;
        const port::Datagram datagram = port::parse_frame(frame).value();
        const std::uint32_t state = icrc_lower_state(datagram.ip_and_udp);
        const std::size_t bth = kEthernet + datagram.ip_and_udp.size();
        const std::size_t covered = datagram.udp_payload.size() - kIcrcBytes;
        for (std::size_t bit = 0; bit < datagram.udp_payload.size() * 8; ++bit) {
            const std::size_t byte = bit / 8;
            const auto mask = static_cast<std::uint8_t>(1U << (bit % 8));
            frame[bth + byte] ^= mask;
            std::uint32_t carried = 0;
            std::memcpy(&carried, frame.data() + bth + covered, sizeof(carried));  // little-endian, as this host
            ASSERT_EQ(icrc_finish(state, frame.data() + bth, covered) == carried, byte == kMaskedByte)
                << golden.file << " bit " << bit;
            frame[bth + byte] ^= mask;
        }
    }
}

}  // namespace
}  // namespace cairn::wire
