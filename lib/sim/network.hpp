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

// Nodes are numbered from 0. Node i owns address_of(i) and mac_of(i). Each ordered pair of nodes has a link.
class Network {
public:
    static constexpr std::size_t kMaxNodes = 255;
    using Tap = std::function<void(std::size_t to, const Frame& frame)>;
    // One passage of a frame or of a copy of it: it was sent, and it arrives or is lost.
    struct Passage {
        std::size_t from = 0;
        std::size_t to = 0;
        Instant sent{};
        Instant arrival{};  // valid if the frame is not lost
        Fate fate = Fate::Delivered;
    };
    using Witness = std::function<void(const Passage& passage, const Frame& frame)>;

    Network(std::size_t nodes, std::uint64_t seed, Family family = Family::V4);

    void set_faults(const LinkFaults& faults, const LinkShape& shape) noexcept;
    [[nodiscard]] Link& link(std::size_t from, std::size_t to) noexcept { return links_[from * nodes_ + to]; }
    [[nodiscard]] std::size_t nodes() const noexcept { return nodes_; }
    // Puts a switch in the place of the links: from now on frames pass the switch only. The driver of the nodes then
    // calls advance() with each new time.
    void join(const SwitchShape& shape, std::uint64_t seed) { switch_ = std::make_unique<Switch>(shape, nodes_, seed); }
    // Returns the switch; nullptr if there are links.
    [[nodiscard]] Switch* joint() noexcept { return switch_.get(); }
    void advance(Instant now);
    // Gives the node this many queues, each for a port of its own. Called before anything is sent. Arriving frames are
    // steered among the queues by queue pair number, as by a device. Each queue gets a frame to a multicast group. The
    // driver of the nodes then calls advance() with each new time.
    void set_queues(std::size_t node, std::uint32_t queues);
    [[nodiscard]] bool has_queues(std::size_t node) const noexcept { return queues_[node].owners.workers() > 1; }

    // Sends a frame. Over links, a frame to a multicast group comes to all nodes, its sender included; their ports
    // choose. A switch takes no frames to groups (asserted).
    void send(std::size_t from, Frame frame, Instant now);
    // Returns the frame that arrives next at this node and queue; nullopt if that is later than `now`. Frames come in
    // the order of (time, serial).
    [[nodiscard]] std::optional<Frame> receive(std::size_t to, Instant now, std::size_t queue = 0);
    [[nodiscard]] Instant next_arrival() const noexcept;
    [[nodiscard]] Instant next_arrival(std::size_t to) const noexcept {
        return switch_ != nullptr ? switch_->next_arrival(to) : earliest_[to];
    }
    // Returns the next arrival. If the node has several queues, it counts only frames that are in the queue already.
    [[nodiscard]] Instant next_arrival(std::size_t to, std::size_t queue) const noexcept;
    // Sets the tap. It sees each frame as it is delivered, before its receiver does.
    void set_tap(Tap tap) { tap_ = std::move(tap); }
    // Sets the witness. When a frame is sent over a link, the witness gets its fate, one call for each copy.
    void set_witness(Witness witness) { witness_ = std::move(witness); }

    [[nodiscard]] const Capture& capture() const noexcept { return capture_; }
    // Returns a hash of all delivered frames in order. Two runs of one seed give the same hash.
    [[nodiscard]] std::uint64_t trace_hash() const noexcept { return trace_hash_; }
    [[nodiscard]] LinkCounters totals() const noexcept;

    [[nodiscard]] net::IpAddress address_of(std::size_t node) const noexcept;
    [[nodiscard]] net::IpAddress group_address(std::uint8_t number) const noexcept;
    // Returns the node that owns the address. There is one (asserted).
    [[nodiscard]] std::size_t node_of(const net::IpAddress& address) const noexcept;
    [[nodiscard]] static net::MacAddress mac_of(std::size_t node) noexcept;

private:
    struct Queues {
        port::QpnOwners owners;
        std::vector<std::deque<Flight>> arrived;  // by queue; empty: there is one queue, which reads the links
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
