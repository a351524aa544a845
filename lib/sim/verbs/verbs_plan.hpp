// What a seed decides about the users of connections besides their faults.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/cm/types.hpp"

namespace cairn::sim {

struct VerbsPlan {
    std::uint32_t path_mtu_bytes = 4096;  // that the ports carry
    cm::Config cm{};
    bool lazy = false;         // users post receive requests late
    bool slow = false;         // and take long to answer requests
    bool hasty = false;        // and give up connections instead of ending them
    bool shares = false;       // some queue pairs of a host have one receive queue
    bool moody = false;        // hosts end all they have, and begin anew in the same process
    bool alone = true;         // nothing else is on the workers
    std::size_t stranger = 0;  // its place in the network

    [[nodiscard]] static VerbsPlan from_seed(std::uint64_t seed);
    // With managers that wait for milliseconds only.
    [[nodiscard]] static VerbsPlan quick_from_seed(std::uint64_t seed);
    // In which all of a broken connection has come to its end.
    [[nodiscard]] Duration longest_end() const;
};

}  // namespace cairn::sim
