// copyrpc under cairn-rpcbench: a device on each worker, and connections to the peer's service.
#pragma once

#include <memory>

#include "apps/rpcbench/system.hpp"
#include "rpc/copyrpc/endpoint.hpp"

namespace cairn::rpcbench {

class CopyrpcSystem final : public SystemOf<copyrpc::Endpoint> {
public:
    static Result<std::unique_ptr<System>> create(const Stage& stage);
    ~CopyrpcSystem() override;
    // The endpoint's part of it.
    [[nodiscard]] static copyrpc::EndpointConfig config_of(const Options& options);

    void look(Instant now) override;
    [[nodiscard]] SystemFigures figures() const override;
    [[nodiscard]] std::string counters_text() const override;

private:
    explicit CopyrpcSystem(const Stage& stage) : SystemOf(stage.options), stage_(stage) {}
    Status open();
    static void session_changed(void* context, SessionId session, copyrpc::SessionEvent event);

    const Stage stage_;
    std::unique_ptr<connections::Home> home_;
    std::unique_ptr<verbs::Device> device_;
};

}  // namespace cairn::rpcbench
