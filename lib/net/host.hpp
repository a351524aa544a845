// Host: the duties of a station to its link, in addition to RoCE. It answers ARP, neighbour solicitations and pings,
// and asks for the MAC addresses that it needs itself. It does no I/O: frames go in, frames come out.
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
    std::uint8_t prefix_bits = 0;        // of the link; 0: every address is on the link
    std::optional<IpAddress> gateway{};  // for addresses beyond the link
};

// Returns true if every worker of a station may learn from the frame: ARP, neighbour solicitation or advertisement.
[[nodiscard]] bool is_neighbour_message(std::span<const std::uint8_t> frame) noexcept;

// Belongs to one thread. Each worker has a Host of its own.
class Host {
public:
    // The largest question, or answer to ARP or a solicitation. The answer to a ping is as long as the ping.
    static constexpr std::size_t kQuestionBytes = 86;
    static constexpr std::size_t kLeastFrameBytes = 60;

    explicit Host(const HostConfig& config) : config_(config) {}

    // Judges a frame that is not RoCE. Learns from it, and writes the answer into `out`. Returns the answer's size; 0
    // if there is none. Counts a frame that is not taken by its reason. If `out` has no room, the host only learns.
    [[nodiscard]] std::size_t on_frame(std::span<const std::uint8_t> frame, Instant now,
                                       std::span<std::uint8_t> out) noexcept;

    // Returns the MAC to send to for this address (the gateway's for an address beyond the link). Returns nullopt while
    // the question for it is under way.
    [[nodiscard]] std::optional<MacAddress> resolve(const IpAddress& remote, Instant now) noexcept;
    // As resolve(), but asks no question.
    [[nodiscard]] std::optional<MacAddress> known(const IpAddress& remote) const noexcept {
        return neighbours_.known(next_hop(remote));
    }
    [[nodiscard]] const IpAddress& next_hop(const IpAddress& remote) const noexcept;

    // Returns true if `remote` is no station of the link although questions were asked for it there.
    [[nodiscard]] bool is_beyond(const IpAddress& remote) const noexcept {
        return next_hop(remote) == remote && neighbours_.is_nobody(remote);
    }

    // Writes the next due question into `out` (kQuestionBytes). Returns its size; 0 if no question is due.
    [[nodiscard]] std::size_t poll_question(Instant now, std::span<std::uint8_t> out) noexcept;
    [[nodiscard]] Instant next_deadline() const noexcept { return neighbours_.next_deadline(); }
    // Returns the earliest deadline that frames set since the last call; never, if they set none.
    [[nodiscard]] Instant poll_planned() noexcept { return neighbours_.poll_planned(); }
    // Returns the next hops whose MAC changed or was lost, one a call. The caller calls until it gets nullopt.
    [[nodiscard]] std::optional<NeighbourTable::Change> poll_change() noexcept { return neighbours_.poll_change(); }
    // A station that named itself in the last frame without being asked. A peer that came back with another MAC
    // announces it in its first question.
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
    // Adds our MAC and the checksum to `message`.
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
