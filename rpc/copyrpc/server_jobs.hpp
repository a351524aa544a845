// The worker's side of background handlers: requests go to threads with all the memory that they need, and the answers
// of finished jobs go back.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "rpc/common/background.hpp"
#include "rpc/common/request_types.hpp"

namespace cairn::copyrpc {

class Endpoint;
class Server;

// A request for a thread. It lies in the ring until it is answered; a thread gets a copy, since the peer can write to
// the ring at any time.
struct JobRequest {
    rpc::RequestHandle handle{};
    std::uint8_t type = 0;
    std::span<const std::uint8_t> payload{};
    Instant deadline = Instant::never();  // of the caller
};

// Makes no jobs if `pool` is nullptr. Requests wait in order while there is no job or no memory. A request whose caller
// has given it up meanwhile is not executed.
class ServerJobs {
public:
    ServerJobs(Server& server, rpc::MsgPool& memory, rpc::BackgroundPool* pool);
    // Waits for jobs that run, and forgets their answers.
    ~ServerJobs();
    ServerJobs(const ServerJobs&) = delete;
    ServerJobs& operator=(const ServerJobs&) = delete;

    void add(const JobRequest& request);
    void on_turn(Instant now);
    // True if requests wait, or jobs are out and nothing wakes the worker when they are done.
    [[nodiscard]] bool wants_polling() const noexcept {
        return !waiting_.empty() || (pool_ != nullptr && pool_->wants_polling());
    }

private:
    [[nodiscard]] bool start(const JobRequest& request) noexcept;
    [[nodiscard]] bool is_over(const JobRequest& request, Instant now) noexcept;
    void give_back(rpc::BackgroundJob& job) noexcept;

    Server& server_;
    rpc::MsgPool& memory_;
    rpc::BackgroundPool* pool_;
    std::deque<JobRequest> waiting_;
};

}  // namespace cairn::copyrpc
