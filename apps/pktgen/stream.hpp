// A stream of cairn-pktgen: read from TOML, and the frames it stands for. No I/O but the script's file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lib/base/result.hpp"
#include "lib/base/types.hpp"
#include "lib/net/address.hpp"
#include "lib/port/path.hpp"

namespace cairn::pktgen {

// X(enumerator, name, what is wrong with the packet)
#define CAIRN_PKTGEN_FAULTS(X)                                              \
    X(None, "none", "nothing")                                              \
    X(Icrc, "icrc", "one bit of the ICRC is flipped")                       \
    X(Payload, "payload", "one bit behind the BTH is flipped")              \
    X(Truncated, "truncated", "the frame ends early, at each byte in turn") \
    X(Qpn, "qpn", "a queue pair number that is counted up")                 \
    X(Pkey, "pkey", "another partition, ICRC right")                        \
    X(Qkey, "qkey", "another Q_Key, ICRC right")                            \
    X(Version, "version", "transport header version 1, ICRC right")         \
    X(Opcode, "opcode", "each opcode in turn, ICRC right")                  \
    X(Pad, "pad", "a payload and pad that are no whole words, ICRC right")  \
    X(IpChecksum, "ip-checksum", "IPv4 header checksum wrong")              \
    X(IpLength, "ip-length", "IP length beyond the frame's end")            \
    X(UdpLength, "udp-length", "UDP length shorter than IP's")              \
    X(Fragment, "fragment", "IPv4 more-fragments flag")                     \
    X(Random, "random", "random bytes behind the UDP header")

enum class Fault : std::uint8_t {
#define CAIRN_X(enumerator, name, text) enumerator,
    CAIRN_PKTGEN_FAULTS(CAIRN_X)
#undef CAIRN_X
        Count,
};

struct Stream {
    net::IpAddress source{};
    net::IpAddress destination{};
    std::uint16_t udp_source_port = 0xc000;
    std::uint8_t traffic_class = 0;
    Qpn qpn{};
    Qpn source_qpn{0x777};
    Qkey qkey{};
    Pkey pkey{0xffff};
    std::uint16_t payload_bytes = 32;
    Fault fault = Fault::None;
    double rate_pps = 1000;
    std::uint64_t count = 1000;  // frames to send; 0: until stopped
    std::uint64_t seed = 1;
};

// Reads a script. Errors name the file, the line or key, and what is allowed.
Result<Stream> read_stream(const std::string& file_name);
Result<Stream> parse_stream(const std::string& text, const std::string& file_name);

constexpr std::size_t kLongestFrameBytes = 4352;

// Writes frame `serial` into `out` (at least kLongestFrameBytes); returns its size. The path is resolved and
// leads to the stream's destination. The same serial gives the same frame.
[[nodiscard]] std::size_t make_frame(const Stream& stream, port::Path& path, std::uint64_t serial,
                                     std::span<std::uint8_t> out);

}  // namespace cairn::pktgen
