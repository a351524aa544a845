#include "lib/ibverbs/cq.hpp"

#include <utility>

#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"

namespace cairn::ibverbs {

using Arm = roce::CompletionQueue::Arm;

namespace {

ibv_async_event describe_cq(AsyncSource& source, ibv_event_type type) noexcept {
    ibv_async_event event{};
    event.element.cq = static_cast<Cq&>(source).as_cq();
    event.event_type = type;
    return event;
}

}  // namespace

Cq::Cq(std::uint32_t slots) : ibv_cq_ex{}, queue(slots) {
    describe = describe_cq;
    queue.set_sink(this);
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&cond, nullptr);
}

void Cq::on_event() noexcept {
    Context& of = Context::of(context);
    if (queue.take_event()) {
        disarm();
        if (channel != nullptr && !in_channel) {
            Channel& to = Channel::of(channel);
            to.add(*this);
            of.adapter->events().add(to.count);
        }
    }
    if (queue.overrun() && !overrun_told) {
        overrun_told = true;
        if (of.events.add(*this, IBV_EVENT_CQ_ERR)) {
            of.adapter->events().add(of.events.count);
        }
    }
}

void Cq::arm(Arm wish) noexcept {
    if (!is_armed) {
        is_armed = true;
        adapter_of(context).on_armed();
    }
    const bool was_in_channel = in_channel;
    queue.arm(wish);
    if (in_channel && !was_in_channel) {
        made_event = wish;
        adapter_of(context).events().show_all();
    }
}

void Cq::on_drained() noexcept {
    const Arm wish = std::exchange(made_event, Arm::Off);
    if (wish != Arm::Off && in_channel) {
        Channel::of(channel).remove(*this);
        arm(wish);
    }
}

void Cq::disarm() noexcept {
    if (is_armed) {
        is_armed = false;
        adapter_of(context).on_disarmed();
    }
}

ibv_cq_ex* create_cq(ibv_context* context, const ibv_cq_init_attr_ex& wanted) {
    const bool has_domain = (wanted.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
    if (has_domain && (wanted.parent_domain == nullptr || Pd::of(wanted.parent_domain).base == nullptr ||
                       !is_of(context, wanted.parent_domain))) {
        return fail(EINVAL);
    }
    if (!is_of(context, wanted.channel) || wanted.cqe == 0 || !is_within(Limit::Completions, wanted.cqe) ||
        wanted.comp_vector >= static_cast<std::uint32_t>(context->num_comp_vectors)) {
        return fail(EINVAL);
    }
    auto cq = std::make_unique<Cq>(wanted.cqe);
    set_context(*cq, context);
    cq->channel = wanted.channel;
    cq->cq_context = wanted.cq_context;
    cq->cqe = static_cast<int>(wanted.cqe);
    cq->network_type = Context::of(context).of_device->config.address.is_v4() ? Cq::kIpv4 : Cq::kIpv6;
    const std::lock_guard hold(adapter_of(context).lock());
    if (wanted.channel != nullptr) {
        ++Channel::of(wanted.channel).users;
    }
    if (has_domain) {
        cq->domain = &Pd::of(wanted.parent_domain);
        ++cq->domain->users;
    }
    cq->place.join(Context::of(context).completion_queues);
    return cq.release();
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* wanted) noexcept {
    constexpr std::uint64_t kGiven = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    constexpr std::uint32_t kKnown = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
    constexpr std::uint32_t kFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    if ((wanted->wc_flags & ~kGiven) != 0 || (wanted->comp_mask & ~kKnown) != 0) {
        return fail(EOPNOTSUPP);
    }
    if ((wanted->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (wanted->flags & ~kFlags) != 0) {
        return fail(EINVAL);
    }
    return make_or_null([&] {
        ibv_cq_ex* const cq = create_cq(context, *wanted);
        if (cq != nullptr) {
            set_polling(*cq);
        }
        return cq;
    });
}

// Accepts moderation, which lets an adapter wait for more completions before it interrupts. There are no interrupts
// here: each event is shown at once, which no program can tell from an idle adapter.
int moderate_cq(ibv_cq*, ibv_modify_cq_attr* wanted) noexcept {
    return wanted->attr_mask == IBV_CQ_ATTR_MODERATE ? 0 : EINVAL;
}

int arm_cq(ibv_cq* cq, int solicited_only) noexcept {
    const std::lock_guard hold(adapter_of(cq->context).lock());
    Cq::of(cq).arm(solicited_only != 0 ? Arm::Solicited : Arm::Next);
    return 0;
}

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) {
    if (cqe < 1 || comp_vector < 0) {
        return fail(EINVAL);
    }
    return make_or_null([&]() -> ibv_cq* {
        ibv_cq_init_attr_ex wanted{};
        wanted.cqe = static_cast<std::uint32_t>(cqe);
        wanted.cq_context = cq_context;
        wanted.channel = channel;
        wanted.comp_vector = static_cast<std::uint32_t>(comp_vector);
        ibv_cq_ex* const cq = create_cq(context, wanted);
        return cq == nullptr ? nullptr : ibv_cq_ex_to_cq(cq);
    });
}

int ibv_resize_cq(ibv_cq* cq, int cqe) {
    if (cqe < 1 || !is_within(Limit::Completions, static_cast<std::uint32_t>(cqe))) {
        return EINVAL;
    }
    return result_of([&] {
        const std::lock_guard hold(adapter_of(cq->context).lock());
        if (!Cq::of(cq).queue.resize(static_cast<std::uint32_t>(cqe)).ok()) {
            return EINVAL;
        }
        cq->cqe = cqe;
        return 0;
    });
}

// Ends the queue and waits until the program acknowledged all events that it got.
int ibv_destroy_cq(ibv_cq* cq) {
    Cq& ended = Cq::of(cq);
    std::uint32_t events = 0;
    std::uint32_t async_events = 0;
    {
        Context& context = Context::of(cq->context);
        const std::lock_guard hold(context.adapter->lock());
        if (ended.users != 0) {
            return EBUSY;
        }
        ended.disarm();
        ended.place.leave(context.completion_queues);
        if (cq->channel != nullptr) {
            Channel::of(cq->channel).remove(ended);
            --Channel::of(cq->channel).users;
        }
        if (ended.domain != nullptr) {
            --ended.domain->users;
        }
        context.events.remove(ended);
        events = ended.events_given;
        async_events = ended.given;
    }
    await_acknowledged(*cq, cq->comp_events_completed, events);
    await_acknowledged(*cq, cq->async_events_completed, async_events);
    delete &ended;
    return 0;
}
