// The worker's side of background handlers: requests handed over with all the memory they need, answers sent when their
// jobs are back. A request whose job is out is Executing, so copies of it are dropped as for any slow handler.
#pragma once

#include <cstdint>
#include <span>

#include "rpc/common/background.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

class Server;

// Without a pool no job is ever made.
class ServerJobs {
public:
    ServerJobs(Server& server, rpc::BackgroundPool* pool);
    // Jobs that run are waited for; what they answer, and requests that no thread has begun, are forgotten.
    ~ServerJobs();
    ServerJobs(const ServerJobs&) = delete;
    ServerJobs& operator=(const ServerJobs&) = delete;

    // A job with a copy of the payload, and with room for the answer unless the slot's own will do. nullptr: counted,
    // and nothing is changed.
    [[nodiscard]] rpc::BackgroundJob* prepare(std::uint8_t type, const ServerSlot& slot,
                                              std::span<const std::uint8_t> copied) noexcept;
    // The slot's request is executed by this job from now on.
    void submit(Session& session, ServerSlot& slot, rpc::BackgroundJob& job) noexcept;

    void on_turn(Instant now) noexcept {
        if (pool_ != nullptr && pool_->any_finished()) {
            answer_finished(now);
        }
    }
    // Nothing wakes the worker when jobs are done: it looks for them.
    [[nodiscard]] bool wants_polling() const noexcept { return pool_ != nullptr && pool_->wants_polling(); }

private:
    void answer_finished(Instant now) noexcept;

    Server& server_;
    rpc::BackgroundPool* pool_;
};

}  // namespace cairn::erpc
