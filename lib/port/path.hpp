// Path: everything constant between one local and one remote address, prepared once. It owns the lower headers
// (Ethernet, IP, UDP) of both directions, and the ICRC state of all bytes before BTH byte 4. So a small packet costs
// one copy of a template and one short CRC.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/base/time.hpp"
#include "lib/net/address.hpp"
#include "lib/wire/crc32_short.hpp"

namespace cairn::port {

// The first dynamic port (RFC 6335, 6). RoCEv2 senders tell flows apart by dynamic source ports.
constexpr std::uint16_t kFirstUdpSourcePort = 0xc000;

// Two packets with equal keys travel the same way. The UDP source port is the same in both directions. The side that
// connects chooses it so that answers reach its own receive queue. The other side mirrors it.
struct PathKey {
    net::IpAddress local;
    net::IpAddress remote;
    std::uint16_t udp_source_port = 0;
    std::uint8_t traffic_class = 0;  // DSCP and ECN bits written on transmit; 0: the table's default

    // The traffic class is not compared: it only chooses the treatment of a datagram, and switches change it.
    friend constexpr bool operator==(const PathKey& a, const PathKey& b) noexcept {
        return a.local == b.local && a.remote == b.remote && a.udp_source_port == b.udp_source_port;
    }
};

struct PacketRef;  // port.hpp

enum class Direction : std::uint8_t { Transmit, Receive };

// Owned by a PathTable, which hands out stable pointers. Used only by the worker that owns the port.
class Path {
public:
    static constexpr std::size_t kEthernetBytes = 14;
    static constexpr std::size_t kLowerBytesV4 = 14 + 20 + 8;
    static constexpr std::size_t kLowerBytesV6 = 14 + 40 + 8;

    Path() noexcept = default;
    explicit Path(const PathKey& key) noexcept : Path(key, key.udp_source_port) {}
    // Makes a path that sends from `own_source_port` and receives from the key's port. A socket sends from its own port
    // only.
    Path(const PathKey& key, std::uint16_t own_source_port) noexcept;

    // Sets the Ethernet addresses when the neighbour answers. Returns false if both are unchanged; the prepared state
    // then stays. A port without Ethernet resolves with zero addresses.
    bool resolve(const net::MacAddress& local, const net::MacAddress& remote) noexcept;
    void unresolve() noexcept { resolved_ = false; }
    void set_traffic_class(std::uint8_t traffic_class) noexcept;

    [[nodiscard]] const PathKey& key() const noexcept { return key_; }
    [[nodiscard]] bool is_v4() const noexcept { return is_v4_; }
    [[nodiscard]] bool resolved() const noexcept { return resolved_; }
    // Returns the Ethernet address that the path goes to; nullopt while it is not resolved.
    [[nodiscard]] std::optional<net::MacAddress> goes_to() const noexcept;
    [[nodiscard]] std::size_t lower_bytes() const noexcept { return lower_bytes_; }
    // Returns the time from which the route takes batches, as far as the port knows.
    [[nodiscard]] Instant takes_batches_from() const noexcept { return takes_batches_from_; }
    void refuse_batches_until(Instant then) noexcept { takes_batches_from_ = then; }

    // Writes Ethernet, IP (ID 0, DF, right checksum) and UDP (checksum 0) so that they end just before `udp_payload`.
    // The lower_bytes() before it belong to the caller.
    void write_lower_headers(std::uint8_t* udp_payload, std::uint16_t udp_payload_bytes) const noexcept;

    // Writes the lower headers of either direction to `out` (lower_bytes()), with the IPv4 ID and the ECN bits that a
    // datagram had. Used for capture files.
    void describe_lower_headers(Direction direction, std::uint8_t* out, std::uint16_t udp_payload_bytes,
                                std::uint16_t ip_id, std::uint8_t ecn) const noexcept;

    // Returns true if the lower headers of `frame` (at least lower_bytes() long) are those of a datagram received on
    // this path. Judges addresses, protocol, ports, no options, no fragment, ID 0 with DF, the IPv4 header checksum and
    // lengths. The lengths must agree with `frame_bytes` (a frame may be padded to 60 bytes). Takes constant time and
    // allocates nothing.
    [[nodiscard]] bool matches_received(const std::uint8_t* frame, std::size_t frame_bytes) const noexcept;

    // Returns the ICRC of a datagram of `udp_payload_bytes` (BTH ... ICRC) on this path, over all but the last four
    // bytes. The value is stored there little-endian. It is valid for ID 0 with DF. The 12 bytes before `bth` are
    // readable.
    [[nodiscard]] std::uint32_t icrc(Direction direction, const std::uint8_t* bth,
                                     std::uint16_t udp_payload_bytes) noexcept;
    // Returns the CRC state after the first `header_bytes` of a datagram of `udp_payload_bytes` whose rest lies
    // elsewhere. The caller continues it with wire::crc32 over the rest without the ICRC's four bytes.
    [[nodiscard]] std::uint32_t icrc_of_headers(Direction direction, const std::uint8_t* bth, std::size_t header_bytes,
                                                std::uint16_t udp_payload_bytes) noexcept;

