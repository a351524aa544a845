// The IPv4 ID in an ICRC. The ICRC covers the ID, but a UDP socket cannot see it. Kernels number the segments of one
// GSO send from 0; Soft-RoCE counts up. CRC-32 is linear: for one length, each of the 16 bits of the ID changes the
// ICRC by a constant. So the ICRC for ID 0 gives the ICRC for any ID, and the difference of two ICRCs gives the ID.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "lib/base/time.hpp"

namespace cairn::port {

// Holds the constants of each length. They are made when a length is first seen. Belongs to one thread.
class IpIdDeltas {
public:
    static constexpr std::uint16_t kMaxUdpPayloadBytes = 4160;

    IpIdDeltas();

    // Returns the change in the ICRC of a datagram of `udp_payload_bytes` if its ID is `id` instead of 0.
    // `udp_payload_bytes` is at most the maximum (asserted).
    [[nodiscard]] std::uint32_t delta(std::uint16_t udp_payload_bytes, std::uint16_t id) noexcept {
        const Row& row = rows_[udp_payload_bytes / 4 % kRows];
        if (row.udp_payload_bytes == udp_payload_bytes && id < kRowIds) [[likely]] {
            return row.deltas[id];
        }
        return new_delta(udp_payload_bytes, id);
    }
    // Returns the ID that makes this difference; nullopt if no ID does. There is never more than one.
    [[nodiscard]] std::optional<std::uint16_t> solve(std::uint16_t udp_payload_bytes,
                                                     std::uint32_t difference) noexcept;

private:
    using Basis = std::array<std::uint32_t, 16>;  // by bit of the ID; no element is 0 once it is made
    [[nodiscard]] const Basis& basis_for(std::uint16_t udp_payload_bytes) noexcept;
    [[nodiscard]] std::uint32_t new_delta(std::uint16_t udp_payload_bytes, std::uint16_t id) noexcept;

    // The constants of the first IDs, for some lengths. A batch's segments have the first IDs.
    static constexpr std::size_t kRowIds = 128;
    static constexpr std::size_t kRows = 8;
    struct Row {
        std::uint16_t udp_payload_bytes = 0;
        std::array<std::uint32_t, kRowIds> deltas{};
    };
    std::array<Row, kRows> rows_{};
    std::unique_ptr<Basis[]> bases_;  // [kMaxUdpPayloadBytes + 1]
};

// Judges the solved IDs of one peer. If every ID were believed, one damaged packet in 65,536 would pass. Only IDs near
// the last one are believed, so far fewer pass. A peer's counter moves on with its packets to others, and with time.
// (Linux adds up to a jiffy's worth per jiffy, at random.) An ID that is near no counter is doubted. Two doubted IDs
// that agree with each other make a counter that is believed. The ICRC is no secret: a sender that forges the peer's
// address can have counters of its own. The peer's counter stays next to them as long as it is one of the few heard
// last.
class IpIdHistory {
public:
    [[nodiscard]] bool judge(std::uint16_t id, Instant now) noexcept;

private:
    struct Counter {
        std::uint16_t last = 0;
        bool known = false;
        Instant seen{};
        std::uint64_t turn = 0;  // value of turn_ when it was seen

        [[nodiscard]] bool is_followed_by(std::uint16_t id, Instant now) const noexcept;
    };
    static constexpr std::size_t kCounters = 4;
    using Counters = std::array<Counter, kCounters>;
    [[nodiscard]] static Counter* followed(Counters& counters, std::uint16_t id, Instant now) noexcept;
    static Counter& oldest(Counters& counters) noexcept;
    [[nodiscard]] bool is_current(const Counter& counter, Instant now) const noexcept;

    Counters believed_{};
    Counters doubted_{};
    std::uint64_t turn_ = 0;
    std::uint64_t heard_ = 0;  // value of turn_ when an ID was last believed
};

// The histories of all peers by IPv4 address. A peer counts its IDs over all UDP ports. Peers whose addresses hash
// alike share an entry: each takes it from the other.
class IpIdHistories {
public:
    [[nodiscard]] bool judge(std::uint32_t address, std::uint16_t id, Instant now) noexcept {
        Peer& peer = peers_[(address * 0x9e3779b1U >> 16U) % peers_.size()];
        if (peer.address != address) {
            peer = {address, {}};
        }
        return peer.history.judge(id, now);
    }

private:
    struct Peer {
        std::uint32_t address = 0;
        IpIdHistory history;
    };
    std::array<Peer, 256> peers_{};
};

}  // namespace cairn::port
