// Opening and closing devices, and their asynchronous events.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "lib/base/owned_fd.hpp"
#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/qp.hpp"
#include "lib/ibverbs/uncancelled.hpp"

namespace cairn::ibverbs {

// Objects that ended after the context was closed may have had events.
Context::~Context() {
    if (adapter != nullptr) {
        const std::lock_guard hold(adapter->lock());
        adapter->events().forget(events.count);
    }
}

namespace {

void set_operations(Context& context) noexcept {
    context.query_port = query_port;
    context.query_rt_values = query_clock;
    context.query_device_ex = query_device_ex;
    context.create_cq_ex = create_cq_ex;
    context.create_qp_ex = create_qp_ex;
    context.create_srq_ex = create_srq_ex;
    context.get_srq_num = get_srq_number;
    context.open_xrcd = open_xrcd;
    context.close_xrcd = close_xrcd;
    context.open_qp = open_shared_qp;
    context.alloc_td = allocate_thread_domain;
    context.dealloc_td = free_thread_domain;
    context.alloc_parent_domain = allocate_parent_domain;
    context.alloc_null_mr = allocate_null_region;
    context.advise_mr = advise;
    context.alloc_dm = allocate_device_memory;
    context.free_dm = free_device_memory;
    context.reg_dm_mr = register_device_memory;
    context.modify_cq = moderate_cq;
    ibv_context_ops& ops = context.context.ops;
    ops.alloc_mw = allocate_window;
    ops.bind_mw = bind_window;
    ops.dealloc_mw = free_window;
    ops.poll_cq = poll_cq;
    ops.req_notify_cq = arm_cq;
    ops.post_srq_recv = post_shared_receive;
    ops.post_send = post_send;
    ops.post_recv = post_receive;
}

// Makes a context. `cmd_fd`, a descriptor of the file, is the context's from now on. Returns nullptr, with errno, if no
// descriptor is left.
ibv_context* make_context(std::shared_ptr<OpenFile> file, OwnedFd cmd_fd) {
    // The thread that ends the last object ends the context.
    const std::shared_ptr<Context> context(new Context, [](Context* ended) noexcept {
        const NoCancellation whole;
        delete ended;
    });
    if (!cmd_fd.is_open()) {
        complain_of_descriptors();
        return nullptr;
    }
    if (!context->events.count.open()) {
        return nullptr;
    }
    context->adapter = file->adapter;
    context->of_device = file->device;
    context->file = std::move(file);
    context->sz = sizeof(verbs_context);
    context->context.device = const_cast<Device*>(context->of_device);
    context->context.cmd_fd = cmd_fd.release();
    context->context.async_fd = context->events.count.fd;
    context->context.num_comp_vectors = 1;
    context->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&context->context.mutex, nullptr);
    set_operations(*context);
    context->port = PortNotices::of(context->adapter, context->of_device->config.address);
    context->failures = PlannedFailures::of(context->adapter, context->port, environment_of_process().faults);
    context->port->add(*context);  // last, since it is not taken back if there is no memory
    const std::lock_guard hold(context->adapter->lock());
    ++context->file->contexts;
    context->opened = context;
    return &context->context;
}

ibv_context* open_context(Device& device) {
    Result<std::shared_ptr<Adapter>> adapter = adapter_for(device);
    if (!adapter.ok()) {
        complain(Speaker::Verbs, adapter.error());
        return fail(ENODEV);
    }
    auto file = std::make_shared<OpenFile>();
    file->device = &device;
    file->adapter = std::move(adapter).value();
    OwnedFd cmd_fd(OpenFile::make(file));
    return make_context(std::move(file), std::move(cmd_fd));
}

// Stops the objects that the program has not ended on a device that it closes. Peers reach neither them nor the memory
// any more, as with the kernel; programs may still end the objects. Memory is the file's: other open contexts may have
// imported it. Needs the lock.
void stop_all(Context& closed) noexcept {
    if (!closed.queue_pairs.empty()) {
        closed.adapter->settle();  // packets that peers are owed leave first
    }
    for (Qp* const each : closed.queue_pairs) {
        each->stop();
    }
    for (Cq* const each : closed.completion_queues) {
        each->disarm();
    }
    if (--closed.file->contexts == 0) {
        closed.file->regions.visit([&engine = closed.adapter->engine()](SharedRegion& each) noexcept {
            if (engine.destroy_region(each.key)) {
                each.key = {};
            }
        });
    }
}

// Counts an acknowledgement. The end of the object waits for all of them.
template <class Counter>
void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& cond, Counter& completed) noexcept {
    pthread_mutex_lock(&mutex);
    ++completed;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
}

}  // namespace

