// copyrpc under cairn-rpcbench.
#pragma once

#include <memory>

#include "apps/rpcbench/connected_system.hpp"
#include "rpc/copyrpc/endpoint.hpp"

namespace cairn::rpcbench {

class CopyrpcSystem final : public ConnectedSystem<copyrpc::Endpoint, copyrpc::SessionEvent> {
public:
    static Result<std::unique_ptr<System>> create(const Stage& stage);
    // Returns the endpoint's part of the options.
    [[nodiscard]] static copyrpc::EndpointConfig config_of(const Options& options);
    [[nodiscard]] SystemFigures figures() const override;

private:
    explicit CopyrpcSystem(const Stage& stage) : ConnectedSystem(stage) {}
};

}  // namespace cairn::rpcbench
