#include "lib/ibverbs/channel.hpp"

#include <fcntl.h>

#include "lib/ibverbs/cq.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"

namespace cairn::ibverbs {

void Channel::add(Cq& cq) noexcept {
    if (cq.in_channel) {
        return;
    }
    cq.in_channel = true;
    cq.next_in_channel = nullptr;
    (first == nullptr ? first : last->next_in_channel) = &cq;
    last = &cq;
}

Cq* Channel::take() noexcept {
    Cq* const cq = first;
    if (cq != nullptr) {
        first = cq->next_in_channel;
        cq->in_channel = false;
        cq->made_event = roce::CompletionQueue::Arm::Off;
    }
    return cq;
}

void Channel::remove(Cq& cq) noexcept {
    if (!cq.in_channel) {
        return;
    }
    Cq* before = nullptr;
    for (Cq* each = first; each != &cq; each = each->next_in_channel) {
        before = each;
    }
    (before == nullptr ? first : before->next_in_channel) = cq.next_in_channel;
    last = last == &cq ? before : last;
    cq.in_channel = false;
    count.take_back();
}

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    return make_or_null([context]() -> ibv_comp_channel* {
        auto channel = std::make_unique<Channel>();
        if (!channel->count.open()) {
            return nullptr;
        }
        set_context(*channel, context);
        channel->fd = channel->count.fd;
        return channel.release();
    });
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
    Channel& ended = Channel::of(channel);
    {
        Adapter& adapter = adapter_of(channel->context);
        const std::lock_guard hold(adapter.lock());
        if (ended.users != 0) {
            return EBUSY;
        }
        adapter.events().forget(ended.count);
    }
    ended.count.close();
    delete &ended;
    return 0;
}

// Is a cancellation point while it waits; no lock is held then. A queue that ended may have taken its event back after
// the descriptor counted it. Then there is none, and the call waits again.
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
    Channel& from = Channel::of(channel);
    const bool may_sleep = (fcntl(channel->fd, F_GETFL) & O_NONBLOCK) == 0;
    for (;;) {
        if ((may_sleep && !adapter_of(channel->context).sleep_for_event(channel->fd)) || !from.count.wait()) {
            return -1;
        }
        const std::lock_guard hold(adapter_of(channel->context).lock());
        if (Cq* const fired = from.take(); fired != nullptr) {
            ++fired->events_given;
            *cq = fired->as_cq();
            *cq_context = fired->cq_context;
            return 0;
        }
    }
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned int events) {
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += events;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}