ibv_context* import_context(int cmd_fd) {
    std::shared_ptr<OpenFile> file = OpenFile::find(cmd_fd);
    return file == nullptr ? nullptr : make_context(std::move(file), OwnedFd(fcntl(cmd_fd, F_DUPFD_CLOEXEC, 0)));
}

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

ibv_device** ibv_get_device_list(int* count) {
    const NoCancellation whole;
    return make_or_null([count]() -> ibv_device** {
        const auto& devices = all_devices();
        auto* const list = static_cast<ibv_device**>(std::calloc(devices.size() + 1, sizeof(ibv_device*)));
        for (std::size_t i = 0; list != nullptr && i < devices.size(); ++i) {
            list[i] = devices[i].get();
        }
        if (count != nullptr) {
            *count = list == nullptr ? 0 : static_cast<int>(devices.size());
        }
        return list;
    });
}

void ibv_free_device_list(ibv_device** list) {
    std::free(list);
}

ibv_context* ibv_open_device(ibv_device* device) {
    const NoCancellation whole;
    return make_or_null([device] { return open_context(Device::of(device)); });
}

int ibv_close_device(ibv_context* context) {
    const NoCancellation whole;
    Context& closed = Context::of(context);
    closed.port->remove(closed);
    {
        const std::lock_guard hold(closed.adapter->lock());
        stop_all(closed);
        closed.adapter->events().forget(closed.events.count);
    }
    closed.events.count.close();
    close(context->cmd_fd);
    const std::shared_ptr<Context> last = std::move(closed.opened);
    return 0;
}

// Is a cancellation point while it waits; no lock is held then.
int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
    Context& of = Context::of(context);
    for (;;) {
        if (!of.events.count.wait()) {
            return -1;
        }
        const std::lock_guard hold(of.adapter->lock());
        if (of.events.take(*event) != nullptr) {
            return 0;
        }
    }
}

void ibv_ack_async_event(ibv_async_event* event) {
    switch (event->event_type) {
        case IBV_EVENT_CQ_ERR:
            return acknowledge(event->element.cq->mutex, event->element.cq->cond,
                               event->element.cq->async_events_completed);
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_COMM_EST:
        case IBV_EVENT_SQ_DRAINED:
        case IBV_EVENT_PATH_MIG:
        case IBV_EVENT_PATH_MIG_ERR:
        case IBV_EVENT_QP_LAST_WQE_REACHED:
            return acknowledge(event->element.qp->mutex, event->element.qp->cond, event->element.qp->events_completed);
        case IBV_EVENT_SRQ_ERR:
        case IBV_EVENT_SRQ_LIMIT_REACHED:
            return acknowledge(event->element.srq->mutex, event->element.srq->cond,
                               event->element.srq->events_completed);
        case IBV_EVENT_DEVICE_FATAL:
        case IBV_EVENT_PORT_ACTIVE:
        case IBV_EVENT_PORT_ERR:
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE:
        case IBV_EVENT_SM_CHANGE:
        case IBV_EVENT_CLIENT_REREGISTER:
        case IBV_EVENT_GID_CHANGE:
        case IBV_EVENT_WQ_FATAL:
            return;
    }
}
