#include "rpc/erpc/server_jobs.hpp"

#include <algorithm>

#include "lib/base/copy.hpp"
#include "rpc/erpc/server.hpp"

namespace cairn::erpc {

ServerJobs::ServerJobs(Server& server, rpc::BackgroundPool* pool) : server_(server), pool_(pool) {
    if (pool_ != nullptr) {
        pool_->attach();
    }
}

ServerJobs::~ServerJobs() {
    if (pool_ == nullptr) {
        return;
    }
    while (rpc::BackgroundJob* const job = pool_->drain()) {
        server_.pool_.release(job->request);
        server_.pool_.release(job->response);
        pool_->give_back(*job);
    }
    pool_->detach();
}

rpc::BackgroundJob* ServerJobs::prepare(std::uint8_t type, const ServerSlot& slot,
                                        std::span<const std::uint8_t> copied) noexcept {
    const auto& entry = server_.handlers_[type];
    CAIRN_ASSERT(pool_ != nullptr);
    rpc::BackgroundJob* const job = pool_->take();
    if (job == nullptr) {
        server_.statistics_.count(Drop::BackgroundFull);
        return nullptr;
    }
    job->function = entry.background;
    job->context = entry.context;
    job->type = type;
    job->response_bytes_max = entry.response_bytes_max;
    if (!copied.empty()) {
        job->request = server_.pool_.allocate(static_cast<std::uint32_t>(copied.size()));
    }
    const bool fits = slot.response.valid() && slot.response.capacity >= job->response_bytes_max;
    if (!fits) {
        job->response = server_.pool_.allocate(job->response_bytes_max);
    }
    if ((!fits && !job->response.valid()) || (!copied.empty() && !job->request.valid())) {
        server_.statistics_.count(Drop::NoBuffer);
        server_.messages_.want(fits ? 0 : rpc::MsgPool::bytes_for(job->response_bytes_max));
        server_.pool_.release(job->request);
        server_.pool_.release(job->response);
        pool_->give_back(*job);
        return nullptr;
    }
    copy_bytes(job->request.data, copied.data(), copied.size());
    return job;
}

// Settles the slot's last answer: its buffer goes with the job, or back to the pool.
void ServerJobs::submit(Session& session, ServerSlot& slot, rpc::BackgroundJob& job) noexcept {
    if (job.response.valid()) {
        server_.messages_.forget_answer(slot);
    } else {
        job.response = slot.response;
        slot.response = {};
    }
    CAIRN_ASSERT(job.response.capacity >= job.response_bytes_max);
    job.response.bytes = 0;
    job.handle = {session.self, slot.request_number};
    slot.state = ServerSlotState::Executing;
    slot.newest_rfr = 0;
    ++server_.statistics_.requests_handled;
    pool_->submit(job);
}

void ServerJobs::answer_finished(Instant now) noexcept {
    while (rpc::BackgroundJob* const job = pool_->poll_finished(now)) {
        server_.pool_.release(job->request);
        if (ServerSlot* const slot = server_.slot_of_earlier(job->handle); slot != nullptr) {
            slot->response = job->response;
            server_.respond(job->handle, now);
        } else {
            server_.statistics_.count(Drop::StaleAnswer);
            server_.writer_.settle({job->response.data, job->response.capacity});  // the slot had lent it
            server_.pool_.release(job->response);
        }
        pool_->give_back(*job);
    }
}

}  // namespace cairn::erpc
