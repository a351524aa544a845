// A stream of cairn-pktgen, read from TOML, and its frames. There is no I/O except for the script's file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "lib/base/types.hpp"
#include "lib/net/address.hpp"
#include "lib/port/path.hpp"

namespace cairn::pktgen {

// The place of a fault in a packet.
enum class FaultLayer : std::uint8_t {
    Headers,   // in the transport headers, under a right ICRC; also without a fault
    Finished,  // in the finished datagram, which makes its ICRC wrong
    Lower,     // below UDP: a socket cannot send it
};

// X(enumerator, name, what is wrong with the packet, where)
#define CAIRN_PKTGEN_FAULTS(X)                                                                               \
    X(None, "none", "nothing", Headers)                                                                      \
    X(Icrc, "icrc", "one bit of the ICRC is flipped", Finished)                                              \
    X(Payload, "payload", "one bit behind the BTH is flipped", Finished)                                     \
    X(Truncated, "truncated", "the frame (socket: the datagram) ends early, at each byte in turn", Finished) \
    X(Qpn, "qpn", "a queue pair number that is counted up", Headers)                                         \
    X(Pkey, "pkey", "another partition, ICRC right", Headers)                                                \
    X(Qkey, "qkey", "another Q_Key, ICRC right", Headers)                                                    \
    X(Version, "version", "transport header version 1, ICRC right", Headers)                                 \
    X(Opcode, "opcode", "each opcode in turn, ICRC right", Headers)                                          \
    X(Pad, "pad", "a payload and pad that are no whole words, ICRC right", Headers)                          \
    X(IpChecksum, "ip-checksum", "IPv4 header checksum wrong; not over a socket", Lower)                     \
    X(IpLength, "ip-length", "IP length beyond the frame's end; not over a socket", Lower)                   \
    X(UdpLength, "udp-length", "UDP length shorter than IP's; not over a socket", Lower)                     \
    X(Fragment, "fragment", "IPv4 more-fragments flag; not over a socket", Lower)                            \
    X(Random, "random", "random bytes behind the UDP header", Finished)

enum class Fault : std::uint8_t {
#define CAIRN_X(enumerator, name, text, layer) enumerator,
    CAIRN_PKTGEN_FAULTS(CAIRN_X)
#undef CAIRN_X
        Count,
};

[[nodiscard]] FaultLayer layer_of(Fault fault) noexcept;
[[nodiscard]] std::string_view name_of(Fault fault) noexcept;

struct Stream {
    std::optional<net::IpAddress> source{};  // absent: the port's own
    net::IpAddress destination{};
    std::uint16_t udp_source_port = port::kFirstUdpSourcePort;
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

// Reads a script. An Error names the file, the line or key, and the allowed values.
Result<Stream> read_stream(const std::string& file_name);
Result<Stream> parse_stream(const std::string& text, const std::string& file_name);

constexpr std::size_t kLongestFrameBytes = 4352;

// Writes frame `serial` into `out`, which has at least kLongestFrameBytes. Returns its size. The path is resolved and
// leads to the stream's destination. The same serial gives the same frame.
[[nodiscard]] std::size_t make_frame(const Stream& stream, port::Path& path, std::uint64_t serial,
                                     std::span<std::uint8_t> out) noexcept;
// As make_frame(), without the part below UDP: BTH ... ICRC. The fault is not below UDP.
[[nodiscard]] std::size_t make_datagram(const Stream& stream, port::Path& path, std::uint64_t serial,
                                        std::span<std::uint8_t> out) noexcept;
// Returns the size of the stream's largest datagram.
[[nodiscard]] std::size_t datagram_bytes(const Stream& stream) noexcept;
// Returns the size of its largest frame.
[[nodiscard]] std::size_t frame_bytes(const Stream& stream) noexcept;

}  // namespace cairn::pktgen
