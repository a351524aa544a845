// Calls over datagrams under cairn-rpcbench.
#pragma once

#include <memory>

#include "apps/rpcbench/connected_system.hpp"
#include "apps/rpcbench/ud_endpoint.hpp"

namespace cairn::rpcbench {

class UdSystem final : public ConnectedSystem<UdEndpoint, UdEvent> {
public:
    static Result<std::unique_ptr<System>> create(const Stage& stage);
    // Returns the endpoint's part of the options.
    [[nodiscard]] static UdConfig config_of(const Options& options);
    [[nodiscard]] SystemFigures figures() const override;

private:
    explicit UdSystem(const Stage& stage) : ConnectedSystem(stage) {}
};

}  // namespace cairn::rpcbench
