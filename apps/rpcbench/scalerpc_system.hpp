// ScaleRPC under cairn-rpcbench, and RawWrite, which is ScaleRPC without turns of its clients.
#pragma once

#include <memory>

#include "apps/rpcbench/connected_system.hpp"
#include "apps/rpcbench/time_keeper.hpp"
#include "rpc/common/background.hpp"
#include "rpc/scalerpc/endpoint.hpp"

namespace cairn::rpcbench {

class ScalerpcSystem final : public ConnectedSystem<scalerpc::Endpoint, scalerpc::SessionEvent> {
public:
    static Result<std::unique_ptr<System>> create(const Stage& stage);
    ~ScalerpcSystem() override { drop_endpoint(); }  // before its clock and its threads
    // Returns the endpoint's part of the options.
    [[nodiscard]] static scalerpc::EndpointConfig config_of(const Options& options);
    void look(Instant now) override;
    [[nodiscard]] SystemFigures figures() const override;

private:
    explicit ScalerpcSystem(const Stage& stage) : ConnectedSystem(stage) {}
    Status open(const Stage& stage);
    void count_memory(SystemFigures& figures) const;

    std::unique_ptr<TimeKeeper> time_;              // of a server that is in step with others
    std::unique_ptr<rpc::BackgroundPool> threads_;  // with --legacy
};

}  // namespace cairn::rpcbench
