// The worker's side of background handlers. Requests go to threads with all the memory that they need, and the answers
// of finished jobs go back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>

#include "lib/base/copy.hpp"
#include "lib/telemetry/counters.hpp"
#include "rpc/common/background.hpp"
#include "rpc/common/request_types.hpp"

namespace cairn::rpc {

// A request for a thread. A thread gets a copy, since the peer can write to the request's memory at any time.
struct JobRequest {
    RequestHandle handle{};
    std::uint8_t type = 0;
    std::span<const std::uint8_t> payload{};
    Instant deadline = Instant::never();  // the caller's
    std::uint64_t trace = 0;              // as in Request
};

// Makes no jobs if `pool` is nullptr. Requests wait in order while there is no job or no memory. A request that its
// caller has given up meanwhile is not executed.
//
// `Server` has keeps(handle), expire(handle), decline(handle), answer(handle, message) and type_of(type). If requests
// wait in memory that their peers can write, it has has_read(handle). That is called once the request has been copied.
// Otherwise it has lasting(handle, payload) and hand_over(handle, job). lasting() copies a request that is to wait, or
// returns nothing for want of memory. hand_over() gives a job the memory of a request that waited: the copy, and room
// for the answer. Without that room such copies might fill `memory`, and none of them would ever get room.
template <class Server>
class RequestJobs {
public:
    // Makes the object. `executed` counts the requests that threads executed.
    RequestJobs(Server& server, MsgPool& memory, BackgroundPool* pool, telemetry::Counter& executed)
        : server_(server), memory_(memory), pool_(pool), executed_(executed) {
        if (pool_ != nullptr) {
            pool_->attach();
        }
    }
    // Waits for running jobs, and forgets their answers.
    ~RequestJobs() {
        if (pool_ == nullptr) {
            return;
        }
        while (BackgroundJob* const job = pool_->drain()) {
            give_back(*job);
        }
        pool_->detach();
    }
    RequestJobs(const RequestJobs&) = delete;
    RequestJobs& operator=(const RequestJobs&) = delete;

    // Adds a request. Returns false if it can neither begin nor wait.
    [[nodiscard]] bool add(JobRequest request) {
        CAIRN_ASSERT(pool_ != nullptr);
        if (waiting_.empty() && start(request)) {
            return true;
        }
        if constexpr (requires { server_.lasting(request.handle, request.payload); }) {
            const auto payload = server_.lasting(request.handle, request.payload);
            if (!payload) {
                return false;
            }
            request.payload = *payload;
        }
        waiting_.push_back(request);
        next_over_ = std::min(next_over_, request.deadline);
        return true;
    }
    // Sends the answers of finished jobs, and begins waiting requests. Answers to sessions that have ended are dropped.
    void on_turn(Instant now) {
        if (pool_ == nullptr) {
            return;
        }
        pool_->keep_time(now);
        while (pool_->any_finished()) {
            BackgroundJob* const job = pool_->poll_finished(now);
            if (job == nullptr) {
                break;
            }
            if (job->is_late) {
                expire(*job);
            } else {
                ++executed_;
                (void)server_.answer(job->handle, job->response.span());
            }
            give_back(*job);
        }
        while (BackgroundJob* const late = pool_->take_overdue()) {
            expire(*late);
            give_back(*late);
        }
        end_overdue(now);
        while (!waiting_.empty() && (is_over(waiting_.front(), now) || start(waiting_.front()))) {
            waiting_.pop_front();
        }
    }
    // True if requests wait, or jobs are out and nothing wakes the worker when they are done.
    [[nodiscard]] bool wants_polling() const noexcept {
        return !waiting_.empty() || (pool_ != nullptr && pool_->wants_polling());
    }

private:
    [[nodiscard]] bool start(const JobRequest& request) noexcept {
        BackgroundJob* const job = pool_->take();
        if (job == nullptr) {
            return false;
        }
        const auto& type = server_.type_of(request.type);
        job->handle = request.handle;
        job->function = type.background;
        job->context = type.context;
        job->type = request.type;
        job->trace = request.trace;
        job->deadline = request.deadline;
        job->response_bytes_max = type.response_bytes_max;
        if constexpr (requires { server_.hand_over(request.handle, *job); }) {
            server_.hand_over(request.handle, *job);
        }
        if (!job->request.valid() && !copy(request.payload, *job)) {
            give_back(*job);
            return false;
        }
        job->response.bytes = 0;
        pool_->submit(*job);
        if constexpr (requires { server_.has_read(request.handle); }) {
            server_.has_read(request.handle);
        }
        return true;
    }
    // Copies a request into a job. Returns false if there is no memory for the request and its answer.
    [[nodiscard]] bool copy(std::span<const std::uint8_t> payload, BackgroundJob& job) noexcept {
        const auto bytes = static_cast<std::uint32_t>(payload.size());
        job.request = memory_.allocate(bytes);
        job.response = memory_.allocate(job.response_bytes_max);
        if (!job.request.valid() || !job.response.valid()) {
            return false;
        }
        copy_bytes(job.request.data, payload.data(), bytes);
        return true;
    }
    // True if the request must not run. A session that has ended took its requests with it. A type may have another
    // kind of handler meanwhile.
    [[nodiscard]] bool is_over(const JobRequest& request, Instant now) noexcept {
        return !server_.keeps(request.handle) || (now >= request.deadline && server_.expire(request.handle)) ||
               (server_.type_of(request.type).background == nullptr && server_.decline(request.handle));
    }
    // Ends waiting requests that have passed their deadlines: they hold memory, or a part of their peers' rings. While
    // many wait, it does not look at all of them at each deadline. That would take more time than the rest of the turn.
    void end_overdue(Instant now) {
        if (now < next_over_ || now < next_look_) {
            return;
        }
        next_look_ = now + kBetweenLooks * static_cast<std::int64_t>(waiting_.size());
        std::erase_if(waiting_, [this, now](const JobRequest& request) { return is_over(request, now); });
        next_over_ = Instant::never();
        for (const JobRequest& request : waiting_) {
            next_over_ = std::min(next_over_, request.deadline);
        }
    }
    void expire(const BackgroundJob& job) noexcept { (void)(server_.keeps(job.handle) && server_.expire(job.handle)); }
    void give_back(BackgroundJob& job) noexcept {
        memory_.release(job.request);
        memory_.release(job.response);
        pool_->give_back(job);
    }

    static constexpr Duration kBetweenLooks = microseconds(1);  // for each waiting request

    Server& server_;
    MsgPool& memory_;
    BackgroundPool* pool_;
    telemetry::Counter& executed_;
    std::deque<JobRequest> waiting_;
    Instant next_over_ = Instant::never();  // the first deadline of a waiting request, or an earlier time
    Instant next_look_{};
};

}  // namespace cairn::rpc
