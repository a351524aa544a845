#include "lib/ibverbs/qp.hpp"

#include <algorithm>

#include "lib/ibverbs/ah.hpp"
#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/translate.hpp"

namespace cairn::ibverbs {

namespace {

ibv_async_event describe_qp(AsyncSource& source, ibv_event_type type) noexcept {
    ibv_async_event event{};
    event.element.qp = &static_cast<Qp&>(source).qp_base;
    event.event_type = type;
    return event;
}

[[nodiscard]] std::optional<wire::Service> service_of(ibv_qp_type type) noexcept {
    switch (type) {
        case IBV_QPT_RC:
            return wire::Service::Rc;
        case IBV_QPT_UC:
            return wire::Service::Uc;
        case IBV_QPT_UD:
            return wire::Service::Ud;
        case IBV_QPT_XRC_SEND:
        case IBV_QPT_XRC_RECV:
            return wire::Service::Xrc;
        case IBV_QPT_RAW_PACKET:
        case IBV_QPT_DRIVER:
            break;
    }
    return std::nullopt;
}

// Returns whether the queue pair has receive requests of its own. Programs fill in one structure for all queue pairs:
// if it has none, the values for them are ignored.
[[nodiscard]] bool has_receives(const ibv_qp_init_attr_ex& wanted) noexcept {
    return wanted.srq == nullptr && wanted.qp_type != IBV_QPT_XRC_SEND;
}

// Returns the capacity, with at least one slot of each kind: queues of no slots do not exist.
[[nodiscard]] roce::QpCapacity capacity_of(const ibv_qp_init_attr_ex& wanted, wire::Service service) noexcept {
    roce::QpCapacity capacity;
    capacity.send_slots = std::max(wanted.cap.max_send_wr, 1U);
    const bool receives = has_receives(wanted);
    capacity.receive_slots = receives ? std::max(wanted.cap.max_recv_wr, 1U) : 1;
    capacity.max_sges = std::max({wanted.cap.max_send_sge, receives ? wanted.cap.max_recv_sge : 0U, 1U});
    capacity.inline_bytes = wanted.cap.max_inline_data;
    capacity.service = service;
    return capacity;
}

[[nodiscard]] bool is_possible(const ibv_qp_init_attr_ex& wanted) noexcept {
    const ibv_qp_cap& cap = wanted.cap;
    return is_within(Limit::SendRequests, cap.max_send_wr) && is_within(Limit::SendPieces, cap.max_send_sge) &&
           cap.max_inline_data <= roce::kMaxInlineBytes &&
           (!has_receives(wanted) ||
            (is_within(Limit::ReceiveRequests, cap.max_recv_wr) && is_within(Limit::ReceivePieces, cap.max_recv_sge)));
}

// Makes the engine's part. Returns an errno value.
[[nodiscard]] int make_part(Qp& qp, const ibv_qp_init_attr_ex& wanted, wire::Service service, Adapter& adapter) {
    roce::Engine& engine = adapter.engine();
    if (wanted.qp_type == IBV_QPT_XRC_RECV) {
        auto& targets = qp.domain->shared->targets;
        targets.reserve(targets.size() + 1);
        const auto made = engine.create_xrc_target(qp.domain->id());
        if (made.ok()) {
            qp.connection = qp.target->connection = made.value();
            targets.push_back(qp.target.get());
        }
    } else {
        ibv_cq* const receives = wanted.recv_cq == nullptr ? wanted.send_cq : wanted.recv_cq;  // of XRC: unused
        const roce::Engine::RcQueues queues{Cq::of(wanted.send_cq).queue, Cq::of(receives).queue,
                                            wanted.srq == nullptr ? nullptr : &Srq::of(wanted.srq).queue};
        const roce::QpCapacity capacity = capacity_of(wanted, service);
        if (service == wire::Service::Ud) {
            const auto made = engine.create_ud(Pd::of(wanted.pd).id(), capacity, queues);
            qp.datagrams = made.ok() ? made.value() : nullptr;
        } else {
            const auto made = engine.create_rc(Pd::of(wanted.pd).id(), capacity, queues);
            qp.connection = made.ok() ? made.value() : nullptr;
        }
    }
    if (qp.connection == nullptr && qp.datagrams == nullptr) {
        return ENOMEM;
    }
    if (qp.is_datagrams()) {
        qp.datagrams->set_event_sink(&qp);
        qp.qp_base.qp_num = qp.datagrams->qpn().value;
    } else {
        qp.connection->pair.set_event_sink(qp.target != nullptr ? static_cast<roce::EventSink*>(qp.target.get()) : &qp);
        qp.qp_base.qp_num = qp.connection->pair.qpn().value;
    }
    qp.qp_base.handle = qp.qp_base.qp_num;
    return 0;
}

void count_users(Qp& qp, std::uint32_t step) noexcept {
    if (qp.qp_base.pd != nullptr) {
        Pd::of(qp.qp_base.pd).users += step;
    }
    for (ibv_cq* const cq : {qp.qp_base.send_cq, qp.qp_base.recv_cq}) {
        if (cq != nullptr) {
            Cq::of(cq).users += step;
        }
    }
    if (qp.qp_base.srq != nullptr) {
        Srq::of(qp.qp_base.srq).users += step;
    }
    if (qp.domain != nullptr) {
        qp.domain->users += step;
    }
}

// Judges the attributes. Returns an errno value.
[[nodiscard]] int judge(ibv_context* context, const ibv_qp_init_attr_ex& wanted) noexcept {
    constexpr std::uint32_t kKnown =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    const auto has = [&wanted](std::uint32_t bit) noexcept { return (wanted.comp_mask & bit) != 0; };
    if ((wanted.comp_mask & ~kKnown) != 0 || (has(IBV_QP_INIT_ATTR_CREATE_FLAGS) && wanted.create_flags != 0)) {
        return EOPNOTSUPP;
    }
    if (!service_of(wanted.qp_type)) {
        return EOPNOTSUPP;
    }
    if (wanted.qp_type == IBV_QPT_XRC_RECV) {
        return has(IBV_QP_INIT_ATTR_XRCD) && wanted.xrcd != nullptr && is_of(context, wanted.xrcd) ? 0 : EINVAL;
    }
    const bool receives = wanted.qp_type != IBV_QPT_XRC_SEND;
    const bool is_whole = has(IBV_QP_INIT_ATTR_PD) && wanted.pd != nullptr && wanted.send_cq != nullptr &&
                          (!receives || wanted.recv_cq != nullptr) && (receives || wanted.srq == nullptr);
    const bool is_basic = wanted.srq == nullptr || Srq::of(wanted.srq).domain == nullptr;
    const bool is_one = is_of(context, wanted.pd) && is_of(context, wanted.send_cq) && is_of(context, wanted.srq) &&
                        (!receives || is_of(context, wanted.recv_cq));
    return is_whole && is_one && is_basic && is_possible(wanted) ? 0 : EINVAL;
}

// Writes the capacity, which is the wanted one or more.
void answer_capacity(Qp& qp, ibv_qp_init_attr_ex& wanted) noexcept {
    const roce::QpCapacity capacity = capacity_of(wanted, wire::Service::Rc);
    qp.cap = wanted.cap;
    qp.cap.max_send_wr = wanted.qp_type == IBV_QPT_XRC_RECV ? 0 : capacity.send_slots;
    qp.cap.max_recv_wr = has_receives(wanted) ? wanted.cap.max_recv_wr : 0;
    qp.cap.max_send_sge = capacity.max_sges;
    qp.cap.max_recv_sge = has_receives(wanted) ? capacity.max_sges : 0;
    wanted.cap = qp.cap;
}

std::unique_ptr<Qp> prepare(ibv_context* context, ibv_qp_init_attr_ex& wanted) {
    auto qp = std::make_unique<Qp>();
    qp->set_context(context);
    qp->qp_base.qp_context = wanted.qp_context;
    qp->qp_base.qp_type = wanted.qp_type;
    qp->qp_base.state = IBV_QPS_RESET;
    if (wanted.qp_type == IBV_QPT_XRC_RECV) {
        qp->domain = &Xrcd::of(wanted.xrcd);
        qp->target = std::make_shared<SharedTarget>();
        qp->target->holders.push_back(qp.get());
    } else {
        qp->qp_base.pd = wanted.pd;
        qp->qp_base.send_cq = wanted.send_cq;
        qp->qp_base.recv_cq = wanted.qp_type == IBV_QPT_XRC_SEND ? nullptr : wanted.recv_cq;
        qp->qp_base.srq = wanted.srq;
    }
    qp->signals_all = wanted.sq_sig_all != 0;
    if ((wanted.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
        qp->posting = std::make_unique<Posting>();
        set_posting(*qp);
    }
    return qp;
}

// Takes the queue pair off its target. Returns true if no other stands for it.
[[nodiscard]] bool leave_target(Qp& qp) noexcept {
    std::erase(qp.target->holders, &qp);
    if (!qp.target->holders.empty()) {
        return false;
    }
    std::erase(qp.domain->shared->targets, qp.target.get());
    return true;
}

void end_part(Qp& qp, roce::Engine& engine) noexcept {
    const Qpn qpn{qp.qp_base.qp_num};
    if (qp.target != nullptr && !leave_target(qp)) {
        return;
    }
    if (qp.is_datagrams()) {
        engine.destroy_ud(*qp.datagrams);
    } else {
        engine.destroy_rc(*qp.connection);
    }
    for (ibv_cq* const cq : {qp.qp_base.send_cq, qp.qp_base.recv_cq}) {
        if (cq != nullptr) {
            Cq::of(cq).queue.forget(qpn);
        }
    }
}

}  // namespace

Qp::Qp() : ibv_qp_ex{} {
    describe = describe_qp;
    pthread_mutex_init(&qp_base.mutex, nullptr);
    pthread_cond_init(&qp_base.cond, nullptr);
}

void Qp::set_context(ibv_context* context) noexcept {
    qp_base.context = context;
    kept = Context::of(context).shared_from_this();
}

void Qp::stop() noexcept {
    Context& of = Context::of(qp_base.context);
    if (target != nullptr && !leave_target(*this)) {
        return;
    }
    if (of.failures != nullptr) {
        of.failures->forget(*this);
    }
    if (is_datagrams()) {
        (void)datagrams->modify(roce::QpState::Reset, {}, {});
    } else {
        (void)of.adapter->engine().modify(*connection, roce::QpState::Reset, {}, {});
    }
}

std::optional<roce::QpEvent> Qp::poll_event() noexcept {
    return is_datagrams() ? datagrams->poll_event() : connection->pair.poll_event();
}

void Qp::on_event() noexcept {
    for (std::optional<roce::QpEvent> event = poll_event(); event; event = poll_event()) {
        tell(*event);
    }
}

void Qp::tell(roce::QpEvent event) noexcept {
    Context& of = Context::of(qp_base.context);
    if (of.events.add(*this, event_of(event))) {
        of.adapter->events().add(of.events.count);
    }
}

void Qp::stand_for(const Qp& other) noexcept {
    qp_base.qp_type = other.qp_base.qp_type;
    qp_base.qp_num = other.qp_base.qp_num;
    qp_base.handle = other.qp_base.handle;
    qp_base.state = other.qp_base.state;
    connection = other.connection;
    target = other.target;
    cap = other.cap;
    way = other.way;
    port = other.port;
}

roce::QpState Qp::current_state() const noexcept {
    return is_datagrams() ? datagrams->state() : connection->pair.state();
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* wanted) noexcept {
    const int refused = judge(context, *wanted);
    if (refused != 0) {
        return fail(refused);
    }
    return make_or_null([&]() -> ibv_qp* {
        auto qp = prepare(context, *wanted);
        Adapter& adapter = adapter_of(context);
        const std::lock_guard hold(adapter.lock());
        const int reason = make_part(*qp, *wanted, *service_of(wanted->qp_type), adapter);
        if (reason != 0) {
            return fail(reason);
        }
        answer_capacity(*qp, *wanted);
        count_users(*qp, 1);
        qp->place.join(Context::of(context).queue_pairs);
        return &qp.release()->qp_base;
    });
}

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* wanted) {
    ibv_qp_init_attr_ex extended{};
    extended.qp_context = wanted->qp_context;
    extended.send_cq = wanted->send_cq;
    extended.recv_cq = wanted->recv_cq;
    extended.srq = wanted->srq;
    extended.cap = wanted->cap;
    extended.qp_type = wanted->qp_type;
    extended.sq_sig_all = wanted->sq_sig_all;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = pd;
    ibv_qp* const qp = create_qp_ex(pd->context, &extended);
    if (qp != nullptr) {
        wanted->cap = extended.cap;
    }
    return qp;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
    Qp& of = Qp::of(qp);
    return of.posting != nullptr ? &of : nullptr;
}

int ibv_destroy_qp(ibv_qp* qp) {
    Qp& ended = Qp::of(qp);
    std::uint32_t events = 0;
    {
        Context& context = Context::of(qp->context);
        const std::lock_guard hold(context.adapter->lock());
        context.adapter->settle();  // packets that peers are owed leave first
        if (context.failures != nullptr) {
            context.failures->forget(ended);
        }
        end_part(ended, context.adapter->engine());
        context.events.remove(ended);
        count_users(ended, ~std::uint32_t{0});
        ended.place.leave(context.queue_pairs);
        events = ended.given;
    }
    await_acknowledged(*qp, qp->events_completed, events);
    delete &ended;
    return 0;
}

int ibv_attach_mcast(ibv_qp* qp, const union ibv_gid* gid, std::uint16_t) {
    return result_of([&] {
        Qp& of = Qp::of(qp);
        const std::lock_guard hold(adapter_of(qp->context).lock());
        return of.is_datagrams() && of.datagrams->attach(to_address(*gid)).ok() ? 0 : EINVAL;
    });
}

int ibv_detach_mcast(ibv_qp* qp, const union ibv_gid* gid, std::uint16_t) {
    Qp& of = Qp::of(qp);
    const std::lock_guard hold(adapter_of(qp->context).lock());
    return of.is_datagrams() && of.datagrams->detach(to_address(*gid)) ? 0 : EINVAL;
}
