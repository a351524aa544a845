// The faults of a simulated world and how often they come. All of it follows from one seed.
#pragma once

#include <cstdint>
#include <string>

#include "lib/base/time.hpp"

namespace cairn::sim {

// Faults of a link. Shares are per million frames; 0: never.
struct LinkFaults {
    std::uint32_t loss_per_million = 0;
    // Bursts (Gilbert). A good link turns bad, and a bad one good, with these chances per frame. A bad link loses every
    // frame. Mean burst length: 1e6 / leave.
    std::uint32_t burst_enter_per_million = 0;
    std::uint32_t burst_leave_per_million = 0;
    std::uint32_t duplicate_per_million = 0;
    // A second copy comes late by [0, late_copy_most]. It may come out of an earlier session, or of a process that
    // died.
    std::uint32_t late_copy_per_million = 0;
    Duration late_copy_most{};
    std::uint32_t corrupt_per_million = 0;  // one bit of BTH ... ICRC is flipped
    Duration jitter{};                      // each frame is late by [0, jitter]: above the spacing it reorders
};

// The properties of a link. The queue stands in front of the bottleneck. It counts whole frames that wait or are under
// way.
struct LinkShape {
    Duration delay = microseconds(2);
    std::uint64_t bits_per_second = 0;      // counts frames and their Ethernet overhead; 0: no bottleneck
    std::uint32_t queue_limit_bytes = 0;    // frames beyond it are dropped; 0: no limit
    std::uint32_t ecn_threshold_bytes = 0;  // frames that meet a longer queue are marked; 0: never
};

// Refusals of a port, per million calls. An engine must live with these values.
struct PortFaults {
    std::uint32_t tx_full_per_million = 0;     // transmit_burst takes fewer
    std::uint32_t pool_empty_per_million = 0;  // allocate_burst gives fewer; a receive finds no buffer
};

// Faults of nodes. The time between two events is uniform in [0, 2 * every]; every = 0: never.
struct NodeFaults {
    Duration stall_every{};  // the node is not driven for up to stall_max
    Duration stall_max{};
    Duration restart_every{};    // the node's process dies and another takes its place
    Duration partition_every{};  // two nodes lose each other, in one direction or both, for up to partition_max
    Duration partition_max{};
    Duration clock_jump_every{};  // the node's counter leaps or goes back, by up to seconds
    Duration turn_max{};          // each turn of one node takes from 1 ms to this, also after healing
    bool scarce_memory = false;   // servers always have far less memory than their clients ask for
    bool runs_ahead = false;      // clients give up thousands of calls to a peer that they cannot reach
};

// The longest durations and intervals of faults, for worlds with short histories.
struct FaultLimits {
    static constexpr Duration kAny = seconds(3600);
    Duration late_copy_most = kAny;
    Duration stall_every = kAny;
    Duration stall_max = kAny;
    Duration restart_every = kAny;
    Duration partition_every = kAny;
    Duration partition_max = kAny;
};

struct FaultMix {
    LinkFaults link;
    LinkShape shape;
    PortFaults port;
    NodeFaults node;
    std::uint32_t forge_per_million = 0;  // chance that a hostile peer forges a frame from one that it saw
    Duration babble_every{};              // mean time between senseless packets of a host

    // Draws a mix from the seed. Swarm: each kind of fault is off in half of the seeds, so that none hides another.
    [[nodiscard]] static FaultMix from_seed(std::uint64_t seed);
    // Returns the same faults within these limits. Faults that are off stay off.
    [[nodiscard]] FaultMix within(const FaultLimits& limits) const;
    // Returns a perfect network with the same delay. Hostile peers are no fault of the network, so they stay.
    [[nodiscard]] FaultMix healed() const;
    // Returns the same faults without those that keep a packet or a node back. is_prompt() returns whether there is
    // none of them.
    [[nodiscard]] FaultMix prompt() const;
    [[nodiscard]] bool is_prompt() const noexcept;
    // Returns one line that names the faults that are on.
    [[nodiscard]] std::string text() const;
};

}  // namespace cairn::sim
