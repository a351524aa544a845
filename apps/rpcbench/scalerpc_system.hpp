// ScaleRPC under cairn-rpcbench, and RawWrite, which is ScaleRPC with everything off.
#pragma once

#include <memory>

#include "apps/rpcbench/connected_system.hpp"
#include "rpc/scalerpc/endpoint.hpp"

namespace cairn::rpcbench {

class ScalerpcSystem final : public ConnectedSystem<scalerpc::Endpoint, scalerpc::SessionEvent> {
public:
    static Result<std::unique_ptr<System>> create(const Stage& stage);
    // The endpoint's part of it.
    [[nodiscard]] static scalerpc::EndpointConfig config_of(const Options& options);
    [[nodiscard]] SystemFigures figures() const override;

private:
    explicit ScalerpcSystem(const Stage& stage) : ConnectedSystem(stage) {}
};

}  // namespace cairn::rpcbench
