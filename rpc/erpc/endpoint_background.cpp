// The worker's side of background handlers: requests handed over with all the memory they need, answers sent when
// their jobs are back. A request whose job is out is Executing, so copies of it are dropped as for any slow handler.
#include <algorithm>

#include "lib/base/copy.hpp"
#include "rpc/erpc/background.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace cairn::erpc {

// A job with a copy of the payload, and with room for the answer unless the slot's own will do. nullptr: counted, and
// nothing is changed.
BackgroundJob* Endpoint::prepare_job(std::uint8_t type, const ServerSlot& slot,
                                     std::span<const std::uint8_t> copied) noexcept {
    const TypeEntry& entry = handlers_[type];
    CAIRN_ASSERT(config_.background != nullptr);
    BackgroundJob* const job = config_.background->take();
    if (job == nullptr) {
        statistics_.count(Drop::BackgroundFull);
        return nullptr;
    }
    job->function = entry.background;
    job->context = entry.context;
    job->type = type;
    job->response_bytes_max = std::min(entry.response_bytes_max, config_.max_message_bytes);
    if (!copied.empty()) {
        job->request = pool_.allocate(static_cast<std::uint32_t>(copied.size()));
    }
    const bool fits = slot.response.valid() && slot.response.capacity >= job->response_bytes_max;
    if (!fits) {
        job->response = pool_.allocate(job->response_bytes_max);
    }
    if ((!fits && !job->response.valid()) || (!copied.empty() && !job->request.valid())) {
        statistics_.count(Drop::NoBuffer);
        messages_.want(fits ? 0 : rpc::MsgPool::bytes_for(job->response_bytes_max));
        pool_.release(job->request);
        pool_.release(job->response);
        config_.background->give_back(*job);
        return nullptr;
    }
    copy_bytes(job->request.data, copied.data(), copied.size());
    return job;
}

// The slot's last answer is settled: its buffer goes with the job, or back to the pool.
void Endpoint::submit_job(Session& session, ServerSlot& slot, BackgroundJob& job) noexcept {
    if (job.response.valid()) {
        messages_.forget_answer(slot);
    } else {
        job.response = slot.response;
        slot.response = {};
    }
    CAIRN_ASSERT(job.response.capacity >= job.response_bytes_max);
    job.response.bytes = 0;
    job.handle = {session.self, slot.request_number};
    slot.state = ServerSlotState::Executing;
    slot.newest_rfr = 0;
    ++statistics_.requests_handled;
    config_.background->submit(job);
}

void Endpoint::answer_finished_jobs(Instant now) noexcept {
    while (BackgroundJob* const job = config_.background->poll_finished()) {
        pool_.release(job->request);
        if (ServerSlot* const slot = executing_slot(job->handle); slot != nullptr) {
            slot->response = job->response;
            respond(job->handle, now);
        } else {
            statistics_.count(Drop::StaleAnswer);
            messages_.settle({job->response.data, job->response.capacity});  // its slot had lent it
            pool_.release(job->response);
        }
        config_.background->give_back(*job);
    }
}

// Handlers that run are waited for; what they answer, and requests that no thread has begun, are forgotten.
void Endpoint::drain_jobs() noexcept {
    if (config_.background == nullptr) {
        return;
    }
    while (BackgroundJob* const job = config_.background->drain()) {
        pool_.release(job->request);
        pool_.release(job->response);
        config_.background->give_back(*job);
    }
    config_.background->detach();
}

}  // namespace cairn::erpc
