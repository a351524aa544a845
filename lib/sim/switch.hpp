// Switch: connects all nodes of a simulated network, with a shared buffer. Frames of all senders to one node wait in
// one queue: incast.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "lib/base/time.hpp"
#include "lib/sim/link.hpp"
#include "lib/sim/random.hpp"

namespace cairn::sim {

// Defaults: 25 GbE and 12 MB of buffer, the switch of eRPC's incast experiment (Kalia et al., NSDI 2019, 6.5).
struct SwitchShape {
    std::uint64_t bits_per_second = 25'000'000'000;  // of each node's link, in both directions
    Duration delay = nanoseconds(300);               // of each link, with the switch's part: a round trip has four
    std::uint64_t buffer_bytes = 12'000'000;
    // A queue may grow to this many times the free part of the buffer (Choudhury and Hahne, ToN 1998). One queue alone
    // gets alpha / (1 + alpha) of the buffer.
    std::uint64_t alpha = 8;
    // Frames are marked by the length of the queue, as by DCQCN's switches (Zhu et al., SIGCOMM 2015, 3.1). No frame is
    // marked below `ecn_low_bytes`. The share then rises to `ecn_most_per_million` at `ecn_high_bytes`. Every frame
    // above that is marked. If `ecn_high_bytes` is 0, none is.
    std::uint64_t ecn_low_bytes = 0;
    std::uint64_t ecn_high_bytes = 0;
    std::uint32_t ecn_most_per_million = 10'000;
};

// Stores and forwards frames. A frame passes its sender's link, then the queue of its destination. The queue of the
// sender's link is the sender's own memory and has no limit. Everything is exact in the order of (arrival, serial),
// whenever advance() is called.
class Switch {
public:
    Switch(const SwitchShape& shape, std::size_t nodes, std::uint64_t seed);

    void send(std::size_t from, std::size_t to, Frame frame, Instant now, std::uint64_t serial);
    // Takes in the frames that have reached the switch. Called before next_arrival() and receive() at a new time.
    void advance(Instant now);
    // Returns the first frame to reach this node; nullopt if that is later than `now`.
    [[nodiscard]] std::optional<Flight> receive(std::size_t to, Instant now);
    // Returns the node's next arrival. Counts only frames that are in its queue already.
    [[nodiscard]] Instant next_arrival(std::size_t to) const noexcept { return earliest_[to]; }
    // Returns the next arrival at the switch or at any node.
    [[nodiscard]] Instant next_event() const noexcept {
        return std::min(next_ingress(), *std::min_element(earliest_.begin(), earliest_.end()));
    }
    [[nodiscard]] const LinkCounters& counters() const noexcept { return counters_; }
    [[nodiscard]] std::uint64_t queued_bytes_most() const noexcept { return queued_most_; }
    [[nodiscard]] std::uint64_t queued_bytes(std::size_t to) const noexcept { return ports_[to].queued_bytes; }

private:
    struct Ingress {
        Flight flight;
        std::size_t to = 0;
    };
    struct Port {
        std::int64_t uplink_busy_until_ps = 0;
        std::int64_t busy_until_ps = 0;
        std::uint64_t queued_bytes = 0;
        std::deque<Flight> leaving;  // in order
    };
    struct Departure {
        std::int64_t when_ps;
        std::size_t port;
        std::uint64_t bytes;
        bool operator>(const Departure& other) const noexcept { return when_ps > other.when_ps; }
    };
    [[nodiscard]] static bool later(const Ingress& a, const Ingress& b) noexcept { return b.flight.before(a.flight); }
    [[nodiscard]] Instant next_ingress() const noexcept {
        return ingress_.empty() ? Instant::never() : ingress_.front().flight.arrival;
    }
    [[nodiscard]] std::int64_t span_ps(const Frame& frame) const noexcept;
    void drain(std::int64_t now_ps);
    void admit(Ingress ingress);
    [[nodiscard]] bool marks(std::uint64_t waiting) noexcept;

    SwitchShape shape_;
    Random random_;
    std::vector<Ingress> ingress_;  // a heap
    std::vector<Port> ports_;
    std::vector<Instant> earliest_;
    std::priority_queue<Departure, std::vector<Departure>, std::greater<>> departures_;
    std::uint64_t used_bytes_ = 0;
    std::uint64_t queued_most_ = 0;  // largest queue so far
    LinkCounters counters_;
};

}  // namespace cairn::sim
