// The seed's choices for the users of copyrpc, in addition to the faults.
#pragma once

#include <cstdint>

#include "rpc/copyrpc/flow.hpp"
#include "rpc/copyrpc/ring_shape.hpp"
#include "rpc/sim/linked_system.hpp"

namespace cairn::sim {

struct CopyrpcPlan {
    LinkedPlan users{};
    std::uint32_t least_ring_bytes = 4096;  // limit for an endpoint's ring; each endpoint draws its own size
    std::uint32_t most_ring_bytes = 65536;
    copyrpc::Flow flow = copyrpc::Flow::Credit;  // of all endpoints
    std::uint32_t longest_bytes = 0;             // longest message that travels by itself
    std::uint32_t hold_messages = 0;

    [[nodiscard]] static CopyrpcPlan from_seed(std::uint64_t seed) {
        Random random(seed ^ 0xc09fU);
        CopyrpcPlan plan;
        plan.users = LinkedPlan::from_seed(seed);
        plan.users.port = 7472;
        plan.most_ring_bytes = 4096U << random.below(5);
        plan.least_ring_bytes = random.chance(kMillion / 2) ? plan.most_ring_bytes : 4096;
        plan.flow = random.chance(kMillion / 4) ? copyrpc::Flow::Read : copyrpc::Flow::Credit;
        plan.longest_bytes = random.chance(kMillion / 3) ? 40'000 : 0;
        plan.hold_messages = random.chance(kMillion / 4) ? static_cast<std::uint32_t>(random.between(2, 8)) : 0;
        return plan;
    }

    [[nodiscard]] copyrpc::RingShape least_ring() const { return shape_of(least_ring_bytes); }
    [[nodiscard]] copyrpc::RingShape most_ring() const { return shape_of(most_ring_bytes); }
    [[nodiscard]] static copyrpc::RingShape shape_of(std::uint32_t bytes) {
        return copyrpc::RingShape(bytes / copyrpc::kBlockBytes);
    }
};

}  // namespace cairn::sim
