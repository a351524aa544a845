// The IPv4 ID in an ICRC. The ID counts in the ICRC but a UDP socket cannot see it: kernels number the segments of
// one GSO send from 0, Soft-RoCE counts up. CRC-32 is linear, so for one length the ID's bits change the ICRC by 16
// constants, which tell the ICRC for any ID from that for 0, and the ID from the difference of two ICRCs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "lib/base/time.hpp"

namespace cairn::port {

// Constants per length, made when a length is first seen. One thread.
class IpIdDeltas {
public:
    static constexpr std::uint16_t kMaxUdpPayloadBytes = 4160;

    IpIdDeltas();

    // What ID `id` instead of 0 changes in the ICRC of a datagram of `udp_payload_bytes` (at most the maximum).
    [[nodiscard]] std::uint32_t delta(std::uint16_t udp_payload_bytes, std::uint16_t id) noexcept {
        const Row& row = rows_[udp_payload_bytes / 4 % kRows];
        if (row.udp_payload_bytes == udp_payload_bytes && id < kRowIds) [[likely]] {
            return row.deltas[id];
        }
        return new_delta(udp_payload_bytes, id);
    }
    // The one ID that makes this difference, if any does.
    [[nodiscard]] std::optional<std::uint16_t> solve(std::uint16_t udp_payload_bytes,
                                                     std::uint32_t difference) noexcept;

private:
    using Basis = std::array<std::uint32_t, 16>;  // by bit of the ID; never 0 once made
    [[nodiscard]] const Basis& basis_for(std::uint16_t udp_payload_bytes) noexcept;
    [[nodiscard]] std::uint32_t new_delta(std::uint16_t udp_payload_bytes, std::uint16_t id) noexcept;

    // The first IDs, which a batch's segments have, for some lengths.
    static constexpr std::size_t kRowIds = 128;
    static constexpr std::size_t kRows = 8;
    struct Row {
        std::uint16_t udp_payload_bytes = 0;
        std::array<std::uint32_t, kRowIds> deltas{};
    };
    std::array<Row, kRows> rows_{};
    std::unique_ptr<Basis[]> bases_;  // [kMaxUdpPayloadBytes + 1]
};

// Which solved IDs of one peer to believe: any ID passes one damaged packet in 65,536, those near the last one far
// fewer. A peer's counter moves on with time and with its packets to others (Linux: by up to a jiffy's worth of
// chance per jiffy). IDs that are near none are doubted; two of these that agree with each other are a counter, too.
// The ICRC is no secret: who forges the peer's address can have counters of his own. The peer's stays beside them, as
// long as it is one of those heard last.
class IpIdHistory {
public:
    [[nodiscard]] bool judge(std::uint16_t id, Instant now) noexcept;

private:
    struct Counter {
        std::uint16_t last = 0;
        bool known = false;
        Instant seen{};
        std::uint64_t turn = 0;  // of the history, when it was seen

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
    std::uint64_t heard_ = 0;  // when an ID was believed last
};

// Those of all peers by IPv4 address, since IDs count over all ports of one; peers share entries when there are more.
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
