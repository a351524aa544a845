// Network: all links between the nodes of a simulated world, in virtual time.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lib/net/address.hpp"
#include "lib/port/qpn_owners.hpp"
#include "lib/sim/capture.hpp"
#include "lib/sim/fault_mix.hpp"
#include "lib/sim/link.hpp"
#include "lib/sim/switch.hpp"

namespace cairn::sim {

enum class Family : std::uint8_t { V4, V6 };

// Nodes are numbered from 0; node i owns address_of(i) and mac_of(i). A link per ordered pair of nodes.
class Network {
public:
    static constexpr std::size_t kMaxNodes = 255;
    using Tap = std::function<void(std::size_t to, const Frame& frame)>;
    // A frame, or a copy of it, that was sent; or that it was lost.
    struct Passage {
        std::size_t from = 0;
        std::size_t to = 0;
        Instant sent{};
        Instant arrival{};  // of a frame that is not lost
        Fate fate = Fate::Delivered;
    };
    using Witness = std::function<void(const Passage& passage, const Frame& frame)>;

    Network(std::size_t nodes, std::uint64_t seed, Family family = Family::V4);

    void set_faults(const LinkFaults& faults, const LinkShape& shape) noexcept;
    [[nodiscard]] Link& link(std::size_t from, std::size_t to) noexcept { return links_[from * nodes_ + to]; }
    [[nodiscard]] std::size_t nodes() const noexcept { return nodes_; }
    // Instead of the links, which are not used any more: from now on frames pass this switch. Whoever drives the
    // nodes then calls advance() with each new time.
    void join(const SwitchShape& shape, std::uint64_t seed) { switch_ = std::make_unique<Switch>(shape, nodes_, seed); }
    // nullptr: there are links.
    [[nodiscard]] Switch* joint() noexcept { return switch_.get(); }
    void advance(Instant now);
    // Before anything is sent: the node has so many queues, each a place of its own for a port. What arrives is steered
    // among them by its queue pair's number, as by a device; a frame to a multicast group comes to each. Whoever drives
    // the nodes then calls advance() with each new time.
    void set_queues(std::size_t node, std::uint32_t queues);
    [[nodiscard]] bool has_queues(std::size_t node) const noexcept { return queues_[node].owners.workers() > 1; }

    // Over links a frame to a multicast group comes to all nodes, its sender too: their ports choose.
    void send(std::size_t from, Frame frame, Instant now);
    // The frame that arrives at this node and queue next, if that is not later than `now`: in the order of (time,
    // serial).
    [[nodiscard]] std::optional<Frame> receive(std::size_t to, Instant now, std::size_t queue = 0);
    [[nodiscard]] Instant next_arrival() const noexcept;
    [[nodiscard]] Instant next_arrival(std::size_t to) const noexcept {
        return switch_ != nullptr ? switch_->next_arrival(to) : earliest_[to];
    }
    // Of what is in a queue already, if the node has several.
    [[nodiscard]] Instant next_arrival(std::size_t to, std::size_t queue) const noexcept;
    // Sees each frame as it is delivered, before its receiver does.
    void set_tap(Tap tap) { tap_ = std::move(tap); }
    // Is told what becomes of each frame when it is sent, one call for each copy.
    void set_witness(Witness witness) { witness_ = std::move(witness); }

    [[nodiscard]] const Capture& capture() const noexcept { return capture_; }
    // Of all frames delivered, in order: two runs of one seed agree.
    [[nodiscard]] std::uint64_t trace_hash() const noexcept { return trace_hash_; }
    [[nodiscard]] LinkCounters totals() const noexcept;

    [[nodiscard]] net::IpAddress address_of(std::size_t node) const noexcept;
    [[nodiscard]] net::IpAddress group_address(std::uint8_t number) const noexcept;
    // The owner of one of these addresses.
    [[nodiscard]] std::size_t node_of(const net::IpAddress& address) const noexcept;
    [[nodiscard]] static net::MacAddress mac_of(std::size_t node) noexcept;

private:
    struct Queues {
        port::QpnOwners owners;
        std::vector<std::deque<Flight>> arrived;  // by queue; none: there is one queue, which reads the links
    };

    void send_over_link(std::size_t from, std::size_t to, Frame frame, Instant now);
    [[nodiscard]] std::optional<Flight> take(std::size_t to, Instant now);
    void steer(Queues& queues, Flight flight);
    [[nodiscard]] std::optional<Frame> deliver(std::size_t to, Flight flight);
    void hash(const Flight& flight) noexcept;

    std::size_t nodes_;
    Family family_;
    Tap tap_;
    Witness witness_;
    std::vector<Link> links_;
    std::unique_ptr<Switch> switch_;
    std::vector<Instant> earliest_;  // arrival at each node
    std::vector<Queues> queues_;     // of each node
    std::uint64_t next_serial_ = 0;
    std::uint64_t trace_hash_ = 0xcbf29ce484222325U;
    Capture capture_;
};

}  // namespace cairn::sim
