// Host: what one station owes its link beside RoCE: answering ARP, neighbour solicitations and pings, and asking
// for the MAC addresses that it needs itself. No I/O: frames in, frames out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/time.hpp"
#include "lib/net/address.hpp"
#include "lib/net/drops.hpp"
#include "lib/net/ethernet.hpp"
#include "lib/net/ipv4.hpp"
#include "lib/net/ipv6.hpp"
#include "lib/net/nd.hpp"
#include "lib/net/neighbours.hpp"

namespace cairn::net {

struct HostConfig {
    MacAddress mac{};
    IpAddress address{};
    std::uint8_t prefix_bits = 0;        // of the link; 0: everyone is on it
    std::optional<IpAddress> gateway{};  // for the others
};

// True when a frame may tell every worker of a station something: ARP, neighbour solicitation or advertisement.
[[nodiscard]] bool is_neighbour_message(std::span<const std::uint8_t> frame) noexcept;

// One thread; one per worker.
class Host {
public:
    // Room that a question or an answer to ARP or a solicitation takes; a ping's answer is as long as the ping.
    static constexpr std::size_t kQuestionBytes = 86;
    static constexpr std::size_t kLeastFrameBytes = 60;

    explicit Host(const HostConfig& config) : config_(config) {}

    // Judges a frame that is not RoCE: learns from it and writes the answer it asks for into `out`. The answer's
    // size, 0: none. Why a frame is not taken is counted. With no room in `out` it only learns.
    [[nodiscard]] std::size_t on_frame(std::span<const std::uint8_t> frame, Instant now,
                                       std::span<std::uint8_t> out) noexcept;

    // The MAC to send to for this address (the gateway's for one off the link), or nothing while it is asked for.
    [[nodiscard]] std::optional<MacAddress> resolve(const IpAddress& remote, Instant now) noexcept;
    // The same, if it is known; nobody asks for it.
    [[nodiscard]] std::optional<MacAddress> known(const IpAddress& remote) const noexcept {
        return neighbours_.known(next_hop(remote));
    }
    [[nodiscard]] const IpAddress& next_hop(const IpAddress& remote) const noexcept;

    // True when `remote` is none of the link's stations although it was looked for there.
    [[nodiscard]] bool is_beyond(const IpAddress& remote) const noexcept {
        return next_hop(remote) == remote && neighbours_.is_nobody(remote);
    }

    // Writes the next question that is due into `out` (kQuestionBytes); its size, 0: none.
    [[nodiscard]] std::size_t poll_question(Instant now, std::span<std::uint8_t> out) noexcept;
    [[nodiscard]] Instant next_deadline() const noexcept { return neighbours_.next_deadline(); }
    // The first deadline that frames set since the last call; never: none.
    [[nodiscard]] Instant poll_planned() noexcept { return neighbours_.poll_planned(); }
    // Next hops whose MAC changed or went. Call until there is nothing.
    [[nodiscard]] std::optional<NeighbourTable::Change> poll_change() noexcept { return neighbours_.poll_change(); }
    // The station that named itself in the last frame without being asked for: a peer that came back with another MAC
    // says so in its first question.
    struct Name {
        IpAddress address{};
        MacAddress mac{};
    };
    [[nodiscard]] std::optional<Name> poll_name() noexcept { return std::exchange(named_, std::nullopt); }

    [[nodiscard]] const telemetry::CounterSet<Drop>& drops() const noexcept { return drops_; }

private:
    using Frame = std::span<const std::uint8_t>;
    using Out = std::span<std::uint8_t>;
    [[nodiscard]] std::size_t on_arp(Frame message, Instant now, Out out) noexcept;
    [[nodiscard]] std::size_t on_ipv4(const EthernetHeader& ethernet, Frame packet, Out out) noexcept;
    [[nodiscard]] std::size_t on_ipv6(const EthernetHeader& ethernet, Frame packet, Instant now, Out out) noexcept;
    [[nodiscard]] std::size_t on_neighbour(const EthernetHeader& ethernet, const Ipv6Header& ip, Frame message,
                                           Instant now, Out out) noexcept;
    [[nodiscard]] std::size_t write_arp(bool reply, const MacAddress& to, const IpAddress& target, Out out) noexcept;
    // Our MAC and the checksum are added to `message`.
    [[nodiscard]] std::size_t write_nd(const MacAddress& to, const IpAddress& destination, NeighbourMessage message,
                                       Out out) noexcept;
    void learn(const IpAddress& address, const MacAddress& mac, Instant now,
               Override replaces = Override::Yes) noexcept;
    std::size_t drop(Drop reason) noexcept {
        drops_.count(reason);
        return 0;
    }

    HostConfig config_;
    NeighbourTable neighbours_;
    std::optional<Name> named_{};
    telemetry::CounterSet<Drop> drops_;
};

}  // namespace cairn::net
