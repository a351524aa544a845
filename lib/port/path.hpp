// Path: everything constant between one local and one remote address, made ready once.
// It owns the lower headers (Ethernet, IP, UDP) of both directions and the ICRC state of all that
// stands before the BTH, so that a small packet costs one copy of a template and one short CRC.
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

// The first of the dynamic ports (RFC 6335, 6): RoCEv2 senders tell flows apart by them.
constexpr std::uint16_t kFirstUdpSourcePort = 0xc000;

// What makes two packets travel the same way. The UDP source port is the same in both directions:
// whoever connects chooses it (so that answers reach its own receive queue), the other side mirrors it.
struct PathKey {
    net::IpAddress local;
    net::IpAddress remote;
    std::uint16_t udp_source_port = 0;
    std::uint8_t traffic_class = 0;  // DSCP and ECN bits written on transmit; 0: those of the table

    // The traffic class says how a datagram is treated, not where it belongs: switches change it.
    // mutants: port-path-key-equals
    friend constexpr bool operator==(const PathKey& a, const PathKey& b) noexcept {
        return a.local == b.local && a.remote == b.remote && a.udp_source_port == b.udp_source_port;
    }
};

struct PacketRef;  // port.hpp

enum class Direction : std::uint8_t { Transmit, Receive };

// Owned by a PathTable, which hands out stable pointers. Driven by the worker that owns the port.
class Path {
public:
    static constexpr std::size_t kEthernetBytes = 14;
    static constexpr std::size_t kLowerBytesV4 = 14 + 20 + 8;
    static constexpr std::size_t kLowerBytesV6 = 14 + 40 + 8;

    Path() noexcept = default;
    explicit Path(const PathKey& key) noexcept : Path(key, key.udp_source_port) {}
    // Sends from another UDP port than it receives from: a socket has only its own.
    Path(const PathKey& key, std::uint16_t own_source_port) noexcept;

    // Ethernet addresses become known (or change) when the neighbour answers; IP-only ports never call it. False: they
    // are those it had, and what was made ready stays.
    bool resolve(const net::MacAddress& local, const net::MacAddress& remote) noexcept;
    void unresolve() noexcept { resolved_ = false; }
    void set_traffic_class(std::uint8_t traffic_class) noexcept;

    [[nodiscard]] const PathKey& key() const noexcept { return key_; }
    [[nodiscard]] bool is_v4() const noexcept { return is_v4_; }
    [[nodiscard]] bool resolved() const noexcept { return resolved_; }
    // Returns the Ethernet address that it goes to while it is resolved.
    [[nodiscard]] std::optional<net::MacAddress> goes_to() const noexcept;
    [[nodiscard]] std::size_t lower_bytes() const noexcept { return lower_bytes_; }
    // From when on its route takes several datagrams at once, for all that its port knows.
    [[nodiscard]] Instant takes_batches_from() const noexcept { return takes_batches_from_; }
    void refuse_batches_until(Instant then) noexcept { takes_batches_from_ = then; }

    // Writes Ethernet, IP (ID 0, DF, checksum right) and UDP (checksum 0) so that they end just before
    // `udp_payload`; the room of lower_bytes() before it must belong to the caller.
    void write_lower_headers(std::uint8_t* udp_payload, std::uint16_t udp_payload_bytes) const noexcept;

    // The same in either direction, lower_bytes() of them at `out`, with the IPv4 ID and the ECN bits that a datagram
    // had: for capture files.
    void describe_lower_headers(Direction direction, std::uint8_t* out, std::uint16_t udp_payload_bytes,
                                std::uint16_t ip_id, std::uint8_t ecn) const noexcept;

    // True when the lower headers of `frame` (at least lower_bytes() long) are this path's, received:
    // addresses, protocol, ports, no options, not a fragment, ID 0 with DF, IPv4 header checksum right, lengths
    // consistent with `frame_bytes` (a frame may be padded to 60 bytes). Constant time; no allocation.
    [[nodiscard]] bool matches_received(const std::uint8_t* frame, std::size_t frame_bytes) const noexcept;

