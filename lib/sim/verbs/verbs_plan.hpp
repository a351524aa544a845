// The choices of a seed about the users of connections, in addition to their faults.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/cm/types.hpp"

namespace cairn::sim {

struct VerbsPlan {
    std::uint32_t path_mtu_bytes = 4096;  // path MTU that the ports carry
    cm::Config cm{};
    bool lazy = false;         // users post receive requests late
    bool slow = false;         // users take long to answer requests
    bool hasty = false;        // users give up connections instead of ending them
    bool shares = false;       // some queue pairs of a host have one receive queue
    bool moody = false;        // hosts end everything and begin anew in the same process
    bool alone = true;         // nothing else is on the workers
    bool has_guests = false;   // others on the workers have connections of the same managers
    std::size_t stranger = 0;  // the hostile peer's place in the network

    [[nodiscard]] static VerbsPlan from_seed(std::uint64_t seed);
    // As from_seed(), with managers that wait for milliseconds only.
    [[nodiscard]] static VerbsPlan quick_from_seed(std::uint64_t seed);
    // Returns the time in which everything of a broken connection comes to its end.
    [[nodiscard]] Duration longest_end() const;
};

}  // namespace cairn::sim
