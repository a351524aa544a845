// Users of eRPC, of datagrams, of connections, of copyrpc and of ScaleRPC on the same hosts. The seed chooses several
// of these scenarios for one world. Connections, copyrpc and ScaleRPC live on all workers of a host. The endpoint of
// eRPC lives on one worker and the users of datagrams on one, which may be the same. Each scenario checks the same
// promises as in a world of its own.
#pragma once

#include <optional>

#include "lib/sim/ud/ud_scenario.hpp"
#include "lib/sim/verbs/verbs_scenario.hpp"
#include "rpc/sim/copyrpc_scenario.hpp"
#include "rpc/sim/erpc_scenario.hpp"
#include "rpc/sim/scalerpc_scenario.hpp"

namespace cairn::sim {

struct MixedPlan {
    bool has_erpc = false;
    bool has_datagrams = false;
    bool has_connections = false;
    bool has_copyrpc = false;
    bool has_scalerpc = false;
    WorldShape shape{};
    FaultMix mix{};
    WorldPlan erpc{};
    UdPlan datagrams{};
    VerbsPlan connections{};
    CopyrpcPlan copyrpc{};
    ScalerpcPlan scalerpc{};

    [[nodiscard]] static MixedPlan from_seed(std::uint64_t seed);
};

class MixedWorld final : public World {
public:
    explicit MixedWorld(std::uint64_t seed) : MixedWorld(seed, MixedPlan::from_seed(seed)) {}

    // Returns the scenario, or nullptr if it is not in this world.
    [[nodiscard]] const ErpcScenario* erpc() const noexcept { return erpc_ ? &*erpc_ : nullptr; }
    [[nodiscard]] const UdScenario* datagrams() const noexcept { return datagrams_ ? &*datagrams_ : nullptr; }
    [[nodiscard]] const VerbsScenario* connections() const noexcept { return connections_ ? &*connections_ : nullptr; }
    [[nodiscard]] const CopyrpcUsers* copyrpc() const noexcept { return copyrpc_ ? &*copyrpc_ : nullptr; }
    [[nodiscard]] const ScalerpcUsers* scalerpc() const noexcept { return scalerpc_ ? &*scalerpc_ : nullptr; }
    // Returns how many hosts have their endpoint of eRPC and their users of datagrams on different
    // workers.
    [[nodiscard]] std::size_t hosts_apart() const;
    // Returns how many messages of all kinds there were: calls, datagrams and requests.
    [[nodiscard]] std::uint64_t acts() const;

private:
    MixedWorld(std::uint64_t seed, const MixedPlan& plan);

    std::optional<ErpcScenario> erpc_;
    std::optional<UdScenario> datagrams_;
    std::optional<VerbsScenario> connections_;
    std::optional<CopyrpcUsers> copyrpc_;
    std::optional<ScalerpcUsers> scalerpc_;
};

}  // namespace cairn::sim