    // The ICRC of a datagram of `udp_payload_bytes` (BTH ... ICRC) that travels here, computed over all but
    // its last four bytes; the value is stored little-endian in those. Valid for ID 0 with DF. The 12 bytes in
    // front of `bth` must be readable.
    [[nodiscard]] std::uint32_t icrc(Direction direction, const std::uint8_t* bth,
                                     std::uint16_t udp_payload_bytes) noexcept;
    // The CRC state behind the first `header_bytes` of a datagram of `udp_payload_bytes` whose rest lies
    // elsewhere: continue it with wire::crc32 over that rest, the ICRC's own four bytes excluded.
    [[nodiscard]] std::uint32_t icrc_of_headers(Direction direction, const std::uint8_t* bth, std::size_t header_bytes,
                                                std::uint16_t udp_payload_bytes) noexcept;

    // Both in one, for datagrams in one piece: what write_lower_headers() and icrc() do, from what was made ready
    // for the last datagrams of this length and first BTH word.
    void seal(std::uint8_t* bth, std::uint16_t udp_payload_bytes) noexcept;
    // And their counterpart: what matches_received() judges, then the ICRC. `frame` lies in a packet buffer: 80 bytes
    // from there on can be read, however short it is.
    // WholeFromElsewhere: the first of a kind whose sender's Ethernet address is not the one that the path goes to.
    enum class Arrival : std::uint8_t { Whole, BadIcrc, NoMatch, WholeFromElsewhere };
    [[nodiscard]] Arrival judge_arrival(const std::uint8_t* frame, std::size_t frame_bytes) noexcept;
    // And says what arrived, unless it is NoMatch: all of `out` but its buffer (cookie, room).
    [[nodiscard]] Arrival judge_arrival(std::uint8_t* frame, std::size_t frame_bytes, PacketRef& out) noexcept;

    // Sessions and queue pairs pin the paths they use; an unpinned path may be recycled by its table.
    // mutants: port-path-pin
    void pin() noexcept {
        if (pins_++ == 0 && idle_ != nullptr) {
            *idle_ = 0;
        }
    }
    void unpin() noexcept;
    // For its table: `idle` is 1 from now on while there are no pins, of which there are none yet, else 0.
    void note_pins_at(std::uint8_t& idle) noexcept {
        idle_ = &idle;
        idle = 1;
    }
    [[nodiscard]] std::uint32_t pins() const noexcept { return pins_; }
    // The number of the last burst with a packet of it, for its table; 0: none.
    void note_burst(std::uint32_t number) noexcept { burst_ = number; }
    [[nodiscard]] std::uint32_t burst() const noexcept { return burst_; }

private:
    // All that datagrams of one length and one first BTH word (opcode, flags, P_Key) share: the headers up to that
    // word as they stand in the frame, and the CRC of what is before BTH byte 4.
    struct alignas(64) Shape {
        std::array<std::uint8_t, 68> header{};  // received: as judged last, checksum and traffic class included
        wire::CrcRuns rest;                     // BTH byte 4 ... payload
        std::uint32_t bth_word = 0;
        std::uint32_t least_bytes = 0xffffffffU;  // that a frame must have
        // As the end of a PacketRef, which is written in one piece.
        std::uint16_t udp_payload_bytes = 0;  // 0: empty
        std::uint16_t room = 0;
        std::uint16_t ip_id = 0;
        std::uint8_t ecn = 0;
        bool icrc_ok = true;

        [[nodiscard]] bool is_of(std::uint32_t word, std::uint16_t bytes) const noexcept {
            return udp_payload_bytes == bytes && bth_word == word;
        }
    };
    static constexpr std::size_t kShapes = 8;

    // By any `bytes` that go with the length. The opcode (first byte of the word) parts the First and Middle of one.
    [[nodiscard]] Shape& shape_for(Direction direction, std::uint32_t bth_word, std::size_t bytes) noexcept {
        return shapes_[static_cast<std::size_t>(direction)][(bytes + std::size_t{4} * bth_word) % (4 * kShapes) / 4];
    }
    // The shape of this length and word, made ready if it is another's.
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

// How the sender of a datagram is answered from any worker: by the path that the datagram came by, and the Ethernet
// address that this path goes to, where there are such. The key has no traffic class: the path of another worker may
// have one of its own.
struct WayBack {
    PathKey key{};
    std::optional<net::MacAddress> mac{};
};

[[nodiscard]] inline WayBack way_back_of(const Path& path) noexcept {
    const PathKey& key = path.key();
    return {{key.local, key.remote, key.udp_source_port, 0}, path.goes_to()};
}

}  // namespace cairn::port
