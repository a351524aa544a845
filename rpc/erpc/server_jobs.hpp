// The worker's side of background handlers. It hands requests to threads with all the memory that they need, and sends
// the answers of finished jobs. A request is Executing while its job is out, so copies of it are dropped as with any
// slow handler.
#pragma once

#include <cstdint>
#include <span>

#include "rpc/common/background.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

class Server;

// Makes no jobs if `pool` is nullptr.
class ServerJobs {
public:
    ServerJobs(Server& server, rpc::BackgroundPool* pool);
    // Waits for jobs that run, and forgets their answers. Forgets requests that no thread has begun.
    ~ServerJobs();
    ServerJobs(const ServerJobs&) = delete;
    ServerJobs& operator=(const ServerJobs&) = delete;

    // Returns a job with a copy of the payload. The job has room for the answer unless the slot has enough. Returns
    // nullptr if there is no job or no memory; that is counted, and the slot is unchanged.
    [[nodiscard]] rpc::BackgroundJob* prepare(std::uint8_t type, const ServerSlot& slot,
                                              std::span<const std::uint8_t> copied) noexcept;
    // Lets the job execute the slot's request.
    void submit(Session& session, ServerSlot& slot, rpc::BackgroundJob& job) noexcept;

    void on_turn(Instant now) noexcept {
        if (pool_ != nullptr && pool_->any_finished()) {
            answer_finished(now);
        }
    }
    // True if jobs are out and nothing wakes the worker when they are done, so that it must look for them.
    [[nodiscard]] bool wants_polling() const noexcept { return pool_ != nullptr && pool_->wants_polling(); }

private:
    void answer_finished(Instant now) noexcept;

    Server& server_;
    rpc::BackgroundPool* pool_;
};

}  // namespace cairn::erpc
