// eRPC under cairn-rpcbench: the first worker serves the directory, or asks the peer's.
#pragma once

#include <memory>

#include "apps/rpcbench/system.hpp"
#include "lib/connections/home.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::rpcbench {

class ErpcSystem final : public SystemOf<erpc::Endpoint> {
public:
    static Result<std::unique_ptr<System>> create(const Stage& stage, Instant now);

    void look(Instant now) override;
    [[nodiscard]] SystemFigures figures() const override;

private:
    explicit ErpcSystem(const Stage& stage) : SystemOf(stage), stage_(stage) {}
    Status open(Instant now);
    Status make_directory(Instant now);
    void take_answer();
    Status connect(Instant now);
    static void session_changed(void* context, SessionId session, erpc::SessionEvent event, erpc::RefuseReason reason);

    const Stage stage_;
    std::unique_ptr<connections::Home> home_;     // of the first worker only
    std::unique_ptr<erpc::Directory> directory_;  // of the first worker only
};

}  // namespace cairn::rpcbench
