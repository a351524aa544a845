#include "lib/ibverbs/srq.hpp"

#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/post.hpp"

namespace cairn::ibverbs {

namespace {

ibv_async_event describe_srq(AsyncSource& source, ibv_event_type type) noexcept {
    ibv_async_event event{};
    event.element.srq = &static_cast<Srq&>(source);
    event.event_type = type;
    return event;
}

// Returns whether there can be such a queue. The limit means nothing here: ibv_modify_srq() sets it.
[[nodiscard]] bool is_possible(const ibv_srq_attr& wanted) noexcept {
    return wanted.max_wr >= 1 && is_within(Limit::SharedRequests, wanted.max_wr) &&
           is_within(Limit::SharedPieces, wanted.max_sge);
}

std::unique_ptr<Srq> make_srq(ibv_pd* pd, void* srq_context, const ibv_srq_attr& wanted) {
    auto srq = std::make_unique<Srq>(wanted.max_wr, wanted.max_sge);
    set_context(*srq, pd->context);
    srq->srq_context = srq_context;
    srq->pd = pd;
    return srq;
}

// Needs the lock. Returns false if there is no number left.
[[nodiscard]] bool take_number(Srq& srq, Xrcd& domain, Cq& completions) {
    const Result<Srqn> number = adapter_of(srq.context)
                                    .engine()
                                    .xrc()
                                    .add(domain.id(), {&srq.queue, &completions.queue, Pd::of(srq.pd).id(), {}});
    if (!number.ok()) {
        return false;
    }
    srq.number = number.value();
    srq.domain = &domain;
    srq.completions = &completions;
    ++domain.users;
    ++completions.users;
    return true;
}

}  // namespace

Srq::Srq(std::uint32_t slots, std::uint32_t most_sges) : ibv_srq{}, queue(slots, most_sges), max_sges(most_sges) {
    describe = describe_srq;
    queue.set_sink(this);
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&cond, nullptr);
}

void Srq::on_event() noexcept {
    Context& of = Context::of(context);
    if (queue.take_limit_event() && of.events.add(*this, IBV_EVENT_SRQ_LIMIT_REACHED)) {
        of.adapter->events().add(of.events.count);
    }
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* wanted) noexcept {
    const auto has = [wanted](unsigned bit) noexcept { return (wanted->comp_mask & bit) != 0; };
    if (!has(IBV_SRQ_INIT_ATTR_TYPE) || wanted->srq_type == IBV_SRQT_BASIC) {
        return ibv_create_srq(wanted->pd, reinterpret_cast<ibv_srq_init_attr*>(wanted));
    }
    if (wanted->srq_type != IBV_SRQT_XRC) {
        return fail(EOPNOTSUPP);
    }
    if (!has(IBV_SRQ_INIT_ATTR_PD) || !has(IBV_SRQ_INIT_ATTR_XRCD) || !has(IBV_SRQ_INIT_ATTR_CQ) ||
        !is_of(context, wanted->pd) || !is_of(context, wanted->xrcd) || !is_of(context, wanted->cq) ||
        !is_possible(wanted->attr)) {
        return fail(EINVAL);
    }
    return make_or_null([&]() -> ibv_srq* {
        auto srq = make_srq(wanted->pd, wanted->srq_context, wanted->attr);
        const std::lock_guard hold(adapter_of(context).lock());
        if (!take_number(*srq, Xrcd::of(wanted->xrcd), Cq::of(wanted->cq))) {
            return fail(ENOMEM);
        }
        ++Pd::of(wanted->pd).users;
        return srq.release();
    });
}

int get_srq_number(ibv_srq* srq, std::uint32_t* number) noexcept {
    *number = Srq::of(srq).number.value;
    return Srq::of(srq).number == Srqn{} ? EINVAL : 0;
}

int post_shared_receive(ibv_srq* srq, ibv_recv_wr* requests, ibv_recv_wr** refused) noexcept {
    const std::lock_guard hold(adapter_of(srq->context).lock());
    return post_receives(requests, refused, [&queue = Srq::of(srq).queue](const roce::ReceiveRequest& one) noexcept {
        return queue.post(one);
    });
}

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* wanted) {
    if (!is_possible(wanted->attr)) {
        return fail(EINVAL);
    }
    return make_or_null([&]() -> ibv_srq* {
        auto srq = make_srq(pd, wanted->srq_context, wanted->attr);
        const std::lock_guard hold(adapter_of(pd->context).lock());
        ++Pd::of(pd).users;
        return srq.release();
    });
}

// Changes all attributes, or none.
int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* wanted, int which) {
    const bool resizes = (which & IBV_SRQ_MAX_WR) != 0;
    if (resizes && !is_within(Limit::SharedRequests, wanted->max_wr)) {
        return EINVAL;
    }
    return result_of([&] {
        Adapter& adapter = adapter_of(srq->context);
        const std::lock_guard hold(adapter.lock());
        cairn::roce::ReceiveQueue& queue = Srq::of(srq).queue;
        const std::uint32_t limit = (which & IBV_SRQ_LIMIT) != 0 ? wanted->srq_limit : queue.limit();
        if ((which & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0 || limit > (resizes ? wanted->max_wr : queue.slots()) ||
            (resizes && !queue.resize(wanted->max_wr).ok())) {
            return EINVAL;
        }
        queue.set_limit(limit);
        adapter.settle();  // the program gets the event at once if there are fewer requests already
        return 0;
    });
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* out) {
    const std::lock_guard hold(adapter_of(srq->context).lock());
    const Srq& of = Srq::of(srq);
    *out = {of.queue.slots(), of.max_sges, of.queue.limit()};
    return 0;
}

int ibv_destroy_srq(ibv_srq* srq) {
    Srq& ended = Srq::of(srq);
    std::uint32_t events = 0;
    {
        Context& context = Context::of(srq->context);
        const std::lock_guard hold(context.adapter->lock());
        cairn::roce::Engine& engine = context.adapter->engine();
        if (ended.users != 0 || (ended.domain != nullptr && engine.receives_into(ended.number))) {
            return EBUSY;
        }
        if (ended.domain != nullptr) {
            engine.xrc().remove(ended.number);
            --ended.domain->users;
            --ended.completions->users;
        }
        context.events.remove(ended);
        --Pd::of(srq->pd).users;
        events = ended.given;
    }
    await_acknowledged(*srq, srq->events_completed, events);
    delete &ended;
    return 0;
}
