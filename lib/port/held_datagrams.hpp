// Received datagrams that are handed out later.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/port/port.hpp"

namespace cairn::port {

// Keeps copies in memory of its own, so that the port has its buffers back. Pins their paths. One thread uses it.
class HeldDatagrams {
public:
    explicit HeldDatagrams(std::size_t most);
    HeldDatagrams(const HeldDatagrams&) = delete;
    HeldDatagrams& operator=(const HeldDatagrams&) = delete;
    ~HeldDatagrams();

    // Keeps a copy of a datagram, whose path is one that stays. Returns false if there is no room.
    [[nodiscard]] bool hold(const PacketRef& packet, Instant due) noexcept;
    // Fills `out` from the front with the datagrams that are due, in buffers of `port`. Datagrams of one time keep
    // their order. Returns their number. Their paths stay pinned until the next call.
    [[nodiscard]] std::size_t take_due(Port& port, std::span<PacketRef> out, Instant now) noexcept;
    // Returns when the next one is due; Instant::never() if there is none.
    [[nodiscard]] Instant next_due() const noexcept { return held_.empty() ? Instant::never() : held_.front().due; }

private:
    struct Held {
        Instant due{};
        std::uint64_t serial = 0;
        PacketRef packet;  // `data` lies in a place of the memory
    };
    using Place = std::array<std::uint8_t, kMaxUdpPayloadBytes>;

    std::uint64_t next_serial_ = 0;
    std::vector<Place> places_;
    std::vector<std::uint8_t*> free_;
    std::vector<Held> held_;    // a heap
    std::vector<Path*> taken_;  // pinned
};

}  // namespace cairn::port
