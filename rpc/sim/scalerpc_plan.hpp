// The seed's choices for the users of ScaleRPC, in addition to the faults.
#pragma once

#include <cstdint>

#include "rpc/scalerpc/endpoint_config.hpp"
#include "rpc/sim/linked_system.hpp"

namespace cairn::sim {

struct ScalerpcPlan {
    LinkedPlan users{};
    scalerpc::BlockShape shape{};  // of all endpoints
    scalerpc::Features features{};
    scalerpc::GroupConfig groups{};
    Duration notice_timeout{};

    [[nodiscard]] static ScalerpcPlan from_seed(std::uint64_t seed) {
        constexpr Duration kSlices[] = {microseconds(50), microseconds(100), microseconds(400)};
        constexpr Duration kNoticeTimeouts[] = {milliseconds(5), milliseconds(20)};
        Random random(seed ^ 0x5ca1eU);
        ScalerpcPlan plan;
        plan.users = LinkedPlan::from_seed(seed);
        plan.users.port = 7474;
        plan.users.sessions_each = random.between(3, 8);
        plan.shape.bytes = 64U << random.below(7);
        plan.shape.blocks = 1U << random.below(5);
        plan.groups.size = static_cast<std::uint32_t>(random.between(2, 4));
        plan.groups.slice = kSlices[random.below(3)];
        plan.groups.regroup_every = static_cast<std::uint32_t>(random.between(1, 8));
        plan.notice_timeout = kNoticeTimeouts[random.below(2)];
        if (random.chance(kMillion / 2)) {
            const auto has = [&random] { return random.chance(kMillion * 2 / 3); };
            plan.features = {has(), has(), has(), has(), has(), has()};
        }
        return plan;
    }
};

}  // namespace cairn::sim
