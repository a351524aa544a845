#include "rpc/copyrpc/server_jobs.hpp"

#include "lib/base/copy.hpp"
#include "rpc/copyrpc/server.hpp"

namespace cairn::copyrpc {

ServerJobs::ServerJobs(Server& server, rpc::MsgPool& memory, rpc::BackgroundPool* pool)
    : server_(server), memory_(memory), pool_(pool) {
    if (pool_ != nullptr) {
        pool_->attach();
    }
}

ServerJobs::~ServerJobs() {
    if (pool_ == nullptr) {
        return;
    }
    while (rpc::BackgroundJob* const job = pool_->drain()) {
        give_back(*job);
    }
    pool_->detach();
}

void ServerJobs::give_back(rpc::BackgroundJob& job) noexcept {
    memory_.release(job.request);
    memory_.release(job.response);
    pool_->give_back(job);
}

void ServerJobs::add(const JobRequest& request) {
    CAIRN_ASSERT(pool_ != nullptr);
    if (!waiting_.empty() || !start(request)) {
        waiting_.push_back(request);
    }
}

// mutants: copyrpc-server-jobs-start
bool ServerJobs::start(const JobRequest& request) noexcept {
    rpc::BackgroundJob* const job = pool_->take();
    if (job == nullptr) {
        return false;
    }
    const auto& type = server_.type_of(request.type);
    const auto bytes = static_cast<std::uint32_t>(request.payload.size());
    job->handle = request.handle;
    job->function = type.background;
    job->context = type.context;
    job->type = request.type;
    job->response_bytes_max = type.response_bytes_max;
    job->request = memory_.allocate(bytes);
    job->response = memory_.allocate(job->response_bytes_max);
    if (!job->request.valid() || !job->response.valid()) {
        give_back(*job);
        return false;
    }
    copy_bytes(job->request.data, request.payload.data(), bytes);
    job->response.bytes = 0;
    pool_->submit(*job);
    server_.has_read(request.handle);
    return true;
}

// A session that has ended took its requests with it.
// mutants: copyrpc-server-jobs-is-over
bool ServerJobs::is_over(const JobRequest& request, Instant now) noexcept {
    return !server_.keeps(request.handle) || (now >= request.deadline && server_.expire(request.handle));
}

// Answers to sessions that have ended have no taker.
// mutants: copyrpc-server-jobs-on-turn
void ServerJobs::on_turn(Instant now) {
    if (pool_ == nullptr) {
        return;
    }
    while (pool_->any_finished()) {
        rpc::BackgroundJob* const job = pool_->poll_finished();
        if (job == nullptr) {
            break;
        }
        (void)server_.answer(job->handle, job->response.span());
        give_back(*job);
    }
    while (!waiting_.empty() && (is_over(waiting_.front(), now) || start(waiting_.front()))) {
        waiting_.pop_front();
    }
}

}  // namespace cairn::copyrpc
