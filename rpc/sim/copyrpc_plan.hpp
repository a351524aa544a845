// The choices of a seed about the users of copyrpc, besides their faults.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/sim/random.hpp"
#include "lib/sim/verbs/verbs_plan.hpp"
#include "rpc/copyrpc/ring_shape.hpp"

namespace cairn::sim {

struct CopyrpcPlan {
    std::uint32_t path_mtu_bytes = 1024;
    cm::Config cm{};
    std::uint32_t least_ring_bytes = 4096;  // of an endpoint; each draws its own within these limits
    std::uint32_t most_ring_bytes = 65536;
    Duration peer_timeout{};
    Duration longest_end{};      // in which everything of a broken connection comes to its end
    bool has_strangers = false;  // each worker has a stranger, who breaks the rules
    bool alone = true;           // nothing else is on the workers

    [[nodiscard]] static CopyrpcPlan from_seed(std::uint64_t seed) {
        constexpr Duration kTimeouts[] = {milliseconds(20), milliseconds(50), milliseconds(200)};
        const VerbsPlan connections = VerbsPlan::quick_from_seed(seed);
        Random random(seed ^ 0xc09fU);
        CopyrpcPlan plan;
        plan.path_mtu_bytes = connections.path_mtu_bytes;
        plan.cm = connections.cm;
        plan.most_ring_bytes = 4096U << random.below(5);
        plan.least_ring_bytes = random.chance(kMillion / 2) ? plan.most_ring_bytes : 4096;
        plan.peer_timeout = kTimeouts[random.below(3)];
        plan.longest_end = connections.longest_end() + plan.peer_timeout * 2;
        plan.has_strangers = random.chance(kMillion / 2);
        return plan;
    }

    [[nodiscard]] copyrpc::RingShape least_ring() const { return shape_of(least_ring_bytes); }
    [[nodiscard]] copyrpc::RingShape most_ring() const { return shape_of(most_ring_bytes); }

private:
    [[nodiscard]] static copyrpc::RingShape shape_of(std::uint32_t bytes) {
        return copyrpc::RingShape(bytes / copyrpc::kBlockBytes);
    }
};

}  // namespace cairn::sim