    // As write_lower_headers() and icrc(), for a datagram in one piece. Uses the state that was prepared for the last
    // datagrams of this length and first BTH word.
    void seal(std::uint8_t* bth, std::uint16_t udp_payload_bytes) noexcept;
    // As matches_received(), and then judges the ICRC; the counterpart of seal(). `frame` lies in a packet buffer: 80
    // bytes from its start are readable, however short it is. WholeFromElsewhere: as Whole, but the sender's Ethernet
    // address is not the one that the path goes to. It is returned only for a frame whose headers differ from the
    // headers that were judged last.
    enum class Arrival : std::uint8_t { Whole, BadIcrc, NoMatch, WholeFromElsewhere };
    [[nodiscard]] Arrival judge_arrival(const std::uint8_t* frame, std::size_t frame_bytes) noexcept;
    // Does the same and describes the datagram in `out`, unless the result is NoMatch. The caller sets cookie and room.
    [[nodiscard]] Arrival judge_arrival(std::uint8_t* frame, std::size_t frame_bytes, PacketRef& out) noexcept;

    // Sessions and queue pairs pin the paths that they use. The table may recycle an unpinned path.
    void pin() noexcept {
        if (pins_++ == 0 && idle_ != nullptr) {
            *idle_ = 0;
        }
    }
    void unpin() noexcept;
    // Keeps `idle` at 1 while there are no pins, else at 0, from now on. The path's table calls it; the path has no
    // pins yet.
    void note_pins_at(std::uint8_t& idle) noexcept {
        idle_ = &idle;
        idle = 1;
    }
    [[nodiscard]] std::uint32_t pins() const noexcept { return pins_; }
    // Notes the number of the last burst with a packet of this path; 0: there was none. The path's table calls it.
    void note_burst(std::uint32_t number) noexcept { burst_ = number; }
    [[nodiscard]] std::uint32_t burst() const noexcept { return burst_; }

private:
    // The common state of datagrams of one length and one first BTH word (opcode, flags, P_Key). It has the headers up
    // to that word as they stand in the frame, and the CRC of all bytes before BTH byte 4.
    struct alignas(64) Shape {
        std::array<std::uint8_t, 68> header{};  // received: as last judged, with checksum and traffic class
        wire::CrcRuns rest;                     // BTH byte 4 ... payload
        std::uint32_t bth_word = 0;
        std::uint32_t least_bytes = 0xffffffffU;  // of the frame
        // The same fields in the same order as the end of a PacketRef. One copy writes them all.
        std::uint16_t udp_payload_bytes = 0;  // 0: empty
        std::uint8_t ecn = 0;
        bool icrc_ok = true;
        std::uint16_t room = 0;
        std::uint16_t ip_id = 0;

        [[nodiscard]] bool is_of(std::uint32_t word, std::uint16_t bytes) const noexcept {
            return udp_payload_bytes == bytes && bth_word == word;
        }
    };
    static constexpr std::size_t kShapes = 16;  // with 8, an ACK and a First packet of path MTU 1024 take turns

    // Returns the shape's place. `bytes` is any size that goes with the length. The opcode is the first byte of the
    // word; it keeps the First and Middle packets of one length apart.
    [[nodiscard]] Shape& shape_for(Direction direction, std::uint32_t bth_word, std::size_t bytes) noexcept {
        return shapes_[static_cast<std::size_t>(direction)][(bytes + std::size_t{4} * bth_word) % (4 * kShapes) / 4];
    }
    // Returns the shape of this length and word. Prepares it if the place holds another one.
    [[nodiscard]] Shape& ready_shape(Direction direction, std::uint32_t bth_word,
                                     std::uint16_t udp_payload_bytes) noexcept;
    template <class Family>
    void seal_known(const Shape& shape, std::uint8_t* bth) noexcept;
    [[gnu::noinline]] void seal_other(std::uint8_t* bth, std::uint16_t udp_payload_bytes) noexcept;
    template <class Family>
    [[nodiscard]] Arrival judge_known(std::uint8_t* frame, std::size_t frame_bytes, PacketRef& out) noexcept;
    [[nodiscard]] [[gnu::noinline]] Arrival judge_new(std::uint8_t* frame, std::size_t frame_bytes,
                                                      PacketRef& out) noexcept;
    void describe(const Shape& shape, std::uint8_t* bth, PacketRef& out) noexcept;
    [[nodiscard]] std::uint8_t ecn_of(const std::uint8_t* frame) const noexcept;
    void make_shape(Shape& shape, Direction direction, std::uint32_t bth_word,
                    std::uint16_t udp_payload_bytes) const noexcept;

    PathKey key_;
    bool is_v4_ = true;
    bool resolved_ = false;
    std::uint8_t lower_bytes_ = kLowerBytesV4;
    std::uint32_t pins_ = 0;
    std::uint32_t burst_ = 0;
    std::uint8_t* idle_ = nullptr;
    Instant takes_batches_from_{};
    alignas(64) std::array<std::uint8_t, 64> transmit_header_{};  // lower_bytes() of template, lengths 0
    alignas(64) std::array<std::uint8_t, 64> receive_header_{};
    std::array<std::array<Shape, kShapes>, 2> shapes_{};  // by Direction
};

// How any worker answers the sender of a datagram. Has the key of the path that the datagram came by, and the Ethernet
// address of that path, if there is one. The key has no traffic class: the path of another worker may have its own.
struct WayBack {
    PathKey key{};
    std::optional<net::MacAddress> mac{};
};

[[nodiscard]] inline WayBack way_back_of(const Path& path) noexcept {
    const PathKey& key = path.key();
    return {{key.local, key.remote, key.udp_source_port, 0}, path.goes_to()};
}

}  // namespace cairn::port
