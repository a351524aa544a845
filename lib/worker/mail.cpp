#include "lib/worker/mail.hpp"

namespace cairn::worker {

Status Address::send(Letter& letter) const {
    CAIRN_ASSERT(office_ != nullptr);
    if (!office_->box.post(letter)) {
        return Error{office_->worker + " has ended, and takes no mail", "end what uses a worker before the worker"};
    }
    office_->wakeup->wake();
    return Nothing{};
}

void Address::expect_mail() const noexcept {
    office_->expects_mail.store(true, std::memory_order_relaxed);
}

bool Address::ended() const noexcept {
    return office_->ended.load(std::memory_order_acquire);
}

}  // namespace cairn::worker
